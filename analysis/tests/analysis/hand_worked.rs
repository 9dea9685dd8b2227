//! A fleet of two hosts, with every measure worked by hand.
//!
//! Host a has 1 GiB and a sample every 90 s. The owner leaves at 60 s and is back at 570 s. After the sample
//! at 540 s, the agent is stopped for a while.
//!
//! | sample      |  0 |  1  |  2  |  3  |  4  |  5  |  6  | gap |  7   |  8   |
//! | ---         | --- | --- | --- | --- | --- | --- | --- | --- | ---  | ---  |
//! | second      |  0 | 90  | 180 | 270 | 360 | 450 | 540 |     | 1000 | 1090 |
//! | available   | 600 | 600 | 300 | 100 | 600 | 600 | 600 |     | 600  | 700  |  MiB
//! | owner idle  |  0 | 30  | 120 | 210 | 300 | 390 | 480 |     | 5    | 95   |  s
//!
//! Host b has 4 GiB, two samples, and no source of activity.

use crate::recording::{MIB, NOON, Recording, sample};
use gleaner_schemas::findings::{
    AvailabilityPeriods, Findings, MemoryUsage, Notion, Parameters, Scope,
};
use gleaner_schemas::rows::{ActivityRow, FileRow, GapRow, MissingValueRow, ProcessRow, SampleRow};

const A: [(i64, i64, i64); 9] = [
    (0, 600, 0),
    (90, 600, 30),
    (180, 300, 120),
    (270, 100, 210),
    (360, 600, 300),
    (450, 600, 390),
    (540, 600, 480),
    (1000, 600, 5),
    (1090, 700, 95),
];

fn fleet() -> Recording {
    let mut r = Recording::new();
    r.host("a", 90).host("b", 90);
    for (i, (second, available, owner_idle)) in A.into_iter().enumerate() {
        let row = SampleRow {
            owner_idle_ms: Some(owner_idle * 1000),
            is_complete_state: i == 0 || i == 7,
            available_residual_bytes: if i == 3 { -8 * MIB } else { MIB },
            agent_cpu_us: if i == 0 { 18_000 } else { 9_000 },
            ..sample(available)
        };
        // Sequence number 8 belongs to the record of the gap.
        let sequence = if i < 7 { i + 1 } else { i + 2 } as i64;
        r.row("a", sequence, second, &row);
    }
    r.row(
        "a",
        8,
        1000,
        &GapRow {
            from_time_ms: NOON + 540_000,
            to_time_ms: NOON + 1_000_000,
            cause: "stopped".into(),
        },
    );
    for (sequence, second) in [(1, 0), (2, 90)] {
        let row = SampleRow {
            physical_bytes: 4096 * MIB,
            mem_available_bytes: None,
            static_kernel_bytes: None,
            ..sample(900)
        };
        let blind = ActivityRow {
            source: "input".into(),
            state: "denied".into(),
            ..Default::default()
        };
        let absent = MissingValueRow {
            item: "static_kernel_bytes".into(),
            reason: "contradicted".into(),
            detail: "zoneinfo".into(),
            missing_count: 1,
        };
        r.row("b", sequence, second, &row)
            .row("b", sequence, second, &blind)
            .row("b", sequence, second, &absent);
    }
    r
}

fn parameters() -> Parameters {
    Parameters {
        minimum_period_s: 90.0,
        region_bytes: vec![512 * MIB, 256 * MIB],
        dip_threshold_bytes: vec![301 * MIB, 200 * MIB],
        measures: Findings::keys(), // memory over time, too
        ..Default::default()
    }
}

fn found() -> Findings {
    fleet().analyzed(&parameters()).unwrap()
}

