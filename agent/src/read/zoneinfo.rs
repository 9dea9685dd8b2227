//! `/proc/zoneinfo`.

use super::{LARGEST_PAGES, lines, number, words};

/// Sums over all zones, in pages; absent where a zone does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zones {
    /// Pages that exist.
    pub present_pages: Option<u64>,
    /// Pages that the allocator was given.
    pub managed_pages: Option<u64>,
    /// High watermarks: what the kernel keeps free for itself.
    pub high_pages: Option<u64>,
    /// Free pages on the per-CPU lists, which a zone without memory does not have.
    pub pcp_free_pages: Option<u64>,
}

/// A sum, and of how many figures.
#[derive(Clone, Copy, Default)]
struct Sum {
    pages: u64,
    figures: usize,
}

impl Zones {
    /// Sums the zones; `None` when there is none, or where a figure is none.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut zones = 0;
        let [mut present, mut managed, mut high, mut pcp_free] = [Sum::default(); 4];
        for line in lines(text) {
            let mut words = words(line);
            // The per-CPU lists have "high:" and "high_min:"; the zone's own word is "high".
            let sum = match words.next() {
                Some(b"Node") => {
                    // "Node 0, zone Normal", and "Node 0, per-node stats" on old kernels.
                    zones += usize::from(words.nth(1) == Some(b"zone"));
                    continue;
                }
                Some(b"present") => &mut present,
                Some(b"managed") => &mut managed,
                Some(b"high") => &mut high,
                Some(b"count:") => &mut pcp_free,
                _ => continue,
            };
            sum.pages = sum.pages.saturating_add(number(words.next()?)?);
            sum.figures += 1;
            if sum.pages > LARGEST_PAGES {
                return None;
            }
        }
        // Without one zone's figure a sum is too small, and nothing would tell.
        let of_all_zones = |sum: Sum| (sum.figures == zones).then_some(sum.pages);
        (zones > 0).then(|| Self {
            present_pages: of_all_zones(present),
            managed_pages: of_all_zones(managed),
            high_pages: of_all_zones(high),
            pcp_free_pages: (pcp_free.figures > 0).then_some(pcp_free.pages),
        })
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
            present_pages: Some(5000),
            managed_pages: Some(4840),
            high_pages: Some(100),
            pcp_free_pages: Some(7),
        };
        assert_eq!(Zones::parse(TEXT), Some(sums));
        assert_eq!(Zones::parse(b""), None);
        for none in [
            "present  x",
            "present -1",
            "present",
            "present 18446744073709551615",
        ] {
            let text = format!("Node 0, zone DMA\n  {none}\n");
            assert_eq!(Zones::parse(text.as_bytes()), None, "{none}");
        }
        let one_without =
            b"Node 0, zone DMA\n high 5\n present 9\nNode 0, zone DMA32\n present 1\n";
        let told = Zones {
            present_pages: Some(10),
            ..Zones::default()
        };
        assert_eq!(Zones::parse(one_without), Some(told));
    }

    proptest! {
        #[test]
        fn never_panics(text in proptest::collection::vec(any::<u8>(), 0..200), number in any::<u64>()) {
            let _ = Zones::parse(&text);
            let _ = Zones::parse(format!("Node 0, zone DMA\npresent {number}\npresent {number}").as_bytes());
        }
    }
}
