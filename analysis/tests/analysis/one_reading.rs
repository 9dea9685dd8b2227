//! The analysis, the simulator and the export of one random trace agree on gaps, on the ends of idle periods and on
//! footprints at a return.

use crate::recording::{MIB, NOON, Recording, sample};
use gleaner_analysis::{analyze, availability};
use gleaner_dataset::Dataset;
use gleaner_schemas::availability::AvailabilityQuestion;
use gleaner_schemas::findings::{Findings, LendingMode, Parameters, Scope};
use gleaner_schemas::rows::{GapRow, HostRow, ProcessRow, SampleRow};
use gleaner_simulator::hosts::{Cause, Presence, Reading, Timeline, read_host};
use gleaner_traces::export::availability::Availability;
use gleaner_traces::export::{ByHost, Format};
use jiff::Timestamp;
use proptest::prelude::*;
use std::fs;
use std::path::Path;

/// Sample, by the time since the one before it.
#[derive(Clone, Debug)]
struct Step {
    after_s: i64,
    /// True where the host tells how far its interval reaches back.
    has_interval: bool,
    gap_is_recorded: bool,
    begins_database: bool,
    has_boottime: bool,
    owner_idle_s: Option<i64>,
    /// The owner's, and that of memory servers.
    load5: Option<f64>,
    guest_load5: Option<f64>,
    available_mib: i64,
    /// Pid, start in seconds of the trace, size in MiB.
    processes: Vec<(i64, i64, Option<i64>)>,
}

fn step() -> impl Strategy<Value = Step> {
    let after_s = prop_oneof![4 => 8..12i64, 4 => 80..100i64, 1 => 150..400i64, 1 => 900..2000i64];
    let process = (1..5i64, 0..4000i64, prop::option::weighted(0.8, 1..300i64));
    (
        (
            after_s,
            prop::bool::weighted(0.4),
            prop::bool::weighted(0.05),
            prop::bool::weighted(0.05),
            prop::bool::weighted(0.9),
        ),
        prop::option::weighted(0.95, prop_oneof![3 => 300..2000i64, 1 => 0..300i64]),
        (
            prop::option::weighted(0.95, prop_oneof![8 => 0.0..0.3f64, 1 => 0.3..0.9f64]),
            prop::option::weighted(0.5, 0.0..2.0f64),
        ),
        100..900i64,
        prop::collection::vec(process, 0..4),
    )
        .prop_map(
            |(of_time, owner_idle_s, load, available_mib, processes)| Step {
                after_s: of_time.0,
                has_interval: of_time.1,
                gap_is_recorded: of_time.2,
                begins_database: of_time.3,
                has_boottime: of_time.4,
                owner_idle_s,
                load5: load.0,
                guest_load5: load.1,
                available_mib,
                processes,
            },
        )
}

/// Intervals with the times from which they hold, in seconds of the trace.
fn intervals() -> impl Strategy<Value = Vec<(i64, i64)>> {
    let interval_s = prop::sample::select(vec![10, 30, 90]);
    prop::collection::vec((0..6000i64, interval_s), 0..4)
}

