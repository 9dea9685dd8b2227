//! Kaplan-Meier: how long periods last when some were cut before they ended.

/// One length, in milliseconds, and whether the period went on unseen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Length {
    pub(crate) ms: i64,
    pub(crate) censored: bool,
}

/// Mean length restricted to the longest one seen: the area under the Kaplan-Meier curve up to there,
/// in milliseconds. A period cut at its start counts, like one cut at its end, as having lasted
/// longer than seen. `lengths` must be sorted; `None` when there are none.
pub(crate) fn restricted_mean_ms(lengths: &[Length]) -> Option<f64> {
    if lengths.is_empty() {
        return None;
    }
    let mut at_risk = lengths.len() as f64;
    let mut survival = 1.0;
    let mut area = 0.0;
    let mut from_ms = 0;
    for same in lengths.chunk_by(|a, b| a.ms == b.ms) {
        let ended = same.iter().filter(|l| !l.censored).count() as f64;
        area += survival * (same[0].ms - from_ms) as f64;
        from_ms = same[0].ms;
        survival *= 1.0 - ended / at_risk;
        at_risk -= same.len() as f64;
    }
    Some(area)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted(lengths: &[(i64, bool)]) -> Vec<Length> {
        let mut lengths: Vec<Length> = lengths
            .iter()
            .map(|&(ms, censored)| Length { ms, censored })
            .collect();
        lengths.sort_unstable();
        lengths
    }

    #[test]
    fn worked_by_hand() {
        let cases = [
            (vec![], None),
            (vec![(10, false)], Some(10.0)),
            (vec![(10, true)], Some(10.0)),
            // Nothing cut: the plain mean.
            (vec![(10, false), (20, false), (60, false)], Some(30.0)),
            // 4 at risk; at 10 one ends: S = 3/4. At 20 one is cut. At 30 one of two ends: S = 3/8.
            // At 50 the last is cut. Area: 10 × 1 + 20 × 3/4 + 20 × 3/8.
            (
                vec![(10, false), (20, true), (30, false), (50, true)],
                Some(32.5),
            ),
            // One ends and one is cut at the same length: the end comes first. 10 + 10 × 2/3.
            (
                vec![(10, false), (10, true), (20, false)],
                Some(10.0 + 20.0 / 3.0),
            ),
        ];
        for (lengths, expected) in cases {
            match (restricted_mean_ms(&sorted(&lengths)), expected) {
                (Some(a), Some(b)) => assert!((a - b).abs() < 1e-9, "{lengths:?}: {a}"),
                (a, b) => assert_eq!(a, b, "{lengths:?}"),
            }
        }
    }

    /// The textbook's product, taken anew for each millisecond.
    fn slowly(lengths: &[Length]) -> f64 {
        let longest = lengths.iter().map(|l| l.ms).max().unwrap();
        (0..longest)
            .map(|t| {
                let mut survival = 1.0;
                for at in 1..=t {
                    let at_risk = lengths.iter().filter(|l| l.ms >= at).count();
                    let ended = lengths.iter().filter(|l| l.ms == at && !l.censored).count();
                    survival *= 1.0 - ended as f64 / at_risk as f64;
                }
                survival
            })
            .sum()
    }

    proptest! {
        #[test]
        fn equals_the_slow_version(lengths in prop::collection::vec((1..40i64, any::<bool>()), 1..30)) {
            let lengths = sorted(&lengths);
            let mean = restricted_mean_ms(&lengths).unwrap();
            prop_assert!((mean - slowly(&lengths)).abs() < 1e-6);
            // Never below the mean as seen, never above the longest.
            let seen = lengths.iter().map(|l| l.ms).sum::<i64>() as f64 / lengths.len() as f64;
            prop_assert!(mean > seen - 1e-6);
            prop_assert!(mean < lengths.last().unwrap().ms as f64 + 1e-6);
        }
    }
}