#[test]
fn hosts_gaps_and_what_tracing_cost() {
    let f = found();
    assert_eq!(
        f.findings_version,
        gleaner_schemas::findings::FINDINGS_VERSION
    );
    assert_eq!(f.parameters.region_bytes, [256 * MIB, 512 * MIB]);
    let a = &f.hosts[0];
    assert_eq!(
        (a.host_id.as_str(), a.host_name.as_str()),
        ("a", "name of a")
    );
    assert_eq!(
        (a.size_class.as_str(), a.cpus_count),
        ("512-1024 MiB", Some(4))
    );
    assert_eq!((a.samples_count, a.sample_interval_s), (9, Some(90.0)));
    assert_eq!((a.from_time_ms, a.to_time_ms), (NOON, NOON + 1_090_000));
    // 540 s before the gap and 90 s after it, of 1090 s.
    assert_eq!(a.coverage_share, 630.0 / 1090.0);
    assert_eq!(f.hosts[1].size_class, "2-4 GiB");

    assert_eq!(f.gaps.len(), 1);
    assert_eq!(
        (f.gaps[0].duration_s, f.gaps[0].cause.as_str()),
        (460.0, "stopped")
    );

    let cost = &f.agent_cost[0];
    assert_eq!((cost.mean_cpu_ms, cost.max_cpu_ms), (10.0, 18.0));
    assert_eq!(cost.cpu_share, Some(10.0 / 90_000.0));
    assert_eq!(cost.max_rss_bytes, 5 * MIB);

    // The residual is 1 MiB in eight samples and −8 MiB in one.
    let residual = &f.residuals[0];
    assert_eq!(
        (residual.mean_bytes, residual.max_abs_bytes),
        (0.0, 8 * MIB)
    );
    assert_eq!(residual.max_abs_share, 8.0 / 1024.0);
}

fn usage<'a>(f: &'a Findings, size_class: &str, category: &str) -> &'a MemoryUsage {
    f.memory_usage
        .iter()
        .find(|u| u.size_class == size_class && u.category == category)
        .unwrap()
}

#[test]
fn use_of_memory_by_class_and_all() {
    let f = found();
    // Available is 600 MiB six times, then 300, 100 and 700: the sum is 4700.
    let a = usage(&f, "512-1024 MiB", "available");
    let mib = |bytes: f64| bytes / MIB as f64;
    assert!((mib(a.mean_bytes) - 4700.0 / 9.0).abs() < 1e-9);
    // The sum of squares is 6 × 360000 + 90000 + 10000 + 490000 = 2750000; minus 4700²/9, divided by 8.
    let sd = ((2_750_000.0 - 4700.0 * 4700.0 / 9.0) / 8.0_f64).sqrt();
    assert!((mib(a.sd_bytes.unwrap()) - sd).abs() < 1e-9);
    assert_eq!((a.min_bytes, a.max_bytes), (100 * MIB, 700 * MIB));
    assert_eq!(
        (mib(a.median_bytes), a.hosts_count, a.samples_count),
        (600.0, 1, 9)
    );
    // With nine samples, the 5 and 95 % quantiles are the smallest and the largest sample.
    assert_eq!((mib(a.p5_bytes), mib(a.p95_bytes)), (100.0, 700.0));
    // The mean over both hosts is 4700 + 1800 over 11 samples.
    let all = usage(&f, "all", "available");
    assert!((mib(all.mean_bytes) - 6500.0 / 11.0).abs() < 1e-9);
    assert_eq!((all.hosts_count, all.samples_count), (2, 11));
    // Host b has no static kernel figure and no MemAvailable: pooled figures are host a's.
    assert_eq!(usage(&f, "all", "static_kernel").hosts_count, 1);
    // Harvestable is MemAvailable less 15 % of 1 GiB (161061273 bytes), at least 0. It is 0 while 100 MiB are
    // available.
    let harvestable = usage(&f, "all", "harvestable");
    assert_eq!((harvestable.hosts_count, harvestable.min_bytes), (1, 0));
    assert_eq!(harvestable.max_bytes, 700 * MIB - 161_061_273);
    // The means of the categories add up to the mean physical memory.
    let names = [
        "static_kernel",
        "dynamic_kernel",
        "reserve",
        "process",
        "available",
        "balloon",
        "guest",
        "file_cache",
    ];
    let sum: f64 = names
        .iter()
        .map(|c| usage(&f, "512-1024 MiB", c).mean_bytes)
        .sum();
    assert!((mib(sum) - 1024.0).abs() < 1e-9);
}

