//! Calibration: observed frequencies compared with forecast probabilities, as Murphy's parts of the Brier
//! score and as the calibration slope.
//!
//! The sums are over bins of probability. A bin has `n` of all `N` instants, the mean forecast `f` and the
//! observed share `o`; `b` is the observed share over all bins:
//!
//! ```text
//! reliability = Σ n (f − o)² / N     resolution = Σ n (o − b)² / N     uncertainty = b (1 − b)
//! Brier score ≈ reliability − resolution + uncertainty
//! ```
//!
//! The two sides differ by the variation of forecasts within a bin (A. H. Murphy 1973, A New Vector Partition
//! of the Probability Score). The slope is `β` of the logistic regression of the outcome on the forecast's
//! log-odds, `log-odds(stays) = α + β · log-odds(f)` (D. R. Cox 1958): 1 if forecasts are as far apart as
//! they should be, above 1 if they are too close together, below 1 if they are too far apart.

use gleaner_policy::forecast::log_odds;
use std::collections::BTreeMap;

/// Bounds of the bins of probability; narrow near 1, where most forecasts are.
pub(super) const BOUNDS: [f64; 13] = [
    0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0,
];
const BINS_COUNT: usize = BOUNDS.len() - 1;

/// Width of the bins of log-odds; the regression uses the mean log-odds of each bin.
const LOG_ODDS_WIDTH: f64 = 0.1;
/// Maximum steps of Newton's method; after these it counts as not converging.
const MOST_STEPS: usize = 100;
/// Largest step of one coefficient, so that the first steps do not overshoot.
const LARGEST_STEP: f64 = 1.0;
const CONVERGED: f64 = 1e-9;
/// A slope beyond this means that the forecasts (nearly) separate the outcomes: there is no finite slope.
const STEEPEST: f64 = 50.0;

/// Forecasts of one model, and their outcomes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Calibration {
    pub(super) bins: [Bin; BINS_COUNT],
    by_log_odds: BTreeMap<i32, LogOddsBin>,
}

/// Forecasts of about the same probability.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Bin {
    pub(super) instants: u64,
    /// Sum of the forecasts.
    pub(super) forecast: f64,
    /// Number of instants whose region stayed available.
    pub(super) stayed: u64,
}

/// Forecasts of about the same log-odds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct LogOddsBin {
    instants: u64,
    /// Sum of the forecasts' log-odds.
    log_odds: f64,
    stayed: u64,
}

/// Murphy's parts of the Brier score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Parts {
    pub(super) reliability: f64,
    pub(super) resolution: f64,
    pub(super) uncertainty: f64,
}

impl Bin {
    fn add(&mut self, other: Self) {
        self.instants += other.instants;
        self.forecast += other.forecast;
        self.stayed += other.stayed;
    }
}

impl Calibration {
    /// Adds `instants` with one forecast probability to stay, `stayed` of which did.
    pub(super) fn add(&mut self, forecast: f64, instants: u8, stayed: u8) {
        let (instants, stayed) = (u64::from(instants), u64::from(stayed));
        let inner = &BOUNDS[1..BINS_COUNT];
        self.bins[inner.partition_point(|bound| *bound <= forecast)].add(Bin {
            instants,
            forecast: forecast * instants as f64,
            stayed,
        });
        let x = log_odds(forecast);
        let bin = self.by_log_odds.entry((x / LOG_ODDS_WIDTH).floor() as i32);
        let bin = bin.or_default();
        bin.instants += instants;
        bin.log_odds += x * instants as f64;
        bin.stayed += stayed;
    }

    /// Adds the bins of probability of another region.
    pub(super) fn add_bins(&mut self, other: &Self) {
        for (mine, other) in self.bins.iter_mut().zip(other.bins) {
            mine.add(other);
        }
    }

    /// Reliability, resolution and uncertainty; `None` without forecasts.
    pub(super) fn parts(&self) -> Option<Parts> {
        let instants: u64 = self.bins.iter().map(|b| b.instants).sum();
        let stayed: u64 = self.bins.iter().map(|b| b.stayed).sum();
        if instants == 0 {
            return None;
        }
        let base = stayed as f64 / instants as f64;
        let mean = |part: &dyn Fn(f64, f64) -> f64| {
            let filled = self.bins.iter().filter(|b| b.instants > 0);
            let sum: f64 = filled
                .map(|b| {
                    let n = b.instants as f64;
                    n * part(b.forecast / n, b.stayed as f64 / n).powi(2)
                })
                .sum();
            sum / instants as f64
        };
        Some(Parts {
            reliability: mean(&|forecast, observed| forecast - observed),
            resolution: mean(&|_, observed| observed - base),
            uncertainty: base * (1.0 - base),
        })
    }

