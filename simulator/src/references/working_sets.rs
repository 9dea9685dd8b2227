//! Working sets: distinct pages that a program references in windows of time (Denning 1968).

/// Pages of consecutive windows. Windows without references are left out.
#[derive(Clone, Debug)]
pub struct WorkingSets {
    window_ns: u64,
    /// Number of the present window, from 1; 0 before the first reference.
    window: u32,
    pages: u64,
    /// Window of each page's last reference.
    last: Vec<u32>,
    sizes: Vec<(u32, u64)>,
}

impl WorkingSets {
    /// Makes working sets for windows of this length.
    #[must_use]
    pub fn new(window_ns: u64) -> Self {
        Self {
            window_ns: window_ns.max(1),
            window: 0,
            pages: 0,
            last: Vec::new(),
            sizes: Vec::new(),
        }
    }

    /// Makes a reference to a page at a time since the begin. A time before the present window counts as in it.
    #[inline]
    pub fn reference(&mut self, page: u32, at_ns: u64) {
        let window = u32::try_from(at_ns / self.window_ns).unwrap_or(u32::MAX);
        let window = window.saturating_add(1);
        if window > self.window {
            self.end_window();
            self.window = window;
        }
        let at = page as usize;
        if self.last.len() <= at {
            self.last.resize(at + 1, 0);
        }
        if self.last[at] != self.window {
            self.last[at] = self.window;
            self.pages += 1;
        }
    }

    fn end_window(&mut self) {
        if self.window > 0 {
            self.sizes.push((self.window, self.pages));
        }
        self.pages = 0;
    }

    /// Returns begin (ms) and pages of each window with references.
    #[must_use]
    pub fn finish(mut self) -> Vec<(f64, u64)> {
        self.end_window();
        let window_ms = self.window_ns as f64 / 1e6;
        let begin_ms = |window: u32| f64::from(window - 1) * window_ms;
        let sizes = self.sizes.into_iter();
        sizes
            .map(|(window, pages)| (begin_ms(window), pages))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, HashSet};

    #[test]
    fn windows_without_references_are_left_out() {
        let mut sets = WorkingSets::new(10_000_000);
        for (page, at_ms) in [
            (0, 0),
            (1, 3),
            (0, 9),
            (1, 12),
            (1, 11),
            (2, 45),
            (3, 44),
            (4, 2),
        ] {
            sets.reference(page, at_ms * 1_000_000);
        }
        // Page 4 comes late, and counts in the present window.
        assert_eq!(sets.finish(), [(0.0, 2), (10.0, 1), (40.0, 3)]);
    }

    proptest! {
        #[test]
        fn sizes_are_those_of_sets(mut asked in prop::collection::vec((0u64..500, 0u32..20), 0..400), window_ns in 1u64..90) {
            asked.sort_by_key(|(at_ns, _)| *at_ns);
            let mut expected: BTreeMap<u64, HashSet<u32>> = BTreeMap::new();
            let mut sets = WorkingSets::new(window_ns);
            for (at_ns, page) in asked {
                expected.entry(at_ns / window_ns).or_default().insert(page);
                sets.reference(page, at_ns);
            }
            let expected: Vec<u64> = expected.values().map(|pages| pages.len() as u64).collect();
            let found: Vec<u64> = sets.finish().iter().map(|(_, pages)| *pages).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
