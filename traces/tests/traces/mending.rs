//! Mending against a slow, obvious version; and input that nobody thought of.

use crate::import::{HEADER, row};
use gleaner_traces::import::bitbrains::{Columns, RND, import};
use gleaner_traces::import::{Mended, Observation, Reading, mend};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Row by row, without sorting.
fn obviously(readings: &[Reading]) -> Vec<Observation> {
    let available = |r: &Reading| (r.capacity_bytes - r.used_bytes).max(0);
    let mut of_time: BTreeMap<i64, Vec<Reading>> = BTreeMap::new();
    for reading in readings {
        of_time.entry(reading.time_ms).or_default().push(*reading);
    }
    let mut kept: Vec<Reading> = Vec::new();
    for readings in of_time.values() {
        let on = readings.iter().filter(|r| r.capacity_bytes > 0);
        let Some(least) = on.clone().map(available).min() else {
            continue;
        };
        let least = on.filter(|r| available(r) == least);
        let most_used = least.clone().map(|r| r.used_bytes).max().unwrap();
        let of_most = least.filter(|r| r.used_bytes == most_used);
        let smallest = of_most.clone().map(|r| r.capacity_bytes).min().unwrap();
        let of_smallest = of_most.filter(|r| r.capacity_bytes == smallest);
        kept.push(*of_smallest.max_by_key(|r| r.cpus_count).unwrap());
    }
    let mut steps: Vec<i64> = kept
        .windows(2)
        .map(|w| w[1].time_ms - w[0].time_ms)
        .collect();
    steps.sort_unstable();
    let typical = steps.get(steps.len() / 2);
    let mut samples = Vec::new();
    let (mut before_ms, mut cpus_count) = (None, None);
    for r in kept {
        if r.cpus_count > 0 {
            cpus_count = Some(r.cpus_count);
        }
        let step = before_ms.map(|before: i64| r.time_ms - before);
        samples.push(Observation {
            time_ms: r.time_ms,
            interval_ms: step.filter(|step| step <= &(typical.unwrap() * 2)),
            physical_bytes: r.capacity_bytes,
            available_bytes: available(&r),
            cpus_count,
        });
        before_ms = Some(r.time_ms);
    }
    samples
}

/// Few values, so that they meet.
fn readings() -> impl Strategy<Value = Vec<Reading>> {
    let reading = (0..30i64, 0..4i64, 0..4i64, 0..3i64);
    let reading = reading.prop_map(|(time, capacity_bytes, used_bytes, cpus_count)| Reading {
        time_ms: time * time * 1000,
        capacity_bytes,
        used_bytes,
        cpus_count,
    });
    vec(reading, 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn as_the_obvious_version_and_every_row_is_counted_once(readings in readings(), seed in any::<u64>()) {
        let mut mended = Mended::default();
        let samples = mend(readings.clone(), &mut mended);
        prop_assert_eq!(&samples, &obviously(&readings));
        prop_assert_eq!(mended.samples_count, samples.len() as u64);
        let left_out = mended.repeated_count + mended.contradicted_count + mended.without_memory_count;
        prop_assert_eq!(readings.len() as u64, mended.samples_count + left_out);
        let times: BTreeSet<i64> = readings.iter().map(|r| r.time_ms).collect();
        prop_assert_eq!(times.len() as u64, mended.samples_count + mended.without_memory_count);
        let gaps = samples.iter().filter(|s| s.interval_ms.is_none()).count() as u64;
        prop_assert_eq!(mended.gaps_count, gaps.saturating_sub(1));

        // Their order makes no difference.
        let mut shuffled = readings;
        shuffled.sort_by_key(|r| (r.time_ms as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        prop_assert_eq!(mend(shuffled, &mut Mended::default()), samples);
    }

    #[test]
    fn a_row_is_read_as_it_stands(
        minutes in 0..1_000_000i64, cpus in 0..64i64, capacity in 0..1_000_000_000u32, usage in 0..1_000_000_000u32
    ) {
        let columns = Columns::of_header(HEADER).unwrap();
        let line = row(minutes, cpus, &format!("{capacity}.0"), &format!("{usage}.5"));
        let read = columns.row(&line).unwrap();
        prop_assert!(read.in_seconds);
        prop_assert_eq!(read.reading, Reading {
            time_ms: (crate::import::START_S + minutes * 60) * 1000,
            capacity_bytes: i64::from(capacity) * 1024,
            used_bytes: i64::from(usage) * 1024 + 512,
            cpus_count: cpus,
        });
    }

    #[test]
    fn no_line_panics_and_what_is_read_is_within_bounds(line in "\\PC{0,80}", numbers in vec(any::<f64>(), 11)) {
        let columns = Columns::of_header(HEADER).unwrap();
        let _ = Columns::of_header(&line);
        let numbers: Vec<String> = numbers.iter().map(f64::to_string).collect();
        for line in [line, numbers.join(";\t")] {
            if let Ok(row) = columns.row(&line) {
                prop_assert!((946_684_800_000..4_102_444_800_000).contains(&row.reading.time_ms));
                prop_assert!((0..=1 << 50).contains(&row.reading.capacity_bytes));
                prop_assert!((0..=1 << 50).contains(&row.reading.used_bytes));
            }
        }
    }
}

/// What may happen to a file.
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

    /// Refused, or every row accounted for; never a panic.
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
        match import(folder.path(), &dataset, RND, |_| ()) {
            Ok(imported) => {
                let m = imported.total;
                let left_out = m.unreadable_count + m.repeated_count + m.contradicted_count + m.without_memory_count;
                prop_assert_eq!(m.rows_count, m.samples_count + left_out);
                prop_assert!(m.samples_count > 0);
            }
            Err(refused) => prop_assert!(!dataset.exists(), "{}", refused),
        }
    }
}
