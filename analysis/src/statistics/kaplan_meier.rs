//! Kaplan-Meier: the share that lasts longer than t if some lengths are censored (cut before their end).
//!
//! Assumes that censoring is independent of the remaining length. If one length ends and another of the same
//! length is censored, the end comes first.

use super::{Interval, Length, Z_95};

/// Events at one length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) ms: i64,
    /// Number that lasted at least `ms`.
    pub(crate) at_risk: u64,
    /// Number that ended at `ms`.
    pub(crate) ended: u64,
    /// Number that were censored at `ms`.
    pub(crate) censored: u64,
    /// Share that lasts longer than `ms`.
    pub(crate) survival: f64,
    /// Variance of `survival`, by Greenwood's formula.
    pub(crate) variance: f64,
    /// Interval of `survival` on the scale of log(-log), which keeps it within 0 and 1 (Kalbfleisch &
    /// Prentice; as in lifelines, R's `log-log` and Stata).
    pub(crate) interval: Interval,
}

/// Area under the curve up to a horizon.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RestrictedMean {
    pub(crate) mean_ms: f64,
    /// Variance of the estimate, from Greenwood's formula, in square milliseconds.
    pub(crate) variance_ms2: f64,
    /// End of the area: the requested horizon, or the longest length if that is less.
    pub(crate) horizon_ms: i64,
}

/// The estimated curve: 1 before the first step, constant after each step.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Curve {
    /// A step for each distinct length, censored ones included, in order.
    pub(crate) steps: Vec<Step>,
}

impl Curve {
    /// Curve of `lengths`, which must be sorted.
    pub(crate) fn of(lengths: &[Length]) -> Self {
        let mut at_risk = lengths.len() as u64;
        let mut survival = 1.0;
        let mut greenwood = 0.0;
        let step = |same: &[Length]| {
            let ended = same.iter().filter(|l| l.cause.is_some()).count() as u64;
            let step = Step {
                ms: same[0].ms,
                at_risk,
                ended,
                censored: same.len() as u64 - ended,
                survival: 0.0,
                variance: 0.0,
                interval: Interval {
                    low: 0.0,
                    high: 0.0,
                },
            };
            survival *= (at_risk - ended) as f64 / at_risk as f64;
            greenwood += step.greenwood();
            at_risk -= same.len() as u64;
            Step {
                survival,
                variance: survival * survival * greenwood,
                interval: log_log_interval(survival, greenwood),
                ..step
            }
        };
        Self {
            steps: lengths.chunk_by(|a, b| a.ms == b.ms).map(step).collect(),
        }
    }

    /// Returns at most `most` steps (2 or more) that keep the curve's shape. Half of them are spread evenly
    /// over the curve's fall, half over the logarithm of the length. A step's counts are those since the step
    /// before.
    pub(crate) fn thinned(&self, most: usize) -> Vec<Step> {
        let (Some(first), Some(last)) = (self.steps.first(), self.steps.last()) else {
            return Vec::new();
        };
        if self.steps.len() <= most.max(2) {
            return self.steps.clone();
        }
        let each = (most / 2).max(2) - 1;
        let at = |k: usize| k as f64 / each as f64;
        let fall = first.survival - last.survival;
        let ratio = last.ms.max(1) as f64 / first.ms.max(1) as f64;
        let mut kept: Vec<usize> = Vec::with_capacity(most);
        for k in 1..each {
            let survival = first.survival - fall * at(k);
            let ms = first.ms.max(1) as f64 * ratio.powf(at(k));
            kept.push(self.steps.partition_point(|s| s.survival > survival));
            kept.push(
                self.steps
                    .partition_point(|s| s.ms as f64 <= ms)
                    .saturating_sub(1),
            );
        }
        kept.extend([0, self.steps.len() - 1]);
        kept.sort_unstable();
        kept.dedup();
        let mut next = 0;
        let merged = |last: usize| {
            let steps = self.steps.get(next..=last)?;
            next = last + 1;
            Some(Step {
                at_risk: steps.first()?.at_risk,
                ended: steps.iter().map(|s| s.ended).sum(),
                censored: steps.iter().map(|s| s.censored).sum(),
                ..*steps.last()?
            })
        };
        kept.into_iter().filter_map(merged).collect()
    }

    /// The shortest length that at most half outlast; `None` if more than half outlast the curve's end.
    pub(crate) fn median_ms(&self) -> Option<i64> {
        // The survival is a product: through rounding, a survival of one half may come out slightly above it.
        let half = 0.5 + 1e-12;
        let step = self.steps.iter().find(|step| step.survival <= half)?;
        Some(step.ms)
    }

