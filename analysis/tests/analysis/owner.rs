//! Measures of owners and their returns, worked by hand.
//!
//! Host a has 1 GiB, a sample every 90 s, and a low load. The owner is away from 0 to 500 s, at the keyboard
//! until 880 s, and away again until a gap.
//!
//! | sample     |  0 |  1 |  2  |  3  |  4  |  5  |  6  |  7  |  8  |  9  |  10 |  11  |  12  |  13  | gap |  14  |
//! | ---        | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | ---  | ---  | ---  | --- | ---  |
//! | second     |  0 | 90 | 180 | 270 | 360 | 450 | 540 | 630 | 720 | 810 | 900 |  990 | 1080 | 1170 |     | 9000 |
//! | owner idle |  0 | 90 | 180 | 270 | 360 | 450 |  40 |   0 |   5 |   0 |  20 |  110 |  200 |  290 |     |    0 |
//!
//! A last sample before the gap, at 1260 s, shows that the second absence had lasted for 380 s.

use crate::recording::{MIB, Recording, sample};
use gleaner_schemas::findings::{
    CostWindow, Findings, LendingMode, MemoryContext, MemoryUsage, MissingMeasure, OwnerCost,
    OwnerPeriodLengths, OwnerState, Parameters,
};
use gleaner_schemas::rows::{FileRow, ProcessRow, SampleRow};

pub(crate) const OWNER_IDLE_S: [i64; 16] = [
    0, 90, 180, 270, 360, 450, 40, 0, 5, 0, 20, 110, 200, 290, 380, 0,
];

/// Adds sample `i` with its sequence number and second; `row` has its other columns.
pub(crate) fn record(r: &mut Recording, i: usize, row: SampleRow) -> (i64, i64) {
    let (sequence, second) = (i as i64 + 1, if i < 15 { 90 * i as i64 } else { 9000 });
    let row = SampleRow {
        owner_idle_ms: Some(OWNER_IDLE_S[i] * 1000),
        boottime_ms: Some(1_000_000 + second * 1000),
        ..row
    };
    r.row("a", sequence, second, &row);
    (sequence, second)
}

fn host() -> Recording {
    let mut r = Recording::new();
    r.host("a", 90);
    for i in 0..OWNER_IDLE_S.len() {
        record(&mut r, i, sample(500));
    }
    r
}

pub(crate) fn found(r: Recording) -> Findings {
    r.analyzed(&Parameters::default()).unwrap()
}

fn lengths(f: &Findings, state: OwnerState) -> &OwnerPeriodLengths {
    let of = |l: &&OwnerPeriodLengths| l.size_class == "all" && l.state == state;
    f.owner_period_lengths.iter().find(of).unwrap()
}

#[test]
fn absences_presences_and_reclaims() {
    let f = found(host());
    // The owner left when the trace began; the gap cut the second absence.
    let idle = lengths(&f, OwnerState::Idle);
    assert_eq!(
        (idle.periods_count, idle.censored_count, idle.mean_s),
        (2, 1, Some(500.0))
    );
    // 500 to 880 s. The presence at the sample after the gap has no observed length.
    let busy = lengths(&f, OwnerState::Busy);
    assert_eq!((busy.periods_count, busy.censored_count), (1, 0));
    assert_eq!((busy.mean_s, busy.p99_s), (Some(380.0), Some(380.0)));

    let [of_host, of_class, of_all] = f.reclaims.as_slice() else {
        panic!("{:?}", f.reclaims);
    };
    assert_eq!(
        (of_host.host_id.as_deref(), of_host.reclaims_count),
        (Some("a"), 1)
    );
    assert_eq!(of_host.observed_days, 1260.0 / 86_400.0);
    assert_eq!(of_host.reclaims_per_day, 86_400.0 / 1260.0);
    for (pooled, class) in [(of_class, "512-1024 MiB"), (of_all, "all")] {
        assert_eq!(
            (&pooled.host_id, pooled.size_class.as_str()),
            (&None, class)
        );
        assert_eq!((pooled.hosts_count, pooled.reclaims_count), (1, 1));
    }
}

