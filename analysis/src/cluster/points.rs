//! Stretches of cells, so that a chart of a long trace has a bounded number of points.

use std::ops::Range;

/// Maximum number of points of one line.
const MOST_POINTS: usize = 2000;

/// Parts of `cells` (sorted) that become one point each: single cells if they are few, else cells of
/// the same stretch of the grid.
pub(crate) fn stretches(cells: &[i64]) -> Vec<Range<usize>> {
    stretches_of(cells, MOST_POINTS)
}

fn stretches_of(cells: &[i64], most: usize) -> Vec<Range<usize>> {
    let mut length = cells.len().div_ceil(most).max(1) as i64;
    loop {
        let same = |a: &i64, b: &i64| a.div_euclid(length) == b.div_euclid(length);
        let mut from = 0;
        let parts = cells.chunk_by(same).map(|part| {
            let range = from..from + part.len();
            from = range.end;
            range
        });
        let parts: Vec<_> = parts.collect();
        // Two cells far apart share a stretch only when it is about as long as their distance, so the length
        // may grow up to the limit.
        if parts.len() <= most || length > i64::MAX / 2 {
            return parts;
        }
        length *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_stay_and_many_are_put_together() {
        assert_eq!(stretches_of(&[3, 4, 9], 3), [0..1, 1..2, 2..3]);
        assert_eq!(stretches_of(&[2, 3, 4, 5, 6, 7], 3), [0..2, 2..4, 4..6]);
        assert!(stretches_of(&[], 3).is_empty());
        let apart: Vec<i64> = (-50..50).map(|i| i * 1_000_000).collect();
        let parts = stretches_of(&apart, 3);
        assert!(parts.len() <= 3 && parts.iter().map(Range::len).sum::<usize>() == 100);
    }
}
