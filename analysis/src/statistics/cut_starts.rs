//! Test of each estimator on traces that are short compared with the periods, whose true mean is known. The
//! result is the reason why the findings give odds over calendar time first. The figures of docs/analysis.md
//! are printed by `cargo test -p gleaner-analysis cut_starts -- --nocapture`.

use super::Length;
use super::kaplan_meier::Curve;
use super::residual::{Residual, Spell};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const HOUR_MS: f64 = 3_600_000.0;
/// True mean of the periods, and horizon of the odds.
const MEAN_H: f64 = 6.0;
/// Mean time between periods.
const BETWEEN_H: f64 = 1.0;
/// Simulated time before the observation, long enough that the start has no influence.
const BEFORE_H: f64 = 2000.0;

#[derive(Clone, Copy, Debug)]
enum Periods {
    Exponential,
    /// With a standard deviation of 1.5 of the logarithm: many short periods, few long ones.
    Lognormal,
}

impl Periods {
    fn draw_h(self, rng: &mut ChaCha8Rng) -> f64 {
        match self {
            Self::Exponential => exponential(rng) * MEAN_H,
            Self::Lognormal => {
                const DEVIATION: f64 = 1.5;
                // Normal variate by Box and Muller.
                let angle = rng.random::<f64>() * std::f64::consts::TAU;
                let normal = (2.0 * exponential(rng)).sqrt() * angle.cos();
                (MEAN_H.ln() - DEVIATION * DEVIATION / 2.0 + DEVIATION * normal).exp()
            }
        }
    }
}

fn exponential(rng: &mut ChaCha8Rng) -> f64 {
    -(1.0 - rng.random::<f64>()).ln()
}

#[derive(Debug)]
struct Estimates {
    as_seen_h: f64,
    kaplan_meier_h: f64,
    start_seen_h: f64,
    odds: f64,
    true_odds: f64,
}

/// Estimates from hosts that are each observed for `window_h` hours.
fn simulated(periods: Periods, window_h: f64, hosts_count: usize) -> Estimates {
    let mut rng = ChaCha8Rng::seed_from_u64(1998);
    let ms = |hours: f64| (hours * HOUR_MS) as i64;
    let (mut all, mut start_seen) = (Vec::new(), Vec::new());
    let mut residual = Residual::<1>::new(&[ms(MEAN_H)]);
    let (mut lasting_h, mut all_h) = (0.0, 0.0);
    for _ in 0..hosts_count {
        let mut from_h = -BEFORE_H;
        while from_h < window_h {
            let length_h = periods.draw_h(&mut rng);
            let to_h = from_h + length_h;
            lasting_h += (length_h - MEAN_H).max(0.0);
            all_h += length_h;
            if to_h > 0.0 {
                let (seen_from_h, seen_to_h) = (from_h.max(0.0), to_h.min(window_h));
                let ended = (to_h <= window_h).then_some(0);
                residual.add(&Spell {
                    from_ms: ms(seen_from_h),
                    to_ms: ms(seen_to_h),
                    cause: ended,
                    observed_to_ms: ms(window_h),
                });
                let length = |cause| Length {
                    ms: ms(seen_to_h - seen_from_h),
                    cause,
                };
                // As in `Lease::length`: a period whose start was cut is only known to have lasted longer
                // than seen.
                all.push(length(ended.filter(|_| from_h >= 0.0)));
                if from_h >= 0.0 {
                    start_seen.push(length(ended));
                }
            }
            from_h = to_h + exponential(&mut rng) * BETWEEN_H;
        }
    }
    let restricted_mean_h = |lengths: &mut Vec<Length>| {
        lengths.sort_unstable();
        let mean = Curve::of(lengths).restricted_mean(i64::MAX).unwrap();
        mean.mean_ms / HOUR_MS
    };
    let seen_ms: i64 = all.iter().map(|length| length.ms).sum();
    Estimates {
        as_seen_h: seen_ms as f64 / HOUR_MS / all.len() as f64,
        kaplan_meier_h: restricted_mean_h(&mut all),
        start_seen_h: restricted_mean_h(&mut start_seen),
        odds: residual.ahead[0].survival().unwrap(),
        true_odds: lasting_h / all_h,
    }
}

#[test]
fn odds_are_right_where_means_are_not() {
    let cases = [
        (Periods::Exponential, 24.0, 4000),
        (Periods::Lognormal, 24.0, 4000),
        (Periods::Lognormal, 336.0, 2000),
    ];
    for (periods, window_h, hosts_count) in cases {
        let found = simulated(periods, window_h, hosts_count);
        println!("{periods:?}, {window_h} h: {found:.2?}"); // quoted in docs/analysis.md
        assert!(found.as_seen_h < MEAN_H, "{found:?}");
        assert!(found.kaplan_meier_h > MEAN_H * 1.05, "{found:?}");
        assert!(found.kaplan_meier_h > found.start_seen_h, "{found:?}");
        assert!((found.odds - found.true_odds).abs() < 0.02, "{found:?}");
    }
}