#[test]
fn an_owner_out_of_sight_is_neither_away_nor_there() {
    let mut r = Recording::new();
    r.host("a", 90);
    for i in 0..8 {
        r.row("a", i + 1, i * 90, &sample(500));
    }
    let f = found(r);
    assert_eq!((f.owner_period_lengths.len(), f.reclaims.len()), (0, 0));
}

fn file(file_id: i64, open_processes_count: i64, cached_mib: Option<i64>) -> FileRow {
    FileRow {
        file_id,
        open_processes_count,
        cached_bytes: cached_mib.map(|m| m * MIB),
        ..Default::default()
    }
}

/// The host with files. Absence 0 has samples 0 to 5; the presence 6 to 9; absence 1 has 10 to 14. After the
/// gap comes sample 15.
///
/// - File 1, 40 MiB, is open only at 7 and 8: live in absence 0 and the presence.
/// - File 2, 20 MiB, is open only at 11: live in absence 1, which the gap cuts.
/// - File 3, 10 MiB, is opened and closed again before 6: live in absence 0 and the presence.
/// - File 4, 50 MiB, is open at 15, after the gap.
fn with_files() -> Recording {
    let mut r = Recording::new();
    r.host("a", 90);
    for i in 0..OWNER_IDLE_S.len() {
        let in_use = match i {
            7 | 8 => 40,
            11 => 20,
            15 => 50,
            _ => 0,
        };
        let row = SampleRow {
            file_cache_bytes: in_use * MIB,
            process_bytes: (424 - in_use) * MIB,
            is_complete_state: i == 0 || i == 15,
            ..sample(500)
        };
        let (sequence, second) = record(&mut r, i, row);
        let opened = FileRow {
            opens_count: Some(2),
            ..file(3, 0, Some(10))
        };
        let rows = match i {
            6 => vec![opened],
            7 => vec![file(1, 1, Some(40)), file(3, 0, None)],
            9 => vec![file(1, 0, None)],
            11 => vec![file(2, 1, Some(20))],
            12 => vec![file(2, 0, None)],
            15 => vec![file(4, 1, Some(50))],
            _ => vec![],
        };
        for row in rows {
            r.row("a", sequence, second, &row);
        }
    }
    r
}

#[test]
fn live_files_by_lookahead() {
    let f = found(with_files());
    // 50 MiB are live in samples 0 to 9, 20 in 10 to 14, 50 in 15: 650 over 16 samples.
    let live = &f.live_file_cache[0];
    assert_eq!(
        (live.size_class.as_str(), live.samples_count),
        ("512-1024 MiB", 16)
    );
    assert_eq!(live.mean_bytes, 650.0 / 16.0 * MIB as f64);
    // The sum of squares is 11 × 2500 + 5 × 400 = 29500; minus 650²/16, divided by 15.
    let sd = ((29_500.0 - 650.0 * 650.0 / 16.0) / 15.0_f64).sqrt();
    assert!((live.sd_bytes.unwrap() / MIB as f64 - sd).abs() < 1e-9);
    let share = live.mean_plus_sd_share.unwrap();
    assert!((share - (650.0 / 16.0 + sd) / 1024.0).abs() < 1e-8);
    assert_eq!(live.within_headroom_share, 1.0);
    // Absence 1 and the time after the gap were not seen whole.
    assert_eq!(live.censored_samples_count, 6);

    let usage = |category: &str| {
        let of = |u: &&MemoryUsage| u.size_class == "all" && u.category == category;
        f.memory_usage.iter().find(of).unwrap()
    };
    // Live memory that is not in use now is not available: 50 or 20 MiB, less the part in use.
    let paper = usage("available_paper");
    let not_in_use = 650 - 40 - 40 - 20 - 50;
    assert_eq!(
        paper.mean_bytes,
        (500.0 - f64::from(not_in_use) / 16.0) * MIB as f64
    );
    assert_eq!((paper.min_bytes, paper.max_bytes), (450 * MIB, 500 * MIB));
    // If these two replace file cache and available, the categories have the same sum.
    let sum = |cache, available| usage(cache).mean_bytes + usage(available).mean_bytes;
    assert_eq!(
        sum("live_file_cache", "available_paper"),
        sum("file_cache", "available")
    );
}

