//! For one random trace, the analysis, the simulator and the export agree: on gaps, on the ends of idle
//! periods, on the bytes that each sample could lend, and on footprints and costs of a return.

use crate::recording::{MIB, NOON, Recording, sample};
use gleaner_analysis::{analyze, availability};
use gleaner_dataset::Dataset;
use gleaner_schemas::availability::AvailabilityQuestion;
use gleaner_schemas::findings::{Findings, LendingMode, Parameters, Scope};
use gleaner_schemas::rows::{GapRow, HostRow, ProcessRow, SampleRow};
use gleaner_simulator::hosts::{Cause, ModeQuotas, Presence, Reading, Timeline, read_host};
use gleaner_traces::export::availability::Availability;
use gleaner_traces::export::{ByHost, Format};
use jiff::Timestamp;
use proptest::prelude::*;
use std::fs;
use std::path::Path;

/// A sample, with the time since the sample before.
#[derive(Clone, Debug)]
struct Step {
    after_s: i64,
    /// True if the sample records its interval.
    has_interval: bool,
    gap_is_recorded: bool,
    begins_database: bool,
    has_boottime: bool,
    owner_idle_s: Option<i64>,
    /// The owner's load; `guest_load5` is the load of memory servers.
    load5: Option<f64>,
    guest_load5: Option<f64>,
    available_mib: i64,
    memory: Memory,
    /// Processes: pid, start in seconds of the trace, size in MiB.
    processes: Vec<(i64, i64, Option<i64>)>,
}

/// Random sizes in MiB; absent sizes are not recorded. MemAvailable and harvestable memory may both be
/// present.
#[derive(Clone, Debug)]
struct Memory {
    mem_available: Option<i64>,
    harvestable: Option<i64>,
    guest: i64,
    balloon: i64,
    static_kernel: Option<i64>,
    reserve: Option<i64>,
}

fn memory() -> impl Strategy<Value = Memory> {
    (
        prop::option::weighted(0.7, -1..900i64),
        prop::option::weighted(0.7, 0..900i64),
        0..12i64,
        0..12i64,
        prop::option::weighted(0.8, 0..24i64),
        prop::option::weighted(0.8, 0..16i64),
    )
        .prop_map(|of| Memory {
            mem_available: of.0,
            harvestable: of.1,
            guest: of.2,
            balloon: of.3,
            static_kernel: of.4,
            reserve: of.5,
        })
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
        (100..900i64, memory()),
        prop::collection::vec(process, 0..4),
    )
        .prop_map(
            |(of_time, owner_idle_s, load, (available_mib, memory), processes)| Step {
                after_s: of_time.0,
                has_interval: of_time.1,
                gap_is_recorded: of_time.2,
                begins_database: of_time.3,
                has_boottime: of_time.4,
                owner_idle_s,
                load5: load.0,
                guest_load5: load.1,
                available_mib,
                memory,
                processes,
            },
        )
}

/// Sampling intervals with the times from which they hold, in seconds of the trace.
fn intervals() -> impl Strategy<Value = Vec<(i64, i64)>> {
    let interval_s = prop::sample::select(vec![10, 30, 90, 0]);
    prop::collection::vec((0..6000i64, interval_s), 0..4)
}

fn of_memory(step: &Step) -> SampleRow {
    let memory = &step.memory;
    let row = sample(step.available_mib);
    SampleRow {
        mem_available_bytes: memory.mem_available.map(|mib| mib * MIB),
        harvestable_bytes: memory.harvestable.map(|mib| mib * MIB),
        guest_bytes: memory.guest * MIB,
        balloon_bytes: memory.balloon * MIB,
        static_kernel_bytes: memory.static_kernel.map(|mib| mib * MIB),
        reserve_bytes: memory.reserve.map(|mib| mib * MIB),
        process_bytes: row.process_bytes - (memory.guest + memory.balloon) * MIB,
        ..row
    }
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
            ..of_memory(step)
        };
        recording.row_in(&database, "h", sequence, second, &row);
        let mut pids = Vec::new();
        for &(pid, started_s, mib) in &step.processes {
            if pids.contains(&pid) {
                continue; // a process has one row per sample
            }
            pids.push(pid);
            let process = ProcessRow {
                pid,
                start_boottime_ms: started_s * 1000,
                anon_bytes: mib.map(|mib| mib * MIB),
                ..ProcessRow::default()
            };
            recording.row_in(&database, "h", sequence, second, &process);
        }
        times_ms.push(NOON + second * 1000);
    }
    (recording, times_ms)
}

/// First and last time of each run of samples without a gap, from the gaps of the analysis.
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

/// Runs of more than one sample, as a simulation sees them. Its hosts have no owners, so they lend from a
/// run's first sample to its last.
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

/// Rows of an exported table, with the named columns.
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

