//! The owner's side, worked by hand.
//!
//! Host a, 1 GiB, a sample every 90 s, the load low. The owner is away from 0 to 500 s, at the keyboard until
//! 880 s, and away again until a gap.
//!
//! | sample     |  0 |  1 |  2  |  3  |  4  |  5  |  6  |  7  |  8  |  9  |  10 |  11  |  12  |  13  | gap |  14  |
//! | ---        | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | ---  | ---  | ---  | --- | ---  |
//! | second     |  0 | 90 | 180 | 270 | 360 | 450 | 540 | 630 | 720 | 810 | 900 |  990 | 1080 | 1170 |     | 9000 |
//! | owner idle |  0 | 90 | 180 | 270 | 360 | 450 |  40 |   0 |   5 |   0 |  20 |  110 |  200 |  290 |     |    0 |
//!
//! A last sample before the gap, at 1260 s, tells that the second absence had lasted for 380 s.

use crate::recording::{MIB, Recording, sample};
use gleaner_schemas::findings::{
    AbsenceLengths, Findings, MemoryUsage, NotMeasured, OwnerState, Parameters,
};
use gleaner_schemas::rows::{FileRow, SampleRow};

pub(crate) const OWNER_IDLE_S: [i64; 16] = [
    0, 90, 180, 270, 360, 450, 40, 0, 5, 0, 20, 110, 200, 290, 380, 0,
];

/// Sample `i` with its sequence and second; more columns as `row` has them.
pub(crate) fn record(r: &mut Recording, i: usize, row: SampleRow) -> (i64, i64) {
    let (sequence, second) = (i as i64 + 1, if i < 15 { 90 * i as i64 } else { 9000 });
    let row = SampleRow {
        owner_idle_ms: Some(OWNER_IDLE_S[i] * 1000),
        boottime_ms: 1_000_000 + second * 1000,
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

fn lengths(f: &Findings, state: OwnerState) -> &AbsenceLengths {
    let of = |l: &&AbsenceLengths| l.size_class == "all" && l.state == state;
    f.absence_lengths.iter().find(of).unwrap()
}

#[test]
fn absences_presences_and_reclaims() {
    let f = found(host());
    // The owner left as the trace began; the second absence was cut by the gap.
    let idle = lengths(&f, OwnerState::Idle);
    assert_eq!(
        (idle.periods, idle.censored, idle.mean_s),
        (2, 1, Some(500.0))
    );
    // 500 to 880 s. The sample after the gap was not seen to last at all.
    let busy = lengths(&f, OwnerState::Busy);
    assert_eq!((busy.periods, busy.censored), (1, 0));
    assert_eq!((busy.mean_s, busy.p99_s), (Some(380.0), Some(380.0)));

    let [of_host, of_class, of_all] = f.reclaims.as_slice() else {
        panic!("{:?}", f.reclaims);
    };
    assert_eq!((of_host.host.as_deref(), of_host.reclaims), (Some("a"), 1));
    assert_eq!(of_host.observed_days, 1260.0 / 86_400.0);
    assert_eq!(of_host.reclaims_per_day, 86_400.0 / 1260.0);
    for (pooled, class) in [(of_class, "512-1024 MiB"), (of_all, "all")] {
        assert_eq!((&pooled.host, pooled.size_class.as_str()), (&None, class));
        assert_eq!((pooled.hosts_count, pooled.reclaims), (1, 1));
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
    assert_eq!((f.absence_lengths.len(), f.reclaims.len()), (0, 0));
}

fn file(file_id: i64, open_count: i64, cached_mib: Option<i64>) -> FileRow {
    FileRow {
        file_id,
        open_count,
        cached_bytes: cached_mib.map(|m| m * MIB),
        ..Default::default()
    }
}

/// The host with files. Absence 0: samples 0 to 5; presence: 6 to 9; absence 1: 10 to 14; the gap; sample 15.
///
/// - File 1, 40 MiB, is open at 7 and 8 alone: live in absence 0 and the presence.
/// - File 2, 20 MiB, is open at 11 alone: live in absence 1, which the gap cuts.
/// - File 3 is opened and closed again before 6, with 10 MiB then: live in absence 0 and the presence.
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
            files_whole: i == 0 || i == 15,
            ..sample(500)
        };
        let (sequence, second) = record(&mut r, i, row);
        let opened = FileRow {
            opened_count: Some(2),
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
    // 50 MiB in samples 0 to 9, 20 in 10 to 14, 50 in 15: 650 over 16.
    let live = &f.live_file_cache[0];
    assert_eq!(
        (live.size_class.as_str(), live.samples_count),
        ("512-1024 MiB", 16)
    );
    assert_eq!(live.mean_bytes, 650.0 / 16.0 * MIB as f64);
    // Squares: 11 × 2500 + 5 × 400 = 29500; less 650²/16; by 15.
    let sd = ((29_500.0 - 650.0 * 650.0 / 16.0) / 15.0_f64).sqrt();
    assert!((live.sd_bytes.unwrap() / MIB as f64 - sd).abs() < 1e-9);
    let share = live.mean_plus_sd_share.unwrap();
    assert!((share - (650.0 / 16.0 + sd) / 1024.0).abs() < 1e-8);
    assert_eq!(live.within_headroom_share, 1.0);
    // Absence 1 and what follows the gap could not be seen whole.
    assert_eq!(live.cut_samples_count, 6);

    let usage = |category: &str| {
        let of = |u: &&MemoryUsage| u.size_class == "all" && u.category == category;
        f.memory_usage.iter().find(of).unwrap()
    };
    // What is live and not in use now is not available: 50 or 20 MiB less what is in use.
    let paper = usage("available_paper");
    let not_in_use = 650 - 40 - 40 - 20 - 50;
    assert_eq!(
        paper.mean_bytes,
        (500.0 - f64::from(not_in_use) / 16.0) * MIB as f64
    );
    assert_eq!((paper.min_bytes, paper.max_bytes), (450 * MIB, 500 * MIB));
    // With the two in the places of file cache and available, the categories still sum to the same.
    let sum = |cache, available| usage(cache).mean_bytes + usage(available).mean_bytes;
    assert_eq!(
        sum("live_file_cache", "available_paper"),
        sum("file_cache", "available")
    );
}

#[test]
fn live_files_need_files_and_the_owner_in_sight() {
    let why = |f: &Findings| {
        let of = |n: &&NotMeasured| n.measure == "live_file_cache";
        f.not_measured.iter().find(of).map(|n| n.reason.clone())
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
