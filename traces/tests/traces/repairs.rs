//! Repairs of a machine's rows, compared with a slow, obvious implementation; and arbitrary input.

use crate::import::{HEADER, row};
use gleaner_schemas::column::Value;
use gleaner_traces::import::archive::Columns;
use gleaner_traces::import::bitbrains::{self, RND};
use gleaner_traces::import::{Observation, Reading, Readings, Repairs, import};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// A row of an invented source: its reading, an extra value, and a fact.
type SourceRow = (Reading, Option<i64>, Option<i64>);

const COLUMNS: [&str; 2] = ["mem_free_bytes", "load1"];

/// The rows as readings, as importers pass them.
fn readings(rows: &[SourceRow]) -> Readings<'static> {
    let mut readings = Readings::new(&COLUMNS);
    for (reading, value, fact) in rows {
        let fact = fact.map(|fact| ("kernel_release", Value::Integer(fact)));
        readings.host_is(fact.into_iter().collect());
        let value = value.map(|v| v as f64);
        readings.push(*reading, &[value, value.map(|v| v / 2.0)]);
    }
    readings
}

/// A sample after the repair: its time, interval, memory, available memory, CPUs and boot; the value; the fact.
type MendedRow = ([Option<i64>; 6], Option<i64>, Option<i64>);

