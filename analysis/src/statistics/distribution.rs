//! Mean, deviation and median of very many sizes, in bounded memory; distributions can be merged.
//!
//! Sums are integers, so that the order in which hosts are merged changes nothing. The median comes from
//! buckets whose width is 1/2048 of the sizes in them. It is exact if its bucket holds a single distinct
//! value, otherwise within 0.05 %.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Parts of a share of 1.
const SHARE_PARTS: f64 = 18_446_744_073_709_551_616.0; // 2^64

/// Leading bits of a size that select its bucket.
const BUCKET_BITS: u32 = 12;

/// Sizes of one kind, with their shares of a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Distribution {
    /// Number of hosts that have at least one size.
    pub(crate) hosts: i64,
    pub(crate) count: i64,
    sum: i128,
    sum_of_squares: i128,
    /// Sum of the shares, in parts of [`SHARE_PARTS`]. Each host's sum is made in floating point and rounded
    /// once, so that the order in which hosts are merged changes nothing here, either.
    shares: i128,
    pub(crate) min: i64,
    pub(crate) max: i64,
    /// Count and sum of the sizes in each bucket.
    buckets: BTreeMap<i64, (i64, i128)>,
}

impl Distribution {
    /// Sizes of one host, each paired with the whole of which it is a share.
    pub(crate) fn of(sizes: impl Iterator<Item = (i64, i64)>) -> Self {
        let mut shares = 0.0;
        let mut sorted: Vec<i64> = sizes
            .map(|(size, whole)| {
                shares += if whole > 0 {
                    size as f64 / whole as f64
                } else {
                    0.0
                };
                size
            })
            .collect();
        sorted.sort_unstable();
        let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else {
            return Self::default();
        };
        let square = |&size: &i64| i128::from(size).pow(2);
        Self {
            hosts: 1,
            count: sorted.len() as i64,
            sum: sorted.iter().map(|&size| i128::from(size)).sum(),
            sum_of_squares: sorted.iter().map(square).fold(0, i128::saturating_add),
            shares: (shares * SHARE_PARTS) as i128,
            min,
            max,
            buckets: sorted
                .chunk_by(|a, b| bucket(*a) == bucket(*b))
                .map(|same| {
                    let sum = same.iter().map(|&size| i128::from(size)).sum();
                    (bucket(same[0]), (same.len() as i64, sum))
                })
                .collect(),
        }
    }

    /// Adds another host's sizes.
    pub(crate) fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            self.clone_from(other);
            return;
        }
        self.hosts += other.hosts;
        self.count += other.count;
        self.sum += other.sum;
        self.sum_of_squares = self.sum_of_squares.saturating_add(other.sum_of_squares);
        self.shares = self.shares.saturating_add(other.shares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        for (&key, (count, sum)) in &other.buckets {
            let mine = self.buckets.entry(key).or_default();
            mine.0 += count;
            mine.1 += sum;
        }
    }

    /// Mean of the sizes; `None` without sizes, like all figures below.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    pub(crate) fn mean_share(&self) -> Option<f64> {
        (self.count > 0).then(|| self.shares as f64 / SHARE_PARTS / self.count as f64)
    }

    /// Standard deviation with n − 1; `None` with fewer than two sizes.
    pub(crate) fn deviation(&self) -> Option<f64> {
        if self.count < 2 {
            return None;
        }
        // Computed around the integer part of the mean, in integers, which avoids cancellation.
        let n = i128::from(self.count);
        let centre = self.sum / n;
        let rest = (self.sum - n * centre) as f64;
        let squares = self
            .sum_of_squares
            .saturating_sub(centre.saturating_mul(2 * self.sum - n * centre));
        let variance = (squares as f64 - rest * rest / n as f64) / (n - 1) as f64;
        Some(variance.max(0.0).sqrt())
    }

    pub(crate) fn median(&self) -> Option<f64> {
        let lower = self.at_rank((self.count - 1) / 2)?;
        let upper = self.at_rank(self.count / 2)?;
        Some(f64::midpoint(lower, upper))
    }

    /// The smallest size that at least `share` of the sizes do not exceed.
    pub(crate) fn quantile(&self, share: f64) -> Option<f64> {
        let rank = (share * self.count as f64).ceil() as i64 - 1;
        self.at_rank(rank.clamp(0, (self.count - 1).max(0)))
    }

    fn at_rank(&self, rank: i64) -> Option<f64> {
        let mut before = 0;
        let (count, sum) = self.buckets.values().find(|(count, _)| {
            before += count;
            rank < before
        })?;
        Some(*sum as f64 / *count as f64)
    }
}

