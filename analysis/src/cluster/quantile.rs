//! Quantiles of values few enough to hold in memory; each is one of the values.

/// The largest value that at least `per_mille` thousandths of the values reach; `sorted` is
/// ascending.
pub(crate) fn reached_by<T: Copy>(sorted: &[T], per_mille: usize) -> Option<T> {
    let below = sorted.len() * 1000usize.saturating_sub(per_mille) / 1000;
    sorted.get(below.min(sorted.len().checked_sub(1)?)).copied()
}

/// The smallest value that at most one of 100 values exceeds. Reorders `values`.
pub(crate) fn p99(values: &mut [i64]) -> Option<i64> {
    let above = values.len() / 100;
    let at = values.len().checked_sub(above + 1)?;
    Some(*values.select_nth_unstable(at).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_by_hand() {
        let hundred: Vec<i64> = (1..=100).collect();
        // 99 of 100 values reach 2; half reach 51.
        assert_eq!(reached_by(&hundred, 990), Some(2));
        assert_eq!(reached_by(&hundred, 500), Some(51));
        assert_eq!(reached_by(&hundred, 999), Some(1));
        assert_eq!(reached_by(&[7], 500), Some(7));
        assert_eq!(reached_by::<i64>(&[], 500), None);
        assert_eq!(p99(&mut hundred.clone()), Some(99));
        assert_eq!(p99(&mut [3, 1, 2]), Some(3));
        assert_eq!(p99(&mut []), None);
    }
}
