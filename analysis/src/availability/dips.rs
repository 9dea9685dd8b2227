//! Dips: sample intervals in which available memory lies below a threshold (Acharya & Setia, Table 3).

use crate::trace::HostTrace;
use gleaner_schemas::findings::{Dip, Parameters};

/// One finding a threshold, absolute ones first.
pub(crate) fn of_host(trace: &HostTrace<'_>, parameters: &Parameters) -> Vec<Dip> {
    let samples = &trace.samples;
    let available = || samples.available_bytes.iter();
    // The first, where several are as low.
    let least = available()
        .zip(&samples.time_ms)
        .min_by_key(|(bytes, _)| **bytes);
    let (Some((&min_available_bytes, &min_time_ms)), Some(&physical_bytes)) =
        (least, samples.physical_bytes.last())
    else {
        return Vec::new();
    };
    let below = |physical: &[i64], limit: &dyn Fn(i64) -> i64| {
        let all = available().zip(physical);
        all.filter(|(bytes, whole)| **bytes < limit(**whole))
            .count() as i64
    };
    let record = |threshold_bytes, threshold_share, intervals| Dip {
        host: trace.host().to_owned(),
        threshold_bytes,
        threshold_share,
        intervals,
        samples_count: samples.len() as i64,
        min_available_bytes,
        min_time_ms,
    };
    let absolute = parameters.dip_threshold_bytes.iter().map(|&bytes| {
        let intervals = below(&samples.physical_bytes, &|_| bytes);
        record(bytes, None, intervals)
    });
    let relative = parameters.dip_threshold_shares.iter().map(|&share| {
        let of = |physical: i64| (physical as f64 * share).round() as i64;
        let intervals = below(&samples.physical_bytes, &of);
        record(of(physical_bytes), Some(share), intervals)
    });
    absolute.chain(relative).collect()
}