/// Bucket of a size; it grows with the size. Each size below 2^12 has its own bucket.
fn bucket(size: i64) -> i64 {
    let magnitude = size.unsigned_abs();
    let shift = (u64::BITS - magnitude.leading_zeros()).saturating_sub(BUCKET_BITS);
    let key = (u64::from(shift) << BUCKET_BITS) + (magnitude >> shift);
    key as i64 * size.signum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(sizes: &[i64]) -> Distribution {
        Distribution::of(sizes.iter().map(|&s| (s, 100)))
    }

    #[test]
    fn worked_by_hand() {
        let some = of(&[10, 40, 20, 10]);
        assert_eq!((some.min, some.max, some.count, some.hosts), (10, 40, 4, 1));
        assert_eq!(some.mean(), Some(20.0));
        assert!((some.mean_share().unwrap() - 0.2).abs() < 1e-12);
        assert_eq!(some.median(), Some(15.0));
        // Squares of −10, 20, 0, −10: 600; divided by 3: 200.
        assert_eq!(some.deviation(), Some(200f64.sqrt()));
    }

    #[test]
    fn quantiles_by_rank() {
        let hundred: Vec<i64> = (1..=100).collect();
        let of_hundred = |share| of(&hundred).quantile(share);
        assert_eq!(of_hundred(0.9), Some(90.0));
        assert_eq!(of_hundred(0.99), Some(99.0));
        assert_eq!((of_hundred(0.0), of_hundred(1.0)), (Some(1.0), Some(100.0)));
        assert_eq!(of(&[10, 40, 20]).quantile(0.9), Some(40.0));
        assert_eq!(of(&[]).quantile(0.9), None);
    }

    #[test]
    fn none_and_one() {
        let none = of(&[]);
        assert_eq!(
            (
                none.mean(),
                none.median(),
                none.deviation(),
                none.mean_share(),
                none.hosts
            ),
            (None, None, None, None, 0)
        );
        let one = of(&[25_276_514_304]);
        assert_eq!(
            (one.mean(), one.deviation()),
            (Some(25_276_514_304.0), None)
        );
        assert_eq!(one.median(), Some(25_276_514_304.0));
        assert_eq!(
            Distribution::of([(5, 0)].into_iter()).mean_share(),
            Some(0.0)
        );
    }

    #[test]
    fn large_sizes_that_differ_little_keep_their_deviation() {
        assert_eq!(
            of(&[(1 << 44) + 1, (1 << 44) + 3]).deviation(),
            Some(2f64.sqrt())
        );
        assert!(
            of(&[i64::MAX, i64::MIN, i64::MAX])
                .deviation()
                .unwrap()
                .is_finite()
        );
    }

    proptest! {
        #[test]
        fn equals_the_slow_version(mut sizes in prop::collection::vec(-1i64 << 20..1 << 45, 2..50)) {
            let found = of(&sizes);
            let n = sizes.len() as f64;
            let mean = sizes.iter().map(|&s| s as f64).sum::<f64>() / n;
            let variance = sizes.iter().map(|&s| (s as f64 - mean).powi(2)).sum::<f64>() / (n - 1.0);
            sizes.sort_unstable();
            let median = f64::midpoint(
                sizes[(sizes.len() - 1) / 2] as f64,
                sizes[sizes.len() / 2] as f64,
            );
            let near = |a: f64, b: f64, share: f64| (a - b).abs() <= share * b.abs().max(1.0);
            prop_assert!(near(found.mean().unwrap(), mean, 1e-9));
            prop_assert!(near(found.deviation().unwrap(), variance.sqrt(), 1e-9));
            // The error is at most half a bucket for each of the two middle sizes.
            let spread = sizes[sizes.len() / 2].unsigned_abs() as f64 / 2048.0;
            prop_assert!((found.median().unwrap() - median).abs() <= spread.max(median.abs() / 2048.0));
        }

        #[test]
        fn merging_is_the_same_as_having_all(
            a in prop::collection::vec(0i64..1 << 45, 0..30),
            b in prop::collection::vec(0i64..1 << 45, 0..30),
        ) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let both = of(&[a, b].concat());
            prop_assert_eq!(merged.buckets.clone(), both.buckets.clone());
            prop_assert_eq!(
                (merged.mean(), merged.median(), merged.deviation(), merged.min, merged.max),
                (both.mean(), both.median(), both.deviation(), both.min, both.max)
            );
        }
    }
}
