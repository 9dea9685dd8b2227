//! Thins the points of a figure without losing a dip or a peak.

use gleaner_schemas::findings::MemoryPoint;

/// Number of points that a figure draws of one host: half-hours of a week, three points each.
pub(super) const POINTS_DRAWN: usize = 1000;

/// Keeps about `most` of these points, unchanged. From each stretch, the points with the least and the most
/// available memory and the point with the most process memory are kept; from each run, both ends. So the
/// drawing shows all extremes that were measured.
pub(super) fn thin<'a>(runs: &[Vec<&'a MemoryPoint>], most: usize) -> Vec<Vec<&'a MemoryPoint>> {
    let all: usize = runs.iter().map(Vec::len).sum();
    if all <= most {
        return runs.to_vec();
    }
    runs.iter()
        .map(|run| {
            let stretches = (run.len() * most / all / 3).max(1);
            thin_run(run, run.len().div_ceil(stretches))
        })
        .collect()
}

fn thin_run<'a>(run: &[&'a MemoryPoint], stretch_points: usize) -> Vec<&'a MemoryPoint> {
    let mut kept: Vec<usize> = vec![0, run.len().saturating_sub(1)];
    for start in (0..run.len()).step_by(stretch_points.max(1)) {
        let stretch = start..(start + stretch_points).min(run.len());
        let (mut least, mut most, mut busiest) = (start, start, start);
        for at in stretch {
            let point = run[at];
            if point.min_available_bytes < run[least].min_available_bytes {
                least = at;
            }
            if point.available_bytes > run[most].available_bytes {
                most = at;
            }
            if point.process_bytes > run[busiest].process_bytes {
                busiest = at;
            }
        }
        kept.extend([least, most, busiest]);
    }
    kept.sort_unstable();
    kept.dedup();
    kept.into_iter()
        .filter_map(|at| run.get(at).copied())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn points(values: &[(i64, i64)]) -> Vec<MemoryPoint> {
        let point = |(at, (available, process)): (usize, &(i64, i64))| MemoryPoint {
            time_ms: at as i64,
            available_bytes: (available + 3) as f64,
            min_available_bytes: *available,
            process_bytes: (*process >= 0).then_some(*process as f64),
            ..MemoryPoint::default()
        };
        values.iter().enumerate().map(point).collect()
    }

    proptest! {
        #[test]
        fn dips_and_peaks_stay(
            values in proptest::collection::vec(proptest::collection::vec((-50_i64..1000, -5_i64..1000), 1..120), 0..8),
            most in 3_usize..200,
        ) {
            let points: Vec<Vec<MemoryPoint>> = values.iter().map(|run| points(run)).collect();
            let runs: Vec<Vec<&MemoryPoint>> = points.iter().map(|run| run.iter().collect()).collect();
            let thinned = thin(&runs, most);
            let drawn: usize = thinned.iter().map(Vec::len).sum();
            prop_assert!(drawn <= most + 5 * runs.len(), "{drawn} of at most {most}");
            prop_assert_eq!(thinned.len(), runs.len());
            for (run, kept) in runs.iter().zip(&thinned) {
                let least = |points: &[&MemoryPoint]| points.iter().map(|p| p.min_available_bytes).min();
                let peak = |points: &[&MemoryPoint]| points.iter().filter_map(|p| p.process_bytes).fold(-1.0, f64::max);
                prop_assert_eq!(least(run), least(kept));
                prop_assert_eq!(peak(run), peak(kept));
                prop_assert_eq!(run.first(), kept.first());
                prop_assert_eq!(run.last(), kept.last());
                prop_assert!(kept.windows(2).all(|w| w[0].time_ms < w[1].time_ms));
            }
        }
    }

    #[test]
    fn few_points_stay_as_they_are() {
        let points = points(&[(1, 2), (3, 4), (5, 6)]);
        let runs = [points.iter().collect::<Vec<_>>()];
        assert_eq!(thin(&runs, 3), runs);
        assert!(thin(&[], 3).is_empty());
    }
}
