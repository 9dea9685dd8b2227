//! Dips: sample intervals in which available memory lies below a threshold (Acharya & Setia, Table 3).

use crate::samples::Samples;
use gleaner_schemas::findings::Dip;

/// One finding a threshold; none without samples.
pub(crate) fn of_host(host: &str, samples: &Samples, thresholds: &[i64]) -> Vec<Dip> {
    let available = || samples.available_bytes.iter();
    // The first, where several are as low.
    let Some((&min_available_bytes, &min_time_ms)) = available()
        .zip(&samples.time_ms)
        .min_by_key(|(bytes, _)| **bytes)
    else {
        return Vec::new();
    };
    thresholds
        .iter()
        .map(|&threshold_bytes| Dip {
            host: host.to_owned(),
            threshold_bytes,
            intervals: available().filter(|b| **b < threshold_bytes).count() as i64,
            samples_count: samples.len() as i64,
            min_available_bytes,
            min_time_ms,
        })
        .collect()
}