#[test]
fn live_files_need_files_and_the_owner_in_sight() {
    let why = |f: &Findings| {
        let of = |n: &&MissingMeasure| n.measure == "live_file_cache";
        f.missing_measures.iter().find(of).map(|n| n.reason.clone())
    };
    let f = found(host());
    assert!(f.live_file_cache.is_empty());
    assert!(
        f.memory_usage
            .iter()
            .all(|u| u.category != "available_paper")
    );
    assert_eq!(why(&f).as_deref(), Some("no file was recorded"));
    let mut unseen = Recording::new();
    unseen
        .row("a", 1, 0, &sample(500))
        .row("a", 1, 0, &file(1, 1, Some(4)));
    let f = found(unseen);
    assert!(f.live_file_cache.is_empty());
    assert!(why(&f).unwrap().contains("whether the owner was away"));
    assert_eq!(why(&found(with_files())), None);
}

/// Headroom in bytes: 15 % of 1 GiB.
pub(crate) const HEADROOM: i64 = 161_061_273;

fn process(pid: i64, started_s: i64, anon_mib: i64) -> ProcessRow {
    ProcessRow {
        pid,
        start_boottime_ms: started_s * 1000,
        name: "x".into(),
        anon_bytes: Some(anon_mib * MIB),
        shmem_bytes: Some(10 * MIB),
        file_bytes: Some(20 * MIB),
        ..Default::default()
    }
}

/// The host with processes and counters; `lent_mib` is lent at the last idle sample. The return is at 500 s,
/// which is 1500 s after boot; samples 6 and 7 lie within 200 s of it, and sample 5 is the last idle one.
pub(crate) fn with_processes(lent_mib: i64) -> Recording {
    let mut r = Recording::new();
    r.host("a", 90);
    for i in 0..OWNER_IDLE_S.len() {
        let at = i as i64;
        let guest = if i == 5 { lent_mib } else { 0 };
        let row = SampleRow {
            guest_bytes: guest * MIB,
            mem_available_bytes: Some(if i == 5 { 300 - guest } else { 500 } * MIB),
            boot_id: Some("b".into()),
            psi_memory_some_total_us: Some(1000 * at * at),
            refault_file_total_pages: (i != 5).then_some(at),
            swap_in_total_pages: Some(if i == 7 { 0 } else { 9 }),
            ..sample(500 - guest)
        };
        let (sequence, second) = record(&mut r, i, row);
        let rows = match i {
            5 => vec![process(1, 100, 500)],
            6 => vec![process(1, 100, 70)],
            // A process that grew, and two that started after the return.
            7 => vec![
                process(1, 100, 120),
                process(2, 1520, 570),
                process(3, 1560, 20),
            ],
            8 => vec![process(4, 100, 400)],
            _ => vec![],
        };
        for row in rows {
            r.row("a", sequence, second, &row);
        }
    }
    r
}

pub(crate) fn contexts(f: &Findings, size_class: &str) -> Vec<MemoryContext> {
    let of = |m: &&MemoryContext| m.size_class == size_class && m.host_id.is_none();
    f.memory_context.iter().filter(of).cloned().collect()
}