/// Returns the trace and the times of its samples, in ms since 1970-01-01 UTC.
fn recorded(steps: &[Step], intervals: &[(i64, i64)]) -> (Recording, Vec<i64>) {
    let mut recording = Recording::new();
    for (n, (second, interval_s)) in (0..).zip(intervals) {
        let row = HostRow {
            sample_interval_ms: interval_s * 1000,
            ..HostRow::default()
        };
        recording.row("h", 2000 + n, *second, &row);
    }
    let (mut second, mut database) = (0, 0);
    let mut times_ms = Vec::new();
    for (n, step) in (0..).zip(steps) {
        let before = second;
        second += step.after_s;
        database += i64::from(step.begins_database);
        let database = format!("db{database}");
        let sequence = 10 + 2 * n;
        if step.gap_is_recorded && n > 0 {
            let gap = GapRow {
                from_time_ms: NOON + before * 1000,
                to_time_ms: NOON + second * 1000,
                cause: "sleep".into(),
            };
            recording.row_in(&database, "h", sequence - 1, second, &gap);
        }
        let row = SampleRow {
            boottime_ms: step.has_boottime.then_some(second * 1000),
            interval_ms: step.has_interval.then_some(step.after_s * 1000),
            owner_idle_ms: step.owner_idle_s.map(|s| s * 1000),
            load5: step
                .load5
                .map(|load| load + step.guest_load5.unwrap_or(0.0)),
            guest_load5: step.guest_load5,
            ..sample(step.available_mib)
        };
        recording.row_in(&database, "h", sequence, second, &row);
        let mut pids = Vec::new();
        for &(pid, started_s, mib) in &step.processes {
            if pids.contains(&pid) {
                continue; // a process has one row a sample
            }
            pids.push(pid);
            let process = ProcessRow {
                pid,
                started_ms: started_s * 1000,
                anon_bytes: mib.map(|mib| mib * MIB),
                ..ProcessRow::default()
            };
            recording.row_in(&database, "h", sequence, second, &process);
        }
        times_ms.push(NOON + second * 1000);
    }
    (recording, times_ms)
}

/// First and last time of each run, by the gaps of the analysis.
fn runs_of_gaps(times_ms: &[i64], findings: &Findings) -> Vec<(i64, i64)> {
    let is_gap =
        |pair: &(i64, i64)| (findings.gaps.iter()).any(|g| (g.from_time_ms, g.to_time_ms) == *pair);
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for &time_ms in times_ms {
        match runs.last_mut() {
            Some(run) if !is_gap(&(run.1, time_ms)) => run.1 = time_ms,
            _ => runs.push((time_ms, time_ms)),
        }
    }
    runs
}

fn ms(reading: &Reading, at_ns: u64) -> i64 {
    reading.from_ms + i64::try_from(at_ns / 1_000_000).unwrap()
}

/// Runs of more than one sample, by a simulation of hosts without owners: they lend from a run's first sample to its last.
fn runs_simulated(dataset: &Dataset, reading: &Reading) -> Vec<(i64, i64)> {
    let reading = Reading {
        is_always_idle: true,
        ..reading.clone()
    };
    let timeline = read_host(dataset, "h", &reading).unwrap();
    let mut runs: Vec<(i64, i64)> = Vec::new();
    let mut begin = None;
    for change in &timeline.changes {
        let at_ms = ms(&reading, change.at_ns);
        if change.presence == Presence::Idle {
            begin.get_or_insert(at_ms);
        } else if let Some(begin_ms) = begin.take() {
            runs.push((begin_ms, at_ms));
        }
    }
    runs
}

/// Rows of an exported table: the columns that are named.
fn exported(folder: &Path, table: &str, columns: &[&str]) -> Vec<Vec<String>> {
    let text = fs::read_to_string(folder.join(table).with_extension("csv")).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let place = |column: &&str| names.iter().position(|name| name == column).unwrap();
    let places: Vec<usize> = columns.iter().map(place).collect();
    let row = |line: Vec<&str>| places.iter().map(|&at| line[at].to_owned()).collect();
    lines.map(row).collect()
}

fn time_ms(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_millisecond()
}

/// Exports the host: of idle time, with a region that is always to be had.
fn export(dataset: &Dataset, folder: &Path) {
    let question = AvailabilityQuestion {
        region_bytes: 1,
        scope: Scope::Idle,
        least_ms: 0,
        idle_after_s: 300.0,
        load_limit: 0.3,
        headroom_share: 0.15,
        hosts: None,
        from_ms: None,
        until_ms: None,
        has_samples: true,
    };
    let mut export = Availability::create(folder, &question, Format::Csv, false).unwrap();
    availability(dataset, &question, |host| {
        export.add(&host).unwrap();
        Ok::<_, gleaner_analysis::AnalysisError>(())
    })
    .unwrap();
    Box::new(export).finish().unwrap();
}