    /// The calibration slope; `None` if it is not finite: all outcomes or all forecasts are equal, or the
    /// forecasts separate the outcomes without a mistake.
    pub(super) fn slope(&self) -> Option<f64> {
        let bins: Vec<(f64, f64, f64)> = (self.by_log_odds.values())
            .filter(|b| b.instants > 0)
            .map(|b| {
                let n = b.instants as f64;
                (b.log_odds / n, n, b.stayed as f64)
            })
            .collect();
        let (mut intercept, mut slope) = (0.0_f64, 1.0_f64);
        for _ in 0..MOST_STEPS {
            let (mut gradient, mut hessian) = ([0.0; 2], [0.0; 3]);
            for &(x, n, stayed) in &bins {
                let p = 1.0 / (1.0 + (-(intercept + slope * x)).exp());
                let (off, weight) = (stayed - n * p, n * p * (1.0 - p));
                gradient[0] += off;
                gradient[1] += off * x;
                hessian[0] += weight;
                hessian[1] += weight * x;
                hessian[2] += weight * x * x;
            }
            let determinant = hessian[0] * hessian[2] - hessian[1] * hessian[1];
            // With a single value of x, the determinant is 0 except for rounding errors.
            if determinant.is_nan() || determinant <= 1e-9 * hessian[0] * hessian[2] {
                return None;
            }
            let steps = [
                (hessian[2] * gradient[0] - hessian[1] * gradient[1]) / determinant,
                (hessian[0] * gradient[1] - hessian[1] * gradient[0]) / determinant,
            ];
            let largest = steps[0].abs().max(steps[1].abs());
            let scale = (LARGEST_STEP / largest).min(1.0);
            intercept += scale * steps[0];
            slope += scale * steps[1];
            if slope.abs() > STEEPEST {
                return None;
            }
            if largest < CONVERGED {
                return Some(slope);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(forecasts: &[(f64, u8, u8)]) -> Calibration {
        let mut found = Calibration::default();
        for &(forecast, instants, stayed) in forecasts {
            found.add(forecast, instants, stayed);
        }
        found
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a}, not {b}");
    }

    #[test]
    fn parts_worked_by_hand() {
        // Of 100 instants forecast with 0.25, 50 stay; of 100 forecast with 0.75, 70 stay; together 60 %
        // stay.
        let parts = of(&[(0.25, 100, 50), (0.75, 100, 70)]).parts().unwrap();
        close(
            parts.reliability,
            (0.25_f64.powi(2) + 0.05_f64.powi(2)) / 2.0,
        );
        close(parts.resolution, (0.1_f64.powi(2) + 0.1_f64.powi(2)) / 2.0);
        close(parts.uncertainty, 0.24);
        assert_eq!(Calibration::default().parts(), None);
    }

    #[test]
    fn the_slope_says_how_far_apart_forecasts_should_be() {
        // Log-odds of the forecasts 0.2 and 0.8 are ∓1.386, those of the outcomes 0.1 and 0.9 are ∓2.197.
        let close_together = of(&[(0.2, 100, 10), (0.8, 100, 90)]);
        let expected = (9.0_f64).ln() / (4.0_f64).ln();
        close(close_together.slope().unwrap(), expected);
        close(of(&[(0.2, 100, 20), (0.8, 100, 80)]).slope().unwrap(), 1.0);
        assert!(of(&[(0.1, 100, 20), (0.9, 100, 80)]).slope().unwrap() < 1.0);
        // Forecasts that are opposite to the outcomes have a negative slope.
        assert!(of(&[(0.2, 100, 80), (0.8, 100, 20)]).slope().unwrap() < 0.0);
    }

    #[test]
    fn no_slope_where_there_is_none() {
        for forecasts in [
            &[][..],
            &[(0.5, 10, 5)],
            &[(0.2, 10, 10), (0.8, 10, 10)],
            &[(0.2, 10, 0), (0.8, 10, 10)],
            &[(0.0, 10, 0), (1.0, 10, 10)],
        ] {
            assert_eq!(of(forecasts).slope(), None, "{forecasts:?}");
        }
    }

    proptest! {
        /// If forecasts do not vary within a bin, the three parts add up to the Brier score. The order of
        /// forecasts does not matter.
        #[test]
        fn parts_make_up_the_score(counts in prop::array::uniform12((0..50u8, 0..50u8))) {
            let forecasts: Vec<(f64, u8, u8)> = counts.iter().enumerate()
                .map(|(i, &(n, stayed))| ((BOUNDS[i] + BOUNDS[i + 1]) / 2.0, n, stayed.min(n)))
                .collect();
            let found = of(&forecasts);
            let backwards: Vec<_> = forecasts.iter().rev().copied().collect();
            let other = of(&backwards);
            prop_assert_eq!(found.parts(), other.parts());
            prop_assert_eq!(found.slope().is_some(), other.slope().is_some());
            if let Some(parts) = found.parts() {
                let n: f64 = forecasts.iter().map(|f| f64::from(f.1)).sum();
                let squares: f64 = forecasts.iter()
                    .map(|&(p, n, s)| f64::from(s) * (1.0 - p).powi(2) + f64::from(n - s) * p * p)
                    .sum();
                let sum = parts.reliability - parts.resolution + parts.uncertainty;
                prop_assert!((squares / n - sum).abs() < 1e-9, "{} {sum}", squares / n);
            }
        }
    }
}
