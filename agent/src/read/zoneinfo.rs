//! `/proc/zoneinfo`.

use super::{lines, number, words};

/// Sums over all zones, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zones {
    /// Pages that exist.
    pub present_pages: u64,
    /// Pages that the allocator was given.
    pub managed_pages: u64,
    /// High watermarks: what the kernel keeps free for itself.
    pub high_pages: u64,
    /// Free pages on the per-CPU lists.
    pub pcp_free_pages: u64,
}

impl Zones {
    /// Sums the zones; `None` when there is none.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut zones = Self::default();
        let mut seen = false;
        for line in lines(text) {
            let mut words = words(line);
            // The per-CPU lists have "high:" and "high_min:"; the zone's own word is "high".
            let sum = match words.next() {
                Some(b"present") => &mut zones.present_pages,
                Some(b"managed") => &mut zones.managed_pages,
                Some(b"high") => &mut zones.high_pages,
                Some(b"count:") => &mut zones.pcp_free_pages,
                _ => continue,
            };
            *sum = sum.saturating_add(number(words.next()?)?);
            seen = true;
        }
        seen.then_some(zones)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &[u8] = b"Node 0, zone      DMA\n  per-node stats\n      nr_inactive_anon 80\n  pages free     2816\n\
        boost    0\n        min      37\n        low      46\n        high     55\n        spanned  4095\n\
        present  3998\n        managed  3840\n  pagesets\n    cpu: 0\n              count: 4\n\
              high:  9\n              high_min: 23\nNode 0, zone    DMA32\n        high     45\n\
        present  1002\n        managed  1000\n    cpu: 1\n              count: 3\n";

    #[test]
    fn sums_of_zones_and_of_their_per_cpu_lists() {
        let sums = Zones {
            present_pages: 5000,
            managed_pages: 4840,
            high_pages: 100,
            pcp_free_pages: 7,
        };
        assert_eq!(Zones::parse(TEXT), Some(sums));
        assert_eq!(Zones::parse(b""), None);
        assert_eq!(Zones::parse(b"  present  x\n"), None);
    }

    proptest! {
        #[test]
        fn never_panics(text in proptest::collection::vec(any::<u8>(), 0..200), number in any::<u64>()) {
            let _ = Zones::parse(&text);
            let _ = Zones::parse(format!("present {number}\npresent {number}").as_bytes());
        }
    }
}
