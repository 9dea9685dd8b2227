//! Cumulative incidence: the share that has ended by some age, by cause (Aalen-Johansen, for competing
//! risks).
//!
//! A Kaplan-Meier curve per cause, with the other causes censored, would not do: its complement says what
//! would happen if the other causes did not exist, and these complements would sum to more than 1. Cumulative
//! incidences and the survival sum to 1.

use super::Length;

/// Outcomes of the subjects at one age.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fates {
    pub(crate) age_ms: i64,
    /// Share that lasts longer than `age_ms`.
    pub(crate) survival: f64,
    /// Share that has ended by `age_ms`, by cause.
    pub(crate) ended: Vec<f64>,
}

/// Outcomes at each of `ages_ms` (sorted); none at ages beyond the longest of `lengths` (sorted) if that
/// length is censored. Causes from `causes_count` on count as censored.
pub(crate) fn cumulative_incidence(
    lengths: &[Length],
    causes_count: usize,
    ages_ms: &[i64],
) -> Vec<Fates> {
    let mut found = Vec::with_capacity(ages_ms.len());
    let mut ages = ages_ms.iter().copied().peekable();
    let mut survival = 1.0;
    let mut ended = vec![0.0; causes_count];
    let mut at_risk = lengths.len();
    for same in lengths.chunk_by(|a, b| a.ms == b.ms) {
        while let Some(age_ms) = ages.next_if(|&age| age < same[0].ms) {
            found.push(Fates {
                age_ms,
                survival,
                ended: ended.clone(),
            });
        }
        let each = survival / at_risk as f64;
        let mut all = 0;
        for cause in same.iter().filter_map(|l| l.cause) {
            if let Some(share) = ended.get_mut(cause) {
                *share += each;
                all += 1;
            }
        }
        survival *= (at_risk - all) as f64 / at_risk as f64;
        at_risk -= same.len();
    }
    let longest = lengths.last().map_or(i64::MIN, |l| l.ms);
    for age_ms in ages {
        if age_ms > longest && (survival > 0.0 || lengths.is_empty()) {
            break;
        }
        found.push(Fates {
            age_ms,
            survival,
            ended: ended.clone(),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::kaplan_meier::Curve;
    use proptest::prelude::*;

    const CAUSES: usize = 3;

    fn sorted(lengths: &[(i64, Option<usize>)]) -> Vec<Length> {
        let mut lengths: Vec<Length> = lengths
            .iter()
            .map(|&(ms, cause)| Length { ms, cause })
            .collect();
        lengths.sort_unstable();
        lengths
    }

    #[test]
    fn worked_by_hand() {
        let lengths = sorted(&[
            (10, Some(0)),
            (20, None),
            (30, Some(1)),
            (30, Some(0)),
            (40, None),
        ]);
        let found = cumulative_incidence(&lengths, 2, &[5, 10, 30, 40, 41]);
        // 5 are at risk: at 10, 1/5 ends by cause 0. At 30, 3 are at risk with 4/5 left: 4/15 for each
        // of two causes. At 40 the last is censored: 41 is unknown.
        let third = 4.0 / 15.0;
        let expected = [
            (5, 1.0, [0.0, 0.0]),
            (10, 0.8, [0.2, 0.0]),
            (30, third, [0.2 + third, third]),
            (40, third, [0.2 + third, third]),
        ];
        assert_eq!(found.len(), expected.len());
        for (fates, (age_ms, survival, ended)) in found.iter().zip(expected) {
            assert_eq!(fates.age_ms, age_ms);
            assert!((fates.survival - survival).abs() < 1e-12);
            assert!(
                fates
                    .ended
                    .iter()
                    .zip(ended)
                    .all(|(a, b)| (a - b).abs() < 1e-12)
            );
        }
        // If the last length has ended, later ages are known.
        let all_ended = cumulative_incidence(&sorted(&[(10, Some(0))]), 1, &[5, 10, 99]);
        let shares: Vec<_> = all_ended.iter().map(|f| (f.survival, f.ended[0])).collect();
        assert_eq!(shares, [(1.0, 0.0), (0.0, 1.0), (0.0, 1.0)]);
        assert_eq!(cumulative_incidence(&[], 1, &[5]), []);
    }

    /// Efron's redistribution: each subject starts with the same mass; a censored one passes its mass in
    /// equal parts to those that remain.
    fn slowly(lengths: &[Length], age_ms: i64) -> (f64, [f64; CAUSES]) {
        let n = lengths.len();
        let mut mass = vec![1.0 / n as f64; n];
        let mut ended = [0.0; CAUSES];
        let mut gone = 0.0;
        // Of equal lengths, ends come before censorings.
        let mut order = lengths.to_vec();
        order.sort_by_key(|l| (l.ms, l.cause.is_none()));
        for (i, length) in order.iter().enumerate().filter(|(_, l)| l.ms <= age_ms) {
            match length.cause {
                Some(cause) => {
                    ended[cause] += mass[i];
                    gone += mass[i];
                }
                None => {
                    let part = mass[i] / (n - i - 1).max(1) as f64;
                    mass[i + 1..].iter_mut().for_each(|m| *m += part);
                }
            }
        }
        (1.0 - gone, ended)
    }

    proptest! {
        #[test]
        fn equals_the_slow_version(
            lengths in prop::collection::vec(
                (1..30i64, prop::option::weighted(0.7, 0..CAUSES)), 1..25
            ),
        ) {
            let lengths = sorted(&lengths);
            let ages: Vec<i64> = (0..32).collect();
            let found = cumulative_incidence(&lengths, CAUSES, &ages);
            let longest = lengths.last().unwrap().ms;
            prop_assert!(found.len() as i64 > longest);
            let curve = Curve::of(&lengths);
            for fates in &found {
                let (survival, ended) = slowly(&lengths, fates.age_ms);
                prop_assert!((fates.survival - survival).abs() < 1e-9);
                for (a, b) in fates.ended.iter().zip(ended) {
                    prop_assert!((a - b).abs() < 1e-9);
                }
                let sum: f64 = fates.ended.iter().sum();
                prop_assert!((sum + fates.survival - 1.0).abs() < 1e-9);
                let step = curve.steps.iter().rfind(|s| s.ms <= fates.age_ms);
                prop_assert!((fates.survival - step.map_or(1.0, |s| s.survival)).abs() < 1e-9);
            }
        }
    }
}