#[test]
fn memory_context_of_both_modes() {
    let f = found(with_processes(0));
    let [paper, gentle] = contexts(&f, "all").try_into().unwrap();
    assert_eq!(
        (paper.mode, gentle.mode),
        (LendingMode::Paper, LendingMode::Gentle)
    );
    // In MiB, A is 150 of process 1 at its largest, plus 600 and 50 of the others. K is 24 + 60. M without
    // the reserve is 1024 − 16. G is 500 or 300, less the headroom.
    let cost = |lent_mib: i64| (150 + 600 + 50 + lent_mib + 24 + 60 - (1024 - 16)) * MIB - HEADROOM;
    for (context, expected) in [(&paper, cost(500)), (&gentle, cost(300))] {
        assert!(expected > 0);
        assert_eq!((context.returns_count, context.max_bytes), (1, expected));
        assert_eq!(
            (context.mean_bytes, context.p99_bytes),
            (expected as f64, expected as f64)
        );
        assert_eq!(context.mean_footprint_bytes, (800 * MIB) as f64);
        // Only process 1 had started before the return.
        assert_eq!(context.mean_upper_bound_bytes, (150 * MIB) as f64);
        assert_eq!(context.share_of_returns_with_any, 1.0);
    }
    // By the idle rule, samples 4, 5 and 14 are idle.
    assert_eq!(paper.mean_quota_bytes, Some((500 * MIB - HEADROOM) as f64));
    let gentle_mean = (1300 * MIB) as f64 / 3.0 - HEADROOM as f64;
    assert!((gentle.mean_quota_bytes.unwrap() - gentle_mean).abs() < 1.0);
    // The host's own records have the same figures.
    let own = f
        .memory_context
        .iter()
        .filter(|m| m.host_id.as_deref() == Some("a"));
    let own: Vec<i64> = own.map(|m| m.max_bytes).collect();
    assert_eq!(own, [cost(500), cost(300)]);
}

#[test]
fn what_is_lent_already_changes_no_memory_context() {
    let (none, some) = (found(with_processes(0)), found(with_processes(100)));
    for (none, some) in contexts(&none, "all").iter().zip(contexts(&some, "all")) {
        assert_eq!(none.mean_bytes, some.mean_bytes);
        assert_eq!(none.mean_quota_bytes, some.mean_quota_bytes);
    }
}

#[test]
fn what_a_return_cost_as_measured() {
    // From sample 5 to 7, the stall time grows by 1000 × (49 − 25) µs. Refaults are unknown at 5, swap-ins
    // fell, and no other counter is recorded.
    for (lent_mib, context) in [(0, 0.0), (200, (800 + 200 + 84 - 1008) as f64)] {
        let f = found(with_processes(lent_mib));
        let all = f.owner_cost.iter().filter(|c| c.size_class == "all");
        let costs: Vec<&OwnerCost> = all.collect();
        let [back, busy] = costs.as_slice() else {
            panic!("{costs:?}");
        };
        assert_eq!(
            (back.window, back.had_guests),
            (CostWindow::Return, lent_mib > 0)
        );
        assert_eq!((back.windows_count, back.mean_window_s), (1, 180.0));
        assert_eq!(back.mean_guest_bytes, (lent_mib * MIB) as f64);
        assert_eq!(back.mean_memory_context_bytes, Some(context * MIB as f64));
        assert_eq!(back.mean_psi_memory_some_us, Some(24_000.0));
        assert_eq!(back.p99_psi_memory_some_us, Some(24_000.0));
        let absent = [
            back.mean_psi_memory_full_us,
            back.mean_refault_file_count,
            back.mean_swap_in_count,
            back.mean_major_fault_count,
        ];
        assert_eq!(absent, [None; 4]);
        // The presence lasts from 500 to 880 s. Its window begins at its middle, 690 s: samples 7 to 9.
        assert_eq!(
            (busy.window, busy.had_guests, busy.windows_count),
            (CostWindow::Busy, false, 1)
        );
        assert_eq!(
            (busy.mean_window_s, busy.mean_memory_context_bytes),
            (180.0, None)
        );
        assert_eq!(busy.mean_psi_memory_some_us, Some(32_000.0));
        assert_eq!(busy.mean_refault_file_count, Some(2.0));
        assert_eq!(busy.mean_swap_in_count, Some(9.0));
    }
    // If the return's window reaches beyond the middle of the presence, there is no base line.
    let longer = Parameters {
        return_window_s: 280.0,
        ..Default::default()
    };
    let f = with_processes(0).analyzed(&longer).unwrap();
    assert_eq!(f.owner_cost[0].mean_window_s, 270.0);
    assert!(f.owner_cost.iter().all(|c| c.window == CostWindow::Return));
}

