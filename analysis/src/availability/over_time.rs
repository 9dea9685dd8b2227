//! Memory over time as points for a chart: one point per sample of a short trace, one per stretch of samples
//! of a long one. The point of a stretch has the minimum of available memory, so that even a short dip stays
//! visible.

use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{HostMeasure, MeasureOutput, Pass};
use crate::trace::reads::ReadSet;
use crate::trace::samples::Samples;
use gleaner_schemas::findings::{Category, FindingList, Findings, MemoryPoint};
use std::ops::Range;

/// Maximum number of points per host: `MOST_POINTS` with few hosts, down to `LEAST_POINTS` with many.
const MOST_POINTS: usize = 2000;
const LEAST_POINTS: usize = 200;
/// Maximum number of points of all hosts together, unless `LEAST_POINTS` per host are more: a document of
/// some 60 MB.
const ALL_POINTS: usize = 200_000;

/// Largest number of points of a host, given the number of hosts.
pub(crate) fn points_of_each(hosts_count: usize) -> usize {
    (ALL_POINTS / hosts_count.max(1)).clamp(LEAST_POINTS, MOST_POINTS)
}

/// Memory of each host over time.
pub(crate) struct MemoryOverTime;

impl HostMeasure for MemoryOverTime {
    const OUTPUTS: &'static [MeasureOutput] = &[MeasureOutput::of::<MemoryPoint>(ReadSet::SAMPLES)];

    fn write(host: &mut HostHistory<'_>, pass: &Pass<'_>, findings: &mut Findings) -> Result<()> {
        if pass.parameters.wants(&[MemoryPoint::KEY]) {
            let (samples, segments) = (&host.trace.samples, &host.trace.segments);
            let idle = host.idleness.by_sample();
            let points = points(host.id(), samples, segments, &idle, pass.points_count);
            findings.memory_over_time.extend(points);
        }
        Ok(())
    }
}

/// Points of one host, one per stretch. A stretch ends at each gap, unless there are more gaps than half the
/// points.
fn points(
    host: &str,
    samples: &Samples,
    segments: &[Range<usize>],
    idle: &[Option<bool>],
    most: usize,
) -> Vec<MemoryPoint> {
    let mut runs = segments.to_vec();
    if runs.len() > most / 2 && samples.len() > most {
        runs = std::iter::once(0..samples.len()).collect();
    }
    let stretch = if samples.len() <= most {
        1
    } else {
        samples.len().div_ceil(most - runs.len())
    };
    let segment_of = |sample: usize| segments.partition_point(|s| s.end <= sample);
    let stretches = runs.into_iter().flat_map(|run| {
        run.clone()
            .step_by(stretch)
            .map(move |from| from..(from + stretch).min(run.end))
    });
    let mut segment_before = 0;
    stretches
        .map(|stretch| {
            let segment = segment_of(stretch.end - 1);
            let is_after_gap = segment != segment_before;
            segment_before = segment;
            point(host, samples, idle, stretch, is_after_gap)
        })
        .collect()
}

fn point(
    host: &str,
    samples: &Samples,
    idle: &[Option<bool>],
    stretch: Range<usize>,
    is_after_gap: bool,
) -> MemoryPoint {
    let category = |c: Category| mean(stretch.clone().filter_map(|i| samples.category(c, i)));
    let harvestable = || stretch.clone().filter_map(|i| samples.harvestable_bytes[i]);
    let available = || samples.available_bytes[stretch.clone()].iter().copied();
    MemoryPoint {
        host_id: host.to_owned(),
        time_ms: samples.time_ms[stretch.start],
        samples_count: stretch.len() as i64,
        is_after_gap,
        is_idle: idle[stretch.end - 1],
        static_kernel_bytes: category(Category::StaticKernel),
        balloon_bytes: category(Category::Balloon),
        dynamic_kernel_bytes: category(Category::DynamicKernel),
        reserve_bytes: category(Category::Reserve),
        process_bytes: category(Category::Process),
        file_cache_bytes: category(Category::FileCache),
        guest_bytes: category(Category::Guest),
        available_bytes: category(Category::Available).unwrap_or(0.0),
        min_available_bytes: available().min().unwrap_or(0),
        min_harvestable_bytes: harvestable().min(),
        harvestable_bytes: mean(harvestable()),
    }
}

fn mean(sizes: impl Iterator<Item = i64>) -> Option<f64> {
    let (sum, count) = sizes.fold((0.0, 0.0), |(sum, n), size| (sum + size as f64, n + 1.0));
    (count > 0.0).then(|| sum / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(available: Vec<i64>) -> Samples {
        let n = available.len();
        let mut categories = vec![vec![Some(1); n]; Category::ALL.len()];
        categories[Category::Available as usize] = available.iter().copied().map(Some).collect();
        categories[Category::Reserve as usize] = vec![None; n];
        Samples {
            time_ms: (0..n as i64).map(|i| i * 90).collect(),
            categories,
            available_bytes: available,
            harvestable_bytes: vec![None; n],
            ..Default::default()
        }
    }

    #[test]
    fn a_short_trace_keeps_each_sample_and_its_gaps() {
        let samples = samples(vec![5, 7, 9]);
        let points = points(
            "h",
            &samples,
            &[0..2, 2..3],
            &[None, Some(true), Some(false)],
            MOST_POINTS,
        );
        let found: Vec<_> = points
            .iter()
            .map(|p| (p.time_ms, p.available_bytes, p.is_after_gap, p.is_idle))
            .collect();
        assert_eq!(
            found,
            [
                (0, 5.0, false, None),
                (90, 7.0, false, Some(true)),
                (180, 9.0, true, Some(false))
            ]
        );
        assert_eq!(points[0].reserve_bytes, None);
        assert_eq!(points[0].min_harvestable_bytes, None);
    }

    #[test]
    fn a_long_trace_is_bounded_and_keeps_its_dips() {
        let mut available = vec![100; 13_440];
        available[7_001] = 3;
        let samples = samples(available);
        let idle = vec![None; samples.len()];
        let in_runs = |length: usize| -> Vec<Range<usize>> {
            let starts = (0..samples.len()).step_by(length);
            starts.map(|s| s..(s + length).min(samples.len())).collect()
        };
        for run_length in [1, 2, 10, 100, 13_440] {
            let segments = in_runs(run_length);
            let points = points("h", &samples, &segments, &idle, MOST_POINTS);
            assert!(
                points.len() <= MOST_POINTS,
                "runs of {run_length}: {}",
                points.len()
            );
            let counted: i64 = points.iter().map(|p| p.samples_count).sum();
            assert_eq!(counted, 13_440);
            let least = points.iter().map(|p| p.min_available_bytes).min();
            assert_eq!(least, Some(3));
            let gaps = points.iter().filter(|p| p.is_after_gap).count();
            assert!(gaps == segments.len() - 1 || run_length < 10, "{gaps}");
        }
    }
}