    /// Mean of the lengths, each limited to `horizon_ms`: the area under the curve up to there. The area ends
    /// at the longest length, beyond which the curve is unknown. `None` without lengths.
    pub(crate) fn restricted_mean(&self, horizon_ms: i64) -> Option<RestrictedMean> {
        let horizon_ms = horizon_ms.min(self.steps.last()?.ms);
        let within = self.steps.partition_point(|step| step.ms <= horizon_ms);
        // The steps are visited from the right, because each step's variance is weighted by the area to its
        // right.
        let (mut area, mut variance_ms2) = (0.0, 0.0);
        let mut to_ms = horizon_ms;
        for step in self.steps[..within].iter().rev() {
            area += step.survival * (to_ms - step.ms) as f64;
            variance_ms2 += area * area * step.greenwood();
            to_ms = step.ms;
        }
        Some(RestrictedMean {
            mean_ms: area + to_ms as f64,
            variance_ms2,
            horizon_ms,
        })
    }
}

impl Step {
    /// d / (n (n - d)): the step's part of the variance of the survival's logarithm. 0 if all end, since no
    /// survival is left to vary.
    fn greenwood(&self) -> f64 {
        let left = self.at_risk - self.ended;
        if left == 0 {
            return 0.0;
        }
        self.ended as f64 / (self.at_risk as f64 * left as f64)
    }
}

impl RestrictedMean {
    /// Interval by the normal distribution, limited to 0 and the horizon.
    pub(crate) fn interval_ms(&self) -> Interval {
        let reach = Z_95 * self.variance_ms2.sqrt();
        Interval {
            low: (self.mean_ms - reach).max(0.0),
            high: (self.mean_ms + reach).min(self.horizon_ms as f64),
        }
    }
}