/// Footprints at returns in order, where they are known, and upper bounds, in bytes.
fn wanted(timeline: &Timeline) -> Vec<(u64, u64)> {
    let wanted = timeline.returns.iter().filter_map(|back| back.wanted);
    wanted
        .map(|w| (w.demand.footprint_bytes, w.upper_bound_bytes))
        .collect()
}

fn mean(all: impl ExactSizeIterator<Item = u64>) -> f64 {
    let count = all.len() as f64;
    all.sum::<u64>() as f64 / count
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn analysis_simulator_and_export_read_a_trace_alike(
        steps in prop::collection::vec(step(), 1..70),
        intervals in intervals(),
    ) {
        let (recording, times_ms) = recorded(&steps, &intervals);
        let (_folder, dataset) = recording.dataset();
        let findings = analyze(&dataset, &Parameters::default(), &mut |_| ()).unwrap();
        let reading = Reading::between(NOON - 1000, NOON + 1_000_000_000);
        let timeline = read_host(&dataset, "h", &reading).unwrap();
        let out = tempfile::tempdir().unwrap();
        export(&dataset, out.path());

        // Gaps.
        let runs = runs_of_gaps(&times_ms, &findings);
        let long: Vec<_> = runs.iter().copied().filter(|(from, to)| from < to).collect();
        prop_assert_eq!(runs_simulated(&dataset, &reading), long);
        let begins = exported(out.path(), "samples", &["time", "follows_gap"]);
        let begins = begins.iter().filter(|row| row[1] == "true").map(|row| time_ms(&row[0]));
        prop_assert_eq!(begins.collect::<Vec<_>>(), runs.iter().map(|run| run.0).collect::<Vec<_>>());

        // Ends of idle periods.
        let ends: Vec<_> = findings.idle_periods.iter().filter(|p| !p.end_censored).collect();
        let returned = timeline.returns.iter().map(|back| ms(&reading, back.at_ns));
        prop_assert_eq!(returned.collect::<Vec<_>>(), ends.iter().map(|p| p.to_time_ms).collect::<Vec<_>>());
        prop_assert_eq!(findings.reclaims.first().map_or(0, |r| r.reclaims), ends.len() as i64);
        let told = exported(out.path(), "periods", &["end", "ended_by"]);
        let told = told.iter().filter(|row| row[1] == "owner" || row[1] == "load");
        let told: Vec<_> = told.map(|row| (time_ms(&row[0]), row[1].clone())).collect();
        let simulated = ends.iter().zip(&timeline.returns).map(|(period, back)| {
            let cause = match back.cause {
                Cause::Owner => "owner",
                Cause::Load => "load",
            };
            (*period, (period.to_time_ms, cause.to_owned()))
        });
        let simulated: Vec<_> = simulated.collect();
        for end in &told {
            prop_assert!(simulated.iter().any(|(_, of)| of == end), "{:?} in {:?}", end, simulated);
        }
        // Memory is known from a sample on: an absence without one before its end has no period of memory.
        for (period, end) in &simulated {
            let inside = |t: &i64| period.from_time_ms < *t && *t < period.to_time_ms;
            prop_assert!(!times_ms.iter().any(inside) || told.contains(end), "{:?} not in {:?}", end, told);
        }

        // Footprints.
        let wanted = wanted(&timeline);
        let contexts = findings.memory_context.iter();
        let context = contexts.clone().find(|c| c.host.is_some() && c.mode == LendingMode::Paper);
        prop_assert_eq!(context.map_or(0, |c| c.returns), wanted.len() as i64);
        if let Some(context) = context {
            let footprint = mean(wanted.iter().map(|w| w.0));
            let bound = mean(wanted.iter().map(|w| w.1));
            prop_assert!((context.mean_footprint_bytes - footprint).abs() <= 1e-6 * footprint);
            prop_assert!((context.upper_bound_mean_bytes - bound).abs() <= 1e-6 * bound);
        }
    }
}