#[test]
fn dips() {
    let f = found();
    let a: Vec<_> = f
        .dips
        .iter()
        .filter(|d| d.host_id == "a")
        .map(|d| {
            (
                d.threshold_bytes / MIB,
                d.intervals_count,
                d.min_available_bytes / MIB,
                d.min_time_ms,
            )
        })
        .collect();
    let at = NOON + 270_000;
    // The last three thresholds are 5, 10 and 25 % of a's 1 GiB.
    let relative = [(51, 0, 100, at), (102, 1, 100, at), (256, 1, 100, at)];
    assert_eq!(a[..2], [(200, 1, 100, at), (301, 2, 100, at)]);
    assert_eq!(a[2..], relative);
}

#[test]
fn dips_by_hosts() {
    let f = found();
    let of = |mib| {
        let all = f.dip_hosts.iter();
        all.filter(|d| d.notion == Notion::Available)
            .filter(move |d| d.size_class == "all" && d.threshold_bytes == Some(mib * MIB))
            .map(|d| {
                (
                    d.minimum_intervals_count,
                    d.hosts_count,
                    d.known_hosts_count,
                )
            })
            .collect::<Vec<_>>()
    };
    // Host a was below 301 MiB twice, b never.
    let expected = [
        (0, 1, 2),
        (1, 1, 2),
        (6, 0, 2),
        (11, 0, 2),
        (21, 0, 2),
        (31, 0, 2),
    ];
    assert_eq!(of(301), expected);
    // Host b has 4 GiB, of which 900 MiB are available: below a quarter in both of its samples.
    let quarter = f
        .dip_hosts
        .iter()
        .filter(|d| d.notion == Notion::Available && d.threshold_share == Some(0.25));
    let quarter: Vec<_> = quarter
        .map(|d| (d.minimum_intervals_count, d.hosts_count))
        .collect();
    assert!(
        quarter.ends_with(&[(0, 0), (1, 2), (6, 0), (11, 0), (21, 0), (31, 0)]),
        "{quarter:?}"
    );
}

fn periods<'a>(
    f: &'a Findings,
    size_class: &str,
    scope: Scope,
    region_mib: i64,
) -> &'a AvailabilityPeriods {
    f.availability_periods
        .iter()
        .find(|p| {
            p.size_class == size_class && p.scope == scope && p.region_bytes == region_mib * MIB
        })
        .unwrap()
}

#[test]
fn availability_periods() {
    let f = found();
    // 512 MiB are available on a at 0-180 (cut at the start), 360-540 (cut by the gap), 1000-1090 (cut at
    // both ends).
    let p = periods(&f, "512-1024 MiB", Scope::All, 512);
    assert_eq!((p.periods_count, p.censored_count), (3, 3));
    assert_eq!(
        (p.mean_s, p.median_s, p.longest_s),
        (Some(150.0), Some(180.0), Some(180.0))
    );
    assert_eq!(p.restricted_mean_s, Some(180.0)); // no end was seen
    assert_eq!(p.available_time_share, Some(450.0 / 630.0));
    // For 256 MiB, the first period lasts to 270.
    let p = periods(&f, "512-1024 MiB", Scope::All, 256);
    assert_eq!((p.periods_count, p.mean_s), (3, Some(180.0)));
    // Class `all` includes b's 90 s.
    let p = periods(&f, "all", Scope::All, 256);
    assert_eq!(
        (p.periods_count, p.censored_count, p.mean_s),
        (4, 4, Some(157.5))
    );
    assert_eq!(p.available_time_share, Some(630.0 / 720.0));
    // Idle from 60 (samples at 90 to 540): 512 MiB are available from 90 to 180, and from 360 to 540, cut by
    // the gap.
    let p = periods(&f, "512-1024 MiB", Scope::Idle, 512);
    assert_eq!((p.periods_count, p.censored_count), (2, 1));
    assert_eq!((p.mean_s, p.restricted_mean_s), (Some(135.0), Some(135.0)));
    assert_eq!(p.available_time_share, Some(270.0 / 630.0));
    // Host b's idle time is unknown: class `all` is host a only, and b's class has no idle scope.
    assert_eq!(periods(&f, "all", Scope::Idle, 512).periods_count, 2);
    let b_idle = |p: &&AvailabilityPeriods| p.size_class == "2-4 GiB" && p.scope == Scope::Idle;
    assert_eq!(f.availability_periods.iter().find(b_idle), None);
}

