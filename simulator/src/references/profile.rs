//! Everything that one pass over a recording finds out.

use super::first_touches::FirstTouches;
use super::working_sets::WorkingSets;
use std::collections::BTreeMap;

/// Windows of the working sets, in ns: those of Verghese and Rosenblum.
const SHORT_WINDOW_NS: u64 = 10_000_000;
const LONG_WINDOW_NS: u64 = 1_000_000_000;

/// Working sets, first touches and footprint of a pass.
#[derive(Debug)]
pub struct Profile {
    short: WorkingSets,
    long: WorkingSets,
    /// Pages that were touched since the begin, by the begin of the window (ms).
    growth: BTreeMap<u64, u64>,
    pages: u64,
    pub(super) first_touches: FirstTouches,
}

/// Sizes of working sets in windows of one length.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Windows {
    /// Length of the windows; `None`: since the begin.
    pub(super) window_ms: Option<u64>,
    /// Begin (ms) and pages of each window.
    pub(super) sizes: Vec<(f64, u64)>,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            short: WorkingSets::new(SHORT_WINDOW_NS),
            long: WorkingSets::new(LONG_WINDOW_NS),
            growth: BTreeMap::new(),
            pages: 0,
            first_touches: FirstTouches::default(),
        }
    }
}

impl Profile {
    /// Makes a reference to a page at a time since the begin. Pages have numbers in the order of first touches.
    #[inline]
    pub fn reference(&mut self, page: u32, at_ns: u64) {
        self.short.reference(page, at_ns);
        self.long.reference(page, at_ns);
        if u64::from(page) >= self.pages {
            self.pages = u64::from(page) + 1;
            self.growth.insert(at_ns / SHORT_WINDOW_NS, self.pages);
        }
    }

    /// Number of distinct pages.
    #[must_use]
    pub fn footprint_pages(&self) -> u64 {
        self.pages
    }

    /// Working sets in short and long windows, and since the begin; and the first touches.
    pub(super) fn finish(self) -> (Vec<Windows>, FirstTouches) {
        let window_ms = SHORT_WINDOW_NS / 1_000_000;
        let growth = self.growth.into_iter();
        let growth = growth.map(|(window, pages)| ((window * window_ms) as f64, pages));
        let windows = vec![
            Windows {
                window_ms: Some(window_ms),
                sizes: self.short.finish(),
            },
            Windows {
                window_ms: Some(LONG_WINDOW_NS / 1_000_000),
                sizes: self.long.finish(),
            },
            Windows {
                window_ms: None,
                sizes: growth.collect(),
            },
        ];
        (windows, self.first_touches)
    }
}
