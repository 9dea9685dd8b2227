//! A program's curve as functions of its memory.

use gleaner_schemas::curve::Curve;

/// A curve that was read and checked ([`crate::references::parse_curve`]).
#[derive(Clone, Copy, Debug)]
pub struct ProgramCurve<'a>(pub &'a Curve);

impl ProgramCurve<'_> {
    /// Least memory that the curve covers, in pages.
    #[must_use]
    pub fn least_pages(&self) -> u64 {
        self.0.faults.first().map_or(1, |point| point.memory_pages)
    }

    /// Reuse faults with this memory. Between the curve's points they are interpolated.
    #[must_use]
    pub fn reuse_faults(&self, memory_pages: f64) -> f64 {
        self.at(memory_pages, |at| {
            self.0.faults.get(at).map(|point| point.reuse_count)
        })
    }

    /// Written pages that leave this memory.
    #[must_use]
    pub fn write_backs(&self, memory_pages: f64) -> f64 {
        self.at(memory_pages, |at| {
            self.0.faults.get(at).map(|point| point.write_backs_count)
        })
    }

    fn at(&self, memory_pages: f64, count: impl Fn(usize) -> Option<u64>) -> f64 {
        if memory_pages >= self.0.footprint_pages as f64 {
            return 0.0;
        }
        let sizes = |at: usize| self.0.faults.get(at).map(|point| point.memory_pages);
        interpolated(memory_pages, self.0.faults.len(), sizes, count)
    }

    /// References to the first pages that were touched.
    #[must_use]
    pub fn references_to_first(&self, pages: f64) -> f64 {
        let touched = &self.0.first_touch;
        let Some(first) = touched.first() else {
            return 0.0;
        };
        if pages < first.pages as f64 {
            return first.references_count as f64 * pages / first.pages as f64;
        }
        let sizes = |at: usize| touched.get(at).map(|point| point.pages);
        let counts = |at: usize| touched.get(at).map(|point| point.references_count);
        interpolated(pages, touched.len(), sizes, counts)
    }

    /// Memory that holds this share of the footprint, in pages.
    #[must_use]
    pub fn share_pages(&self, share: f64) -> f64 {
        self.0.footprint_pages as f64 * share
    }
}

/// Value at `x` between points with rising `xs`; beyond the ends, that of the nearest point.
fn interpolated(
    x: f64,
    points: usize,
    xs: impl Fn(usize) -> Option<u64>,
    ys: impl Fn(usize) -> Option<u64>,
) -> f64 {
    let (mut low, mut high) = (0, points);
    // The number of points at or before x.
    while low < high {
        let middle = (low + high) / 2;
        match xs(middle).is_some_and(|size| size as f64 <= x) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    let value = |at: usize| Some((xs(at)? as f64, ys(at)? as f64));
    let before = low.checked_sub(1).and_then(value);
    match (before, value(low)) {
        (Some((x0, y0)), Some((x1, y1))) => y0 + (y1 - y0) * (x - x0) / (x1 - x0),
        (Some((_, y)), None) | (None, Some((_, y))) => y,
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::curve::{FaultPoint, FirstTouch};

    #[test]
    fn values_between_points_lie_on_lines() {
        let point = |memory_pages, reuse_count| FaultPoint {
            memory_pages,
            reuse_count,
            write_backs_count: 2 * reuse_count,
        };
        let touch = |pages, references_count| FirstTouch {
            pages,
            references_count,
        };
        let curve = Curve {
            footprint_pages: 100,
            faults: vec![point(32, 1000), point(64, 200), point(100, 0)],
            first_touch: vec![touch(1, 10), touch(50, 500), touch(100, 600)],
            ..Curve::default()
        };
        let program = ProgramCurve(&curve);
        let faults = [1.0, 32.0, 48.0, 64.0, 82.0, 100.0, 1e9].map(|m| program.reuse_faults(m));
        assert_eq!(faults, [1000.0, 1000.0, 600.0, 200.0, 100.0, 0.0, 0.0]);
        assert_eq!(program.write_backs(48.0), 1200.0);
        let touched = [0.0, 1.0, 50.0, 75.0, 500.0].map(|m| program.references_to_first(m));
        assert_eq!(touched, [0.0, 10.0, 500.0, 550.0, 600.0]);
        assert_eq!(
            (program.least_pages(), program.share_pages(0.5)),
            (32, 50.0)
        );
    }
}
