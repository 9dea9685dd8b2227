//! The deepest dips of a host: runs of samples below a threshold, and the use of memory at the lowest sample.

use super::dips::Threshold;
use crate::statistics::distribution::Distribution;
use crate::trace::HostTrace;
use crate::trace::samples::Samples;
use gleaner_schemas::findings::{Category, Parameters, WorstDip};
use std::ops::Range;

/// Number of dips kept per threshold.
const MOST: usize = 3;

/// A dip, with its deepest sample.
#[derive(Debug)]
pub(crate) struct DeepestDip {
    pub(crate) record: WorstDip,
    pub(crate) sample: usize,
}

/// The deepest dips of each threshold, absolute thresholds first. Of equally deep dips, the longer comes
/// first, then the earlier.
pub(crate) fn of_host(trace: &HostTrace<'_>, parameters: &Parameters) -> Vec<DeepestDip> {
    let samples = &trace.samples;
    let mut found = Vec::new();
    for threshold in Threshold::all(parameters) {
        let mut runs = runs_below(threshold, samples, &trace.segments);
        runs.sort_by_key(|(run, deepest)| {
            let length = std::cmp::Reverse(run.len());
            (samples.available_bytes[*deepest], length, run.start)
        });
        let kept = runs.into_iter().take(MOST);
        found.extend(kept.map(|(run, sample)| DeepestDip {
            record: record(trace, threshold, &run, sample),
            sample,
        }));
    }
    if !found.is_empty() {
        let usual = |category: Category| {
            let sizes = samples.categories.get(category as usize)?.iter().flatten();
            Distribution::of(sizes.map(|&bytes| (bytes, 0))).median()
        };
        let dynamic_kernel = usual(Category::DynamicKernel);
        let (process, file_cache) = (usual(Category::Process), usual(Category::FileCache));
        for DeepestDip { record, .. } in &mut found {
            record.usual_dynamic_kernel_bytes = dynamic_kernel;
            record.usual_process_bytes = process;
            record.usual_file_cache_bytes = file_cache;
        }
    }
    found
}

/// Runs of samples below the threshold, none across a gap, each with the first sample of its minimum.
fn runs_below(
    threshold: Threshold,
    samples: &Samples,
    segments: &[Range<usize>],
) -> Vec<(Range<usize>, usize)> {
    let available = |at: usize| samples.available_bytes[at];
    let is_below = |at: usize| available(at) < threshold.on(samples.physical_bytes[at]);
    let mut runs: Vec<(Range<usize>, usize)> = Vec::new();
    for segment in segments {
        for at in segment.clone().filter(|&at| is_below(at)) {
            match runs.last_mut() {
                Some((run, deepest)) if run.end == at && at > segment.start => {
                    run.end = at + 1;
                    if available(at) < available(*deepest) {
                        *deepest = at;
                    }
                }
                _ => runs.push((at..at + 1, at)),
            }
        }
    }
    runs
}

/// Record of a dip; the caller fills in the usual figures.
fn record(
    trace: &HostTrace<'_>,
    threshold: Threshold,
    run: &Range<usize>,
    sample: usize,
) -> WorstDip {
    let samples = &trace.samples;
    let ends_a_segment = trace.segments.iter().any(|s| s.end == run.end);
    let to = if ends_a_segment { run.end - 1 } else { run.end };
    let (from_time_ms, to_time_ms) = (samples.time_ms[run.start], samples.time_ms[to]);
    WorstDip {
        host_id: trace.host().to_owned(),
        threshold_bytes: threshold.on(samples.physical_bytes[sample]),
        threshold_share: threshold.asked().1,
        from_time_ms,
        to_time_ms,
        duration_s: to_time_ms.saturating_sub(from_time_ms) as f64 / 1000.0,
        intervals_count: run.len() as i64,
        min_available_bytes: samples.available_bytes[sample],
        min_time_ms: samples.time_ms[sample],
        dynamic_kernel_bytes: samples.category(Category::DynamicKernel, sample),
        process_bytes: samples.category(Category::Process, sample),
        file_cache_bytes: samples.category(Category::FileCache, sample),
        ..WorstDip::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn samples(available: &[i64]) -> Samples {
        Samples {
            time_ms: (0..available.len() as i64).collect(),
            physical_bytes: vec![100; available.len()],
            available_bytes: available.to_vec(),
            ..Samples::default()
        }
    }

    #[test]
    fn runs_end_above_the_threshold_and_at_gaps() {
        let samples = samples(&[9, 3, 2, 2, 10, 1, 4, 9]);
        let below_ten = runs_below(Threshold::Share(0.1), &samples, &[0..3, 3..8]);
        assert_eq!(below_ten, [(0..3, 2), (3..4, 3), (5..8, 5)]);
        assert_eq!(runs_below(Threshold::Bytes(1), &samples, &[0..8]), []);
    }

    proptest! {
        #[test]
        fn runs_hold_every_sample_below_and_no_other(
            available in proptest::collection::vec(0..20_i64, 1..60),
            cuts in proptest::collection::btree_set(1..60_usize, 0..6),
        ) {
            let samples = samples(&available);
            let mut bounds = vec![0];
            bounds.extend(cuts.into_iter().filter(|&c| c < available.len()));
            bounds.push(available.len());
            let segments: Vec<_> = bounds.windows(2).map(|w| w[0]..w[1]).collect();
            let runs = runs_below(Threshold::Bytes(10), &samples, &segments);
            let below = (0..available.len()).filter(|&at| available[at] < 10);
            prop_assert!(runs.iter().flat_map(|(run, _)| run.clone()).eq(below));
            for (run, deepest) in &runs {
                prop_assert!(run.contains(deepest));
                prop_assert_eq!(available[run.clone()].iter().min(), Some(&available[*deepest]));
                prop_assert!(segments.iter().any(|s| s.start <= run.start && run.end <= s.end));
            }
        }
    }
}