/// A sample every 10 minutes. The owner looks in at 800 s, between the samples at 600 and 1200 s, and is
/// there from 2300 to 4200 s.
#[test]
fn a_visit_between_two_samples_costs_but_is_no_base_line() {
    let mut r = Recording::new();
    r.host("a", 600);
    let owner_idle_s = [0, 600, 400, 1000, 100, 0, 0, 0, 600];
    for (i, idle) in (0..).zip(owner_idle_s) {
        let row = SampleRow {
            owner_idle_ms: Some(idle * 1000),
            boottime_ms: Some(1_000_000 + i * 600_000),
            psi_memory_some_total_us: Some(1000 * i * i),
            ..sample(500)
        };
        r.row("a", i + 1, i * 600, &row);
        r.row("a", i + 1, i * 600, &process(1, 100, 10 * i));
    }
    let f = found(r);
    let busy = lengths(&f, OwnerState::Busy);
    assert_eq!(
        (busy.periods_count, busy.mean_s, busy.max_s),
        (2, Some(950.0), Some(1900.0))
    );
    // Two samples stand for the time after the returns: that at 1200 s, though too late for the window, and
    // that at 2400 s. They have 20 and 40 MiB, and the 30 that are shared or file-backed.
    let context = &contexts(&f, "all")[0];
    assert_eq!(
        (context.returns_count, context.mean_footprint_bytes),
        (2, (60 * MIB) as f64)
    );
    let all = f.owner_cost.iter().filter(|c| c.size_class == "all");
    let costs: Vec<_> = all
        .map(|c| (c.window, c.windows_count, c.mean_psi_memory_some_us))
        .collect();
    // After the returns, 1000 × (4 − 1) and 1000 × (16 − 9) µs. From the middle of the presence, 3250 s, 1000
    // × (36 − 25).
    let expected = [
        (CostWindow::Return, 2, Some(5000.0)),
        (CostWindow::Busy, 1, Some(11_000.0)),
    ];
    assert_eq!(costs, expected);
}

#[test]
fn what_a_trace_lacks_for_costs_is_said() {
    let why = |f: &Findings, measure: &str| {
        let of = |n: &&MissingMeasure| n.measure == measure;
        f.missing_measures.iter().find(of).map(|n| n.reason.clone())
    };
    let f = found(host());
    assert!(f.memory_context.is_empty() && f.owner_cost.is_empty());
    assert!(
        why(&f, "memory_context")
            .unwrap()
            .starts_with("what processes held")
    );
    assert!(
        why(&f, "owner_cost")
            .unwrap()
            .starts_with("the kernel's counters are absent")
    );
    let f = found(with_processes(0));
    assert_eq!(
        (why(&f, "memory_context"), why(&f, "owner_cost")),
        (None, None)
    );
}

/// Contradictory figures give a result or none, but never a panic.
#[test]
fn contradictory_figures_end_in_an_answer() {
    for bytes in [-1, i64::MIN, i64::MAX] {
        let mut r = Recording::new();
        r.host("a", 90);
        for i in 0..OWNER_IDLE_S.len() {
            let row = SampleRow {
                physical_bytes: bytes,
                static_kernel_bytes: Some(bytes),
                dynamic_kernel_bytes: bytes,
                reserve_bytes: Some(bytes),
                file_cache_bytes: bytes,
                guest_bytes: bytes,
                available_bytes: bytes,
                mem_available_bytes: Some(bytes),
                boot_id: Some("b".into()),
                psi_memory_some_total_us: Some(if i == 5 { i64::MIN } else { bytes }),
                ..sample(0)
            };
            let (sequence, second) = record(&mut r, i, row);
            let size = FileRow {
                mapping_processes_count: bytes,
                cached_bytes: Some(bytes),
                mapped_cached_bytes: Some(bytes),
                ..file(1, bytes, None)
            };
            let process = ProcessRow {
                anon_bytes: Some(bytes),
                shmem_bytes: Some(bytes),
                start_boottime_ms: bytes,
                ..process(1, 0, 0)
            };
            r.row("a", sequence, second, &size)
                .row("a", sequence, second, &process);
        }
        let f = found(r);
        assert_eq!(contexts(&f, "all").len(), 2);
        assert!(f.memory_context.iter().all(|m| m.mean_bytes >= 0.0));
    }
}