/// Interval of `survival`; `greenwood` is the variance of its logarithm.
fn log_log_interval(survival: f64, greenwood: f64) -> Interval {
    // At a survival of 1 or 0 the logarithms have no value; lifelines returns the same.
    if survival >= 1.0 || survival <= 0.0 {
        return Interval {
            low: survival,
            high: survival,
        };
    }
    let log = survival.ln();
    let centre = (-log).ln();
    let reach = Z_95 * greenwood.sqrt() / -log;
    Interval {
        low: (-(centre + reach).exp()).exp(),
        high: (-(centre - reach).exp()).exp(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted(lengths: &[(i64, bool)]) -> Vec<Length> {
        let mut lengths: Vec<Length> = lengths
            .iter()
            .map(|&(ms, ended)| Length {
                ms,
                cause: ended.then_some(0),
            })
            .collect();
        lengths.sort_unstable();
        lengths
    }

    fn near(a: f64, b: f64, by: f64) -> bool {
        (a - b).abs() <= by
    }

    /// Remission of leukaemia under 6-mercaptopurine, in weeks (Freireich et al. 1963): the textbooks' table,
    /// with standard errors and limits as Stata prints them.
    #[test]
    fn the_textbook_table() {
        let weeks = [
            (6, true),
            (6, true),
            (6, true),
            (6, false),
            (7, true),
            (9, false),
            (10, true),
            (10, false),
            (11, false),
            (13, true),
            (16, true),
            (17, false),
            (19, false),
            (20, false),
            (22, true),
            (23, true),
            (25, false),
            (32, false),
            (32, false),
            (34, false),
            (35, false),
        ];
        let curve = Curve::of(&sorted(&weeks));
        let table = [
            (6, 21, 3, 1, 0.8571, 0.0764, 0.6197, 0.9516),
            (7, 17, 1, 0, 0.8067, 0.0869, 0.5631, 0.9228),
            (10, 15, 1, 1, 0.7529, 0.0963, 0.5032, 0.8894),
            (13, 12, 1, 0, 0.6902, 0.1068, 0.4316, 0.8491),
            (16, 11, 1, 0, 0.6275, 0.1141, 0.3675, 0.8049),
            (22, 7, 1, 0, 0.5378, 0.1282, 0.2678, 0.7468),
            (23, 6, 1, 0, 0.4482, 0.1346, 0.1881, 0.6801),
        ];
        let ends: Vec<&Step> = curve.steps.iter().filter(|s| s.ended > 0).collect();
        assert_eq!(ends.len(), table.len());
        for (step, row) in ends.iter().zip(table) {
            let (ms, at_risk, ended, censored, survival, error, low, high) = row;
            assert_eq!(
                (step.ms, step.at_risk, step.ended, step.censored),
                (ms, at_risk, ended, censored)
            );
            let figures = [
                (step.survival, survival),
                (step.variance.sqrt(), error),
                (step.interval.low, low),
                (step.interval.high, high),
            ];
            for (found, printed) in figures {
                assert!(
                    near(found, printed, 0.000_051),
                    "week {ms}: {found} is not {printed}"
                );
            }
        }
        assert_eq!(curve.median_ms(), Some(23));
    }

    #[test]
    fn ends_of_the_curve() {
        let curve = Curve::of(&sorted(&[(5, false), (10, true), (10, true)]));
        let one = Interval {
            low: 1.0,
            high: 1.0,
        };
        let nothing = Interval {
            low: 0.0,
            high: 0.0,
        };
        assert_eq!(
            (curve.steps[0].interval, curve.steps[0].variance),
            (one, 0.0)
        );
        assert_eq!(
            (curve.steps[1].interval, curve.steps[1].variance),
            (nothing, 0.0)
        );
        assert_eq!(Curve::of(&[]).median_ms(), None);
        assert_eq!(Curve::of(&[]).restricted_mean(10), None);
        // First curve: more than half outlast its end. Second curve: 3/4 × 2/3 is a half in spite of
        // rounding.
        assert_eq!(
            Curve::of(&sorted(&[(5, true), (9, false), (9, false)])).median_ms(),
            None
        );
        let half = [(1, true), (2, true), (3, false), (3, false)];
        assert_eq!(Curve::of(&sorted(&half)).median_ms(), Some(2));
    }

    #[test]
    fn restricted_means_worked_by_hand() {
        // 4 are at risk; at 10, one ends: S = 3/4. At 20, one is censored. At 30, one of two ends: S = 3/8.
        // At 50, the last is censored.
        let curve = Curve::of(&sorted(&[(10, true), (20, false), (30, true), (50, false)]));
        let to_the_end = curve.restricted_mean(1000).unwrap();
        // 10 × 1 + 20 × 3/4 + 20 × 3/8; the area right of 10 is 22.5, right of 30 it is 7.5.
        assert!(near(to_the_end.mean_ms, 32.5, 1e-9));
        let variance = 22.5 * 22.5 / 12.0 + 7.5 * 7.5 / 2.0;
        assert!(near(to_the_end.variance_ms2, variance, 1e-9));
        assert_eq!(to_the_end.horizon_ms, 50);
        // With a horizon of 30, an end at the horizon itself changes nothing.
        let to_30 = curve.restricted_mean(30).unwrap();
        assert!(near(to_30.mean_ms, 25.0, 1e-9));
        assert!(near(to_30.variance_ms2, 15.0 * 15.0 / 12.0, 1e-9));
        let reach = Z_95 * 15.0 / 12f64.sqrt();
        assert!(near(to_30.interval_ms().low, 25.0 - reach, 1e-9));
        assert_eq!(to_30.interval_ms().high, 30.0);
        // This horizon lies before the first end, so every length reaches it.
        assert_eq!(curve.restricted_mean(5).unwrap().mean_ms, 5.0);
        assert_eq!(curve.restricted_mean(5).unwrap().variance_ms2, 0.0);
    }

    fn ended(length: &Length) -> bool {
        length.cause.is_some()
    }

    /// The textbook's product, computed separately for each time.
    fn survival_slowly(lengths: &[Length], t: i64) -> f64 {
        (1..=t)
            .map(|at| {
                let at_risk = lengths.iter().filter(|l| l.ms >= at).count().max(1);
                let end = lengths.iter().filter(|l| l.ms == at && ended(l)).count();
                1.0 - end as f64 / at_risk as f64
            })
            .product()
    }

    fn area_slowly(lengths: &[Length], from: i64, to: i64) -> f64 {
        (from..to).map(|t| survival_slowly(lengths, t)).sum()
    }

    proptest! {
        #[test]
        fn equals_the_slow_version(
            lengths in prop::collection::vec((1..30i64, any::<bool>()), 1..25),
            horizon in 1..40i64,
        ) {
            let lengths = sorted(&lengths);
            let curve = Curve::of(&lengths);
            let all: u64 = curve.steps.iter().map(|s| s.ended + s.censored).sum();
            prop_assert_eq!(all, lengths.len() as u64);
            let terms = |to: i64| {
                lengths.chunk_by(|a, b| a.ms == b.ms).filter(move |l| l[0].ms <= to).map(|same| {
                    let n = lengths.iter().filter(|l| l.ms >= same[0].ms).count() as f64;
                    let d = same.iter().filter(|l| ended(l)).count() as f64;
                    (same[0].ms, if n > d { d / (n * (n - d)) } else { 0.0 })
                })
            };
            for step in &curve.steps {
                let survival = survival_slowly(&lengths, step.ms);
                prop_assert!(near(step.survival, survival, 1e-9));
                let greenwood: f64 = terms(step.ms).map(|(_, term)| term).sum();
                prop_assert!(near(step.variance, survival * survival * greenwood, 1e-9));
                prop_assert!(step.interval.low <= step.survival + 1e-12);
                prop_assert!(step.interval.high >= step.survival - 1e-12);
                prop_assert!((0.0..=1.0).contains(&step.interval.low));
                prop_assert!((0.0..=1.0).contains(&step.interval.high));
            }
            let median = (1..30).find(|&t| survival_slowly(&lengths, t) <= 0.5 + 1e-12);
            prop_assert_eq!(curve.median_ms(), median);

            let mean = curve.restricted_mean(horizon).unwrap();
            let to = horizon.min(lengths.last().unwrap().ms);
            prop_assert_eq!(mean.horizon_ms, to);
            prop_assert!(near(mean.mean_ms, area_slowly(&lengths, 0, to), 1e-9));
            let variance: f64 = terms(to)
                .map(|(ms, term)| area_slowly(&lengths, ms, to).powi(2) * term)
                .sum();
            prop_assert!(near(mean.variance_ms2, variance, 1e-9));
        }

        /// The curve changes little between kept points, and no subject is counted twice.
        #[test]
        fn thinned_curves_keep_their_shape(
            lengths in prop::collection::vec((1..1_000_000i64, any::<bool>()), 1..400),
            most in 2..80usize,
        ) {
            let curve = Curve::of(&sorted(&lengths));
            let thinned = curve.thinned(most);
            prop_assert!(thinned.len() <= most.max(2));
            prop_assert!(thinned.windows(2).all(|w| w[0].ms < w[1].ms));
            let counts = |steps: &[Step]| {
                steps.iter().fold((0, 0), |sum, s| (sum.0 + s.ended, sum.1 + s.censored))
            };
            prop_assert_eq!(counts(&thinned), counts(&curve.steps));
            prop_assert_eq!(thinned.last().map(|s| s.survival), curve.steps.last().map(|s| s.survival));
            let mut at_risk = lengths.len() as u64;
            for step in &thinned {
                prop_assert_eq!(step.at_risk, at_risk);
                at_risk -= step.ended + step.censored;
                let whole = curve.steps.iter().find(|s| s.ms == step.ms).unwrap();
                prop_assert_eq!((step.survival, step.interval), (whole.survival, whole.interval));
            }
            // Between two points, the curve falls by at most its own steepest step plus one part of the even
            // spread.
            let fall = curve.steps[0].survival - curve.steps.last().unwrap().survival;
            let part = fall / ((most / 2).max(2) - 1) as f64;
            let survivals: Vec<f64> = curve.steps.iter().map(|s| s.survival).collect();
            let steepest = survivals.windows(2).map(|w| w[0] - w[1]).fold(0.0, f64::max);
            for pair in thinned.windows(2) {
                prop_assert!(pair[0].survival - pair[1].survival <= part + steepest + 1e-9);
            }
        }

        /// Without censored lengths, the curve is a plain count.
        #[test]
        fn nothing_cut(lengths in prop::collection::vec(1..1000i64, 1..50)) {
            let n = lengths.len() as f64;
            let curve = Curve::of(&sorted(&lengths.iter().map(|&ms| (ms, true)).collect::<Vec<_>>()));
            for step in &curve.steps {
                let longer = lengths.iter().filter(|&&ms| ms > step.ms).count() as f64;
                prop_assert!(near(step.survival, longer / n, 1e-9));
                // The variance is that of the binomial distribution.
                let share = longer / n;
                prop_assert!(near(step.variance, share * (1.0 - share) / n, 1e-9));
            }
            let mean = curve.restricted_mean(i64::MAX).unwrap().mean_ms;
            prop_assert!(near(mean, lengths.iter().sum::<i64>() as f64 / n, 1e-6));
        }
    }
}
