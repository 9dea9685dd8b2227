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

use crate::recording::{Recording, sample};
use gleaner_schemas::findings::{AbsenceLengths, Findings, OwnerState, Parameters};
use gleaner_schemas::rows::SampleRow;

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
