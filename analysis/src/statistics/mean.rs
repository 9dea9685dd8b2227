//! Mean of integers, mergeable and exact; for measures that need no other statistic.

use serde::{Deserialize, Serialize};

/// Count and sum of the numbers so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mean {
    pub(crate) count: i64,
    sum: i128,
}

impl Mean {
    pub(crate) fn of(numbers: impl Iterator<Item = i64>) -> Self {
        let mut mean = Self::default();
        for number in numbers {
            mean.count += 1;
            mean.sum += i128::from(number);
        }
        mean
    }

    /// Adds the numbers of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
    }

    /// Mean of the numbers; `None` without numbers.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_as_if_seen_together() {
        let mut mean = Mean::of([1, i64::MAX, i64::MAX].into_iter());
        mean.merge(&Mean::of([-1].into_iter()));
        assert_eq!((mean.count, mean.mean()), (4, Some(i64::MAX as f64 / 2.0)));
        assert_eq!(Mean::default().mean(), None);
    }
}