#[test]
fn idle_periods_and_quotas() {
    let f = found();
    assert_eq!(f.idle_periods.len(), 1);
    let idle = &f.idle_periods[0];
    assert_eq!(
        (idle.from_time_ms, idle.to_time_ms),
        (NOON + 60_000, NOON + 540_000)
    );
    assert_eq!(
        (
            idle.duration_s,
            idle.is_start_censored,
            idle.is_end_censored
        ),
        (480.0, false, true)
    );
    assert_eq!(f.hosts[0].idle_share, Some(480.0 / 630.0));
    assert_eq!(f.hosts[1].idle_share, None);

    let a = &f.quotas[0];
    assert_eq!((a.time_ms, a.quota_bytes), (NOON + 1_090_000, 0));
    assert_eq!(a.paper_quota_bytes, 700 * MIB - 161_061_273);
    // The owner was active at 995 s, but the load before 1000 s is unknown: the host may be idle from 1000 +
    // 300 s on.
    assert_eq!(
        a.reason,
        "not idle yet: seen with a low load for only 1 min 30 s; could be lent at 12:21:40 UTC"
    );
    let b = &f.quotas[1];
    assert_eq!((b.quota_bytes, b.harvestable_bytes), (0, None));

    // A trace of only the first seven samples ends in the idle period.
    let mut shorter = Recording::new();
    shorter.host("a", 90);
    for (i, (second, available, owner_idle)) in A.into_iter().take(7).enumerate() {
        let row = SampleRow {
            owner_idle_ms: Some(owner_idle * 1000),
            ..sample(available)
        };
        shorter.row("a", i as i64 + 1, second, &row);
    }
    let quota = &shorter.analyzed(&parameters()).unwrap().quotas[0];
    assert_eq!(quota.quota_bytes, 600 * MIB - 161_061_273);
    assert_eq!(quota.reason, "idle since 12:01:00 UTC");
}

#[test]
fn memory_over_time() {
    let f = found();
    let a: Vec<_> = f
        .memory_over_time
        .iter()
        .filter(|p| p.host_id == "a")
        .collect();
    assert_eq!(a.len(), 9);
    let idle: Vec<_> = a.iter().map(|p| p.is_idle).collect();
    let expected = [false, true, true, true, true, true, true, false, false];
    assert_eq!(idle, expected.map(Some));
    let after_gap: Vec<_> = a.iter().map(|p| p.is_after_gap).collect();
    assert_eq!(after_gap.iter().position(|g| *g), Some(7));
    assert_eq!(after_gap.iter().filter(|g| **g).count(), 1);
    let b = f
        .memory_over_time
        .iter()
        .find(|p| p.host_id == "b")
        .unwrap();
    assert_eq!(
        (b.is_idle, b.static_kernel_bytes, b.harvestable_bytes),
        (None, None, None)
    );
}

#[test]
fn what_is_not_measured_says_why() {
    let f = found();
    let reasons: Vec<String> = f
        .missing_measures
        .iter()
        .filter(|n| n.host_id == "b")
        .map(|n| format!("{}: {}", n.measure, n.reason))
        .collect();
    assert_eq!(
        reasons,
        [
            "memory_usage: static_kernel is absent in every sample: contradicted (zoneinfo)",
            "memory_usage: harvestable is absent in every sample",
            "idle_periods: no sample has both the owner's activity and the load (input denied); \
             availability periods in idle time leave this host out",
            "live_file_cache: no file was recorded",
            "reclaims: it cannot be told when the owner came back; absence lengths, memory context and the \
             owner's cost leave this host out",
            "top_processes: no process with its memory was recorded",
            "dip_processes: no process was recorded",
            "top_files: no file with its cached bytes was recorded",
            "forecasts: its samples cover 1 min 30 s, and a forecast needs a day of them",
        ]
    );
    assert_eq!(
        (
            f.missing_values[0].item.as_str(),
            f.missing_values[0].samples_count
        ),
        ("static_kernel_bytes", 2)
    );
    assert_eq!(
        (
            f.activity_sources[0].state.as_str(),
            f.activity_sources[0].samples_count
        ),
        ("denied", 2)
    );
}