fn made(samples: &[Observation<'_>]) -> Vec<MendedRow> {
    let made = samples.iter().map(|o| {
        let known: Vec<_> = o.values.known().collect();
        let value = match known[..] {
            [
                ("mem_free_bytes", Value::Integer(v)),
                ("load1", Value::Real(half)),
            ] => {
                assert_eq!(half, v as f64 / 2.0);
                Some(v)
            }
            [] => None,
            _ => unreachable!("{known:?}"),
        };
        let fact = o.facts.first().map(|(_, fact)| match fact {
            Value::Integer(fact) => *fact,
            other => unreachable!("{other:?}"),
        });
        let sample = [
            Some(o.time_ms),
            o.interval_ms,
            Some(o.physical_bytes),
            Some(o.available_bytes),
            o.cpus_count,
            o.booted_ms,
        ];
        (sample, value, fact)
    });
    made.collect()
}

/// Repairs the rows in the obvious way: the rows of each time are reduced to one, rule by rule.
fn obviously(rows: &[SourceRow]) -> Vec<MendedRow> {
    let mut of_time: BTreeMap<i64, Vec<SourceRow>> = BTreeMap::new();
    for row in rows {
        of_time.entry(row.0.time_ms).or_default().push(*row);
    }
    let mut kept: Vec<SourceRow> = Vec::new();
    for mut rows in of_time.into_values() {
        rows.retain(|(r, ..)| r.physical_bytes > 0);
        // Each rule keeps only the rows with the smallest value.
        let mut least = |of: &dyn Fn(&SourceRow) -> i64| {
            let least = rows.iter().map(of).min();
            rows.retain(|row| Some(of(row)) == least);
        };
        least(&|(r, ..)| r.available_bytes.max(0));
        least(&|(r, ..)| r.available_bytes - r.physical_bytes); // most used
        least(&|(r, ..)| r.physical_bytes);
        least(&|(r, ..)| -r.cpus_count);
        least(&|(r, ..)| -r.booted_ms);
        least(&|(_, value, _)| value.unwrap_or(i64::MAX));
        least(&|(_, _, fact)| fact.unwrap_or(i64::MAX));
        kept.extend(rows.first());
    }
    let step = |w: &[SourceRow]| w[1].0.time_ms - w[0].0.time_ms;
    let mut steps: Vec<i64> = kept.windows(2).map(step).collect();
    steps.sort_unstable();
    let typical = steps.get(steps.len() / 2);
    let mut samples = Vec::new();
    let (mut before_ms, mut cpus_count, mut boot_ms) = (None, None, None);
    for (r, value, fact) in kept {
        if r.cpus_count > 0 {
            cpus_count = Some(r.cpus_count);
        }
        boot_ms = match (boot_ms, r.booted_ms) {
            (_, 0) => None,
            (Some(boot), now) if now - boot <= 60_000 && boot - now <= 60_000 => Some(boot),
            (_, now) => Some(now),
        };
        let step = before_ms.map(|before: i64| r.time_ms - before);
        let sample = [
            Some(r.time_ms),
            step.filter(|step| step <= &(typical.unwrap() * 2)),
            Some(r.physical_bytes),
            Some(r.available_bytes.max(0)),
            cpus_count,
            boot_ms,
        ];
        samples.push((sample, value, fact));
        before_ms = Some(r.time_ms);
    }
    samples
}

/// Rows whose values come from small ranges, so that rows often coincide.
fn rows() -> impl Strategy<Value = Vec<SourceRow>> {
    let said = || proptest::option::of(0..3i64);
    let row = (
        (0..30i64, 0..4i64, 0..4i64, 0..3i64, 0..4i64),
        said(),
        said(),
    );
    let row = row.prop_map(
        |((time, physical_bytes, used_bytes, cpus_count, boot), value, fact)| {
            let reading = Reading {
                time_ms: time * time * 1000,
                physical_bytes,
                available_bytes: physical_bytes - used_bytes,
                cpus_count,
                booted_ms: boot * 40_000,
            };
            (reading, value, fact)
        },
    );
    vec(row, 0..40)
}

#[test]
fn where_recording_stopped_there_is_a_gap_however_short() {
    let rows = (1..=6).map(|minute| Reading {
        time_ms: 60_000 * minute,
        physical_bytes: 2,
        available_bytes: 1,
        ..Reading::default()
    });
    let rows: Vec<SourceRow> = rows.map(|reading| (reading, None, None)).collect();
    let mut readings = readings(&rows);
    for (time_ms, cause) in [
        (0, "boot"), // before all samples
        (90_000, "stopped"),
        (90_000, "boot"),
        (240_000, "stopped"), // at a sample's time: before or after it
        (400_000, "stopped"), // after all samples
    ] {
        readings.note_stop(time_ms, cause);
    }
    let (samples, repairs) = readings.repair();
    let gaps: Vec<_> = samples.iter().map(|s| (s.gap, s.interval_ms)).collect();
    let minute = (None, Some(60_000));
    let expected = [
        (None, None),
        (Some("boot"), None),
        minute,
        (Some("stopped"), None),
        (Some("stopped"), None),
        minute,
    ];
    assert_eq!(gaps, expected);
    assert_eq!(repairs.gaps_count, 3);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn as_the_obvious_version_and_every_row_is_counted_once(rows in rows(), seed in any::<u64>()) {
        let mut given = readings(&rows);
        let (samples, repairs) = given.repair();
        let samples = made(&samples);
        prop_assert_eq!(&samples, &obviously(&rows));
        prop_assert_eq!(repairs.samples_count, samples.len() as u64);
        let left_out = repairs.repeated_count + repairs.contradicted_count + repairs.merged_count + repairs.without_memory_count;
        prop_assert_eq!(rows.len() as u64, repairs.samples_count + left_out);
        let times: BTreeSet<i64> = rows.iter().map(|(r, ..)| r.time_ms).collect();
        prop_assert_eq!(times.len() as u64, repairs.samples_count + repairs.without_memory_count);
        let distinct: BTreeSet<String> = rows.iter().map(|row| format!("{row:?}")).collect();
        prop_assert_eq!(repairs.repeated_count, (rows.len() - distinct.len()) as u64);
        let gaps = samples.iter().filter(|(s, ..)| s[1].is_none()).count() as u64;
        prop_assert_eq!(repairs.gaps_count, gaps.saturating_sub(1));

        // The order of the rows makes no difference.
        let mut shuffled = rows;
        shuffled.sort_by_key(|(r, ..)| (r.time_ms as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        prop_assert_eq!(made(&readings(&shuffled).repair().0), samples);
    }

    #[test]
    fn a_row_is_read_as_it_stands(
        minutes in 0..1_000_000i64, cpus in 0..64i64, capacity in 0..1_000_000_000u32, usage in 0..1_000_000_000u32
    ) {
        let columns = Columns::of_header(HEADER, &bitbrains::DIALECT).unwrap();
        let line = row(minutes, cpus, &format!("{capacity}.0"), &format!("{usage}.5"));
        let read = columns.row(&line).unwrap();
        prop_assert!(read.in_seconds);
        prop_assert_eq!(read.reading, Reading {
            time_ms: (crate::import::START_S + minutes * 60) * 1000,
            physical_bytes: i64::from(capacity) * 1024,
            available_bytes: (i64::from(capacity) - i64::from(usage)) * 1024 - 512,
            cpus_count: cpus,
            booted_ms: 0,
        });
    }

    #[test]
    fn no_line_panics_and_what_is_read_is_within_bounds(line in "\\PC{0,80}", numbers in vec(any::<f64>(), 11)) {
        let columns = Columns::of_header(HEADER, &bitbrains::DIALECT).unwrap();
        let _ = Columns::of_header(&line, &bitbrains::DIALECT);
        let numbers: Vec<String> = numbers.iter().map(f64::to_string).collect();
        for line in [line, numbers.join(";\t")] {
            if let Ok(row) = columns.row(&line) {
                prop_assert!((946_684_800_000..4_102_444_800_000).contains(&row.reading.time_ms));
                prop_assert!((0..=1 << 50).contains(&row.reading.physical_bytes));
                prop_assert!((-1 << 50..=1 << 50).contains(&row.reading.available_bytes));
            }
        }
    }
}

/// A kind of damage to a file.
#[derive(Clone, Debug)]
enum Damage {
    Byte(u8),
    Text(&'static str),
    Cut,
    Repeat,
}

fn damage() -> impl Strategy<Value = Damage> {
    const TEXTS: [&str; 11] = [
        "\n",
        "\r",
        ";",
        "\t",
        "-",
        "1e999",
        "\0",
        "NaN",
        "\u{feff}",
        ".",
        "9999999999",
    ];
    prop_oneof![
        any::<u8>().prop_map(Damage::Byte),
        proptest::sample::select(&TEXTS[..]).prop_map(Damage::Text),
        Just(Damage::Cut),
        Just(Damage::Repeat),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// However damaged the file is, it is rejected or each of its rows is counted; the importer never panics.
    #[test]
    fn a_damaged_file_is_imported_as_far_as_it_goes(damages in vec((damage(), any::<prop::sample::Index>()), 1..30)) {
        let rows = (0..40).map(|i| row(5 * i, 4, "4194304.0", "131419.73333333334"));
        let rows: Vec<String> = rows.collect();
        let mut bytes = format!("{HEADER}\n{}\n", rows.join("\n")).into_bytes();
        for (damage, place) in damages {
            if bytes.is_empty() {
                break;
            }
            let at = place.index(bytes.len());
            match damage {
                Damage::Byte(byte) => bytes[at] = byte,
                Damage::Text(text) => drop(bytes.splice(at..at, text.bytes())),
                Damage::Cut => drop(bytes.drain(at..(at + 30).min(bytes.len()))),
                Damage::Repeat => bytes.extend_from_within(at..(at + 300).min(bytes.len())),
            }
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("1.csv"), &bytes).unwrap();
        let dataset = folder.path().join("dataset");
        match import(&mut bitbrains::importer(folder.path(), RND), &dataset, |_| ()) {
            Ok(imported) => {
                let m = imported.total;
                let left_out = m.unreadable_count + m.repeated_count + m.contradicted_count + m.merged_count + m.without_memory_count;
                prop_assert_eq!(m.rows_count, m.samples_count + left_out);
                prop_assert!(m.samples_count > 0);
            }
            Err(refused) => prop_assert!(!dataset.exists(), "{}", refused),
        }
    }
}

/// Two readings every `interval_ms`, the second of them `later_ms` after the first.
fn twice(interval_ms: i64, later_ms: i64) -> Vec<SourceRow> {
    let times = (0..100).flat_map(|at| [at * interval_ms, at * interval_ms + later_ms]);
    let reading = |time_ms| Reading {
        time_ms,
        physical_bytes: 100,
        available_bytes: 50,
        ..Reading::default()
    };
    times
        .map(|time_ms| (reading(time_ms), None, None))
        .collect()
}

/// Two pmlogger tasks record the same metrics some 15 ms apart; each pair of readings is one sample. With the
/// median step of all readings as the interval, every step of 10 s would be a gap.
#[test]
fn what_two_tasks_record_of_one_moment_is_one_sample() {
    let mut given = readings(&[]);
    for (at, (reading, ..)) in twice(10_000, 15).into_iter().enumerate() {
        // Only the second reading of each pair has the load.
        let load = (at % 2 == 1).then_some(at as f64);
        given.push(reading, &[Some(7.0), load]);
    }
    let (samples, repairs) = given.repair();
    assert_eq!(samples.len(), 100);
    assert_eq!((repairs.merged_count, repairs.gaps_count), (100, 0));
    assert_eq!(repairs.nominal_interval_ms, Some(10_000));
    assert_eq!((repairs.span_ms, repairs.recorded_ms), (990_000, 990_000));
    for (at, sample) in samples.iter().enumerate() {
        assert_eq!(sample.time_ms, 10_000 * at as i64);
        let known: Vec<_> = sample.values.known().collect();
        let load = (2 * at + 1) as f64;
        let expected = [
            ("mem_free_bytes", Value::Integer(7)),
            ("load1", Value::Real(load)),
        ];
        assert_eq!(known, expected);
    }
    // Readings that are 3 s apart are two samples, still without gaps.
    let (samples, repairs) = readings(&twice(60_000, 3_000)).repair_counts();
    assert_eq!(
        (samples, repairs.gaps_count, repairs.merged_count),
        (200, 0, 0)
    );
}

#[test]
fn what_is_recorded_several_times_a_second_stays() {
    let (samples, repairs) = readings(&twice(400, 200)).repair_counts();
    assert_eq!(
        (samples, repairs.merged_count, repairs.gaps_count),
        (200, 0, 0)
    );
    assert_eq!(repairs.nominal_interval_ms, Some(200));
}

/// Readings before and after a stop stay two samples, even if they are close together.
#[test]
fn nothing_is_merged_across_a_stop() {
    let mut given = readings(&twice(10_000, 100));
    given.note_stop(10_050, "stopped");
    let (samples, repairs) = given.repair();
    assert_eq!(samples.len(), 101);
    assert_eq!((repairs.merged_count, repairs.gaps_count), (99, 1));
}

/// Steps between 10 s and several hours show no clear interval: the user states one, and longer steps are gaps.
#[test]
fn the_interval_may_be_stated_and_coverage_says_what_it_leaves_out() {
    let steps_s = [10, 10, 30, 10, 600, 10, 9_000, 60, 10, 26_660];
    let mut time_ms = 0;
    let rows = (0..60).map(|at| {
        let reading = Reading {
            time_ms,
            physical_bytes: 100,
            available_bytes: 50,
            ..Reading::default()
        };
        time_ms += 1000 * steps_s[at % steps_s.len()];
        (reading, None, None)
    });
    let rows: Vec<SourceRow> = rows.collect();
    let found = readings(&rows).repair_counts().1;
    let stated = readings(&rows).repair_at(Some(300_000)).1;
    assert_eq!(stated.nominal_interval_ms, Some(300_000));
    assert!(found.coverage() < 0.01, "{}", found.coverage());
    assert!(stated.gaps_count < found.gaps_count);
    // Two of the ten steps are longer than two intervals, which are ten minutes. The 59 steps are five rounds of
    // ten, with 10 gaps, and nine more steps, with one gap.
    assert_eq!(stated.gaps_count, 11);
    let recorded_s: i64 = (0..59)
        .map(|at| steps_s[at % 10])
        .filter(|s| *s <= 600)
        .sum();
    assert_eq!(stated.recorded_ms, 1000 * recorded_s.unsigned_abs());
}

/// Repairs readings, and returns only the number of samples and the counts of repairs.
trait MendCounts {
    fn repair_counts(self) -> (usize, Repairs);
}

impl MendCounts for Readings<'_> {
    fn repair_counts(mut self) -> (usize, Repairs) {
        let (samples, repairs) = self.repair();
        (samples.len(), repairs)
    }
}
