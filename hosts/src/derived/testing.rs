//! Generated samples for the tests of idle and busy periods.

use gleaner_policy::idle::Observation;
use proptest::prelude::*;

/// A minute, in ms.
pub(super) const MIN: i64 = 60_000;
/// Load below the limit.
pub(super) const LOW: Option<f64> = Some(0.1);
/// Load above the limit.
pub(super) const HIGH: Option<f64> = Some(0.9);

/// A sample as a tuple: its minute, minutes since the owner was active, load.
pub(super) type MadeSample = (i64, Option<i64>, Option<f64>);

pub(super) fn samples(rows: &[MadeSample]) -> Vec<Observation> {
    let sample = |&(minute, owner_idle, load5): &MadeSample| Observation {
        time_ms: minute * MIN,
        owner_idle_ms: owner_idle.map(|minutes| minutes * MIN),
        load5,
    };
    rows.iter().map(sample).collect()
}

/// Up to 60 samples in order of time, with random or unknown owner activity and load.
pub(super) fn synthetic_samples() -> impl Strategy<Value = Vec<MadeSample>> {
    let step = (
        1..6i64,
        prop::option::weighted(0.9, 0..20i64),
        prop::option::weighted(0.9, 0.0..0.5f64),
    );
    prop::collection::vec(step, 0..60).prop_map(|steps| {
        let mut minute = 0;
        let sample = |(step, owner_idle, load5)| {
            minute += step;
            (minute, owner_idle, load5)
        };
        steps.into_iter().map(sample).collect()
    })
}