fn process(pid: i64, name: &str, anon_mib: i64, cpu_ms: Option<i64>) -> ProcessRow {
    ProcessRow {
        pid,
        name: name.into(),
        cpu_ms,
        anon_bytes: Some(anon_mib * MIB),
        shmem_bytes: Some(MIB),
        file_bytes: None,
        ..Default::default()
    }
}

#[test]
fn top_processes_by_name() {
    // cc1 runs in samples 1 (two processes: 11 + 21 MiB) and 3 (31 MiB): mean 31.5, largest 32. editor runs
    // in samples 1 to 3, with 5 MiB each. A name whose memory was never known is left out.
    let mut r = fleet();
    r.row("a", 1, 0, &process(7, "cc1", 10, Some(500)))
        .row("a", 1, 0, &process(8, "cc1", 20, None))
        .row("a", 3, 180, &process(9, "cc1", 30, Some(250)))
        .row(
            "a",
            1,
            0,
            &ProcessRow {
                pid: 5,
                name: "secret".into(),
                ..Default::default()
            },
        );
    for (sequence, second) in [(1, 0), (2, 90), (3, 180)] {
        r.row("a", sequence, second, &process(3, "editor", 4, Some(1)));
    }
    let f = r.analyzed(&parameters()).unwrap();
    let found: Vec<_> = f
        .top_processes
        .iter()
        .map(|p| {
            (
                p.name.as_str(),
                p.active_samples_count,
                p.mean_bytes / MIB as f64,
                p.max_bytes / MIB,
                p.cpu_s,
            )
        })
        .collect();
    assert_eq!(
        found,
        [("cc1", 2, 31.5, 32, 0.75), ("editor", 3, 5.0, 5, 0.003)]
    );
}

fn file(file_id: i64, open_processes_count: i64, cached_mib: Option<i64>) -> FileRow {
    FileRow {
        file_id,
        path: (file_id == 2).then(|| "/usr/lib/libc.so".into()),
        open_processes_count,
        cached_bytes: cached_mib.map(|m| m * MIB),
        ..Default::default()
    }
}

#[test]
fn top_files_fill_what_did_not_change() {
    // Samples of a: 0 … 6, gap, 7 (whole), 8. Sequences: 1 … 7, 9, 10.
    // File 1: 10 MiB from sample 0, 40 MiB from 2, closed at 3, again 8 MiB from 5 until the gap.
    //         In use at 0, 1, 2, 5, 6: (10 + 10 + 40 + 8 + 8) / 5 = 15.2.
    // File 2: 20 MiB in samples 7 and 8. File 3: cached bytes never known.
    // File 4: open at 4 with unknown bytes, 6 MiB at 5, until the gap: 3 samples, mean 6 of those known.
    let mut r = fleet();
    r.row("a", 1, 0, &file(1, 1, Some(10)))
        .row("a", 3, 180, &file(1, 1, Some(40)))
        .row("a", 4, 270, &file(1, 0, Some(40)))
        .row("a", 6, 450, &file(1, 1, Some(8)))
        .row("a", 9, 1000, &file(2, 1, Some(20)))
        .row("a", 1, 0, &file(3, 1, None))
        .row("a", 5, 360, &file(4, 1, None))
        .row("a", 6, 450, &file(4, 1, Some(6)));
    let f = r.analyzed(&parameters()).unwrap();
    let found: Vec<_> = f
        .top_files
        .iter()
        .map(|p| {
            (
                p.file.as_str(),
                p.samples_count,
                p.mean_cached_bytes / MIB as f64,
                p.max_cached_bytes / MIB,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("/usr/lib/libc.so", 2, 20.0, 20),
            ("1", 5, 15.2, 40),
            ("4", 3, 6.0, 6)
        ]
    );
}
