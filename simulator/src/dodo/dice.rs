//! Random draws from a seed, the same on every machine.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Number of intervals in the table of [`SeekTimes`].
const PARTS: usize = 4096;

/// Random stream number `stream` of a seed. Streams from 2⁶³ on are for the machine, those below for the
/// runs.
pub(super) fn stream(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    dice.set_stream((1 << 63) | stream);
    dice
}

/// A truncated exponential distribution of times, as a table of its quantiles with linear interpolation. A
/// draw costs one look-up.
#[derive(Clone, Debug)]
pub(super) struct SeekTimes(Vec<u64>);

impl SeekTimes {
    /// Distribution with this mean, truncated at `max_ns`. If the mean is half of `max_ns` or more, the
    /// distribution is uniform.
    pub(super) fn new(mean_ns: u64, max_ns: u64) -> Self {
        let (mean, max) = (mean_ns as f64, max_ns as f64);
        let scale = scale(mean, max);
        let quantile = |part: usize| {
            let share = part as f64 / PARTS as f64;
            let at = match scale {
                // The inverse of (1 − e^(−t/scale)) / (1 − e^(−max/scale)).
                Some(scale) => -scale * (share * (-max / scale).exp_m1()).ln_1p(),
                None => share * 2.0 * mean.min(max / 2.0),
            };
            at.clamp(0.0, max) as u64
        };
        Self((0..=PARTS).map(quantile).collect())
    }

    /// Draws one time.
    pub(super) fn draw(&self, dice: &mut ChaCha8Rng) -> u64 {
        let random = dice.next_u32();
        let (part, rest) = ((random >> 20) as usize, u64::from(random & 0xf_ffff));
        let [from, to] = self.0[part..part + 2] else {
            return 0; // cannot happen: the table has PARTS + 1 quantiles
        };
        from + (((to - from) * rest) >> 20)
    }
}

/// Scale of the exponential distribution that has the mean `mean` after truncation at `max`; `None` if there
/// is no such scale.
fn scale(mean: f64, max: f64) -> Option<f64> {
    if mean <= 0.0 || mean >= max / 2.0 {
        return None;
    }
    let cut_mean = |scale: f64| scale - max / (max / scale).exp_m1();
    // The truncated mean grows with the scale. It is near the scale at first and approaches half of `max`.
    let (mut low, mut high) = (mean, max * 1e3);
    for _ in 0..200 {
        let middle = low.midpoint(high);
        if cut_mean(middle) < mean {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low)
}

/// Draws a uniform time below `below_ns`. The limit is at most 4 s, which is longer than any disk's rotation.
pub(super) fn time_below(below_ns: u64, dice: &mut ChaCha8Rng) -> u64 {
    (u64::from(dice.next_u32()) * below_ns.min(u64::from(u32::MAX))) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeks_have_their_mean_and_end() {
        let seeks = SeekTimes::new(5_800_000, 15_700_000);
        let mut dice = stream(1, 0);
        let draws: Vec<u64> = (0..200_000).map(|_| seeks.draw(&mut dice)).collect();
        let mean = draws.iter().sum::<u64>() as f64 / draws.len() as f64;
        assert!((mean / 5_800_000.0 - 1.0).abs() < 0.005, "{mean}");
        assert!(draws.iter().all(|ns| *ns <= 15_700_000));
        // In an exponential distribution, more draws lie in the first half of 15.7 ms than in the second.
        let early = draws.iter().filter(|ns| **ns < 7_850_000).count();
        assert!((0.68..0.76).contains(&(early as f64 / draws.len() as f64)));
        assert_eq!(SeekTimes::new(0, 0).draw(&mut dice), 0);
    }
}