/// Exports the host's idle time, for a region that is always available.
fn export(dataset: &Dataset, folder: &Path) {
    let question = AvailabilityQuestion {
        region_bytes: 1,
        scope: Scope::Idle,
        minimum_period_ms: 0,
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

/// A sample as exported.
struct LentSample {
    time_ms: i64,
    follows_gap: bool,
    is_idle: bool,
    paper_quota_bytes: u64,
    /// 0 if the trace does not record harvestable memory.
    quota_bytes: u64,
}

fn lent(folder: &Path) -> Vec<LentSample> {
    let columns = [
        "time",
        "follows_gap",
        "is_idle",
        "paper_quota_bytes",
        "quota_bytes",
    ];
    let rows = exported(folder, "samples", &columns).into_iter();
    let sample = |row: Vec<String>| LentSample {
        time_ms: time_ms(&row[0]),
        follows_gap: row[1] == "true",
        is_idle: row[2] == "true",
        paper_quota_bytes: row[3].parse().unwrap(),
        quota_bytes: row[4].parse().unwrap_or(0),
    };
    rows.map(sample).collect()
}

/// Bytes that the host could lend at a time, by the simulation.
fn quotas(timeline: &Timeline, reading: &Reading, time_ms: i64) -> ModeQuotas {
    let before = timeline.changes.iter().rev();
    let mut before = before.skip_while(|change| ms(reading, change.at_ns) > time_ms);
    before.next().map_or_else(ModeQuotas::default, |c| c.quotas)
}

/// Bytes that could be lent at the last sample of the idle period that ended at a time.
fn lent_until(samples: &[LentSample], returned_ms: i64) -> u64 {
    let until = samples.partition_point(|sample| sample.time_ms <= returned_ms);
    let idle = samples[..until].iter().rev().find(|sample| sample.is_idle);
    idle.unwrap().paper_quota_bytes
}

/// For each return whose figures are known: footprint, upper bound and memory context size, in bytes.
fn wanted(timeline: &Timeline, reading: &Reading, samples: &[LentSample]) -> Vec<[u64; 3]> {
    let wanted = timeline.returns.iter().filter_map(|back| {
        let wanted = back.wanted?;
        let guest_bytes = lent_until(samples, ms(reading, back.at_ns));
        let cost_bytes = wanted.memory_context_bytes(guest_bytes);
        let footprint_bytes = wanted.demand.footprint_bytes;
        Some([footprint_bytes, wanted.upper_bound_bytes, cost_bytes])
    });
    wanted.collect()
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

        // The gaps in the findings equal those of the simulator and of the export.
        let runs = runs_of_gaps(&times_ms, &findings);
        let long: Vec<_> = runs.iter().copied().filter(|(from, to)| from < to).collect();
        prop_assert_eq!(runs_simulated(&dataset, &reading), long);
        let samples = lent(out.path());
        let begins = samples.iter().filter(|sample| sample.follows_gap).map(|sample| sample.time_ms);
        prop_assert_eq!(begins.collect::<Vec<_>>(), runs.iter().map(|run| run.0).collect::<Vec<_>>());

        // All three have the same ends of idle periods.
        let ends: Vec<_> = findings.idle_periods.iter().filter(|p| !p.is_end_censored).collect();
        let returned = timeline.returns.iter().map(|back| ms(&reading, back.at_ns));
        prop_assert_eq!(returned.collect::<Vec<_>>(), ends.iter().map(|p| p.to_time_ms).collect::<Vec<_>>());
        prop_assert_eq!(findings.reclaims.first().map_or(0, |r| r.reclaims_count), ends.len() as i64);
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
        // The export's periods begin at a sample. An absence of the owner without a sample before its end has
        // no period in the export.
        for (period, end) in &simulated {
            let inside = |t: &i64| period.from_time_ms < *t && *t < period.to_time_ms;
            prop_assert!(!times_ms.iter().any(inside) || told.contains(end), "{:?} not in {:?}", end, told);
        }

        // The export and the simulator have the same bytes to lend at each sample. In a simulation, a run's
        // last sample lends nothing, and neither does a sample at which the owner is back.
        for pair in samples.windows(2).filter(|pair| !pair[1].follows_gap) {
            let sample = &pair[0];
            if ends.iter().all(|end| end.to_time_ms != sample.time_ms) {
                let simulated = quotas(&timeline, &reading, sample.time_ms);
                let paper_quota_bytes = if sample.is_idle { sample.paper_quota_bytes } else { 0 };
                prop_assert_eq!(simulated.paper_bytes, paper_quota_bytes, "at {}", sample.time_ms);
                prop_assert_eq!(simulated.gentle_bytes, sample.quota_bytes, "at {}", sample.time_ms);
            }
        }

        // The analysis and the simulator have the same footprints and costs of returns.
        let wanted = wanted(&timeline, &reading, &samples);
        let contexts = findings.memory_context.iter();
        let context = contexts.clone().find(|c| c.host_id.is_some() && c.mode == LendingMode::Paper);
        prop_assert_eq!(context.map_or(0, |c| c.returns_count), wanted.len() as i64);
        if let Some(context) = context {
            let found = [context.mean_footprint_bytes, context.mean_upper_bound_bytes, context.mean_bytes];
            for (of, found) in found.into_iter().enumerate() {
                let expected = mean(wanted.iter().map(|w| w[of]));
                prop_assert!((found - expected).abs() <= 1e-6 * expected, "{} of {:?}", of, wanted);
            }
        }
    }
}
