//! `/proc/zoneinfo`.

use super::{lines, number, words};
use std::collections::BTreeMap;

/// Sums over zones, in pages.
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
    /// Sums each NUMA node's zones, by its number; `None` when there is none, or a figure is torn.
    #[must_use]
    pub fn by_node(text: &[u8]) -> Option<BTreeMap<u16, Self>> {
        let mut nodes: BTreeMap<u16, Self> = BTreeMap::new();
        let mut node = None;
        for line in lines(text) {
            let mut words = words(line);
            let name = words.next();
            if name == Some(b"Node") {
                node = Some(number(words.next()?.strip_suffix(b",")?)?);
                continue;
            }
            let mut zones = Self::default();
            // The per-CPU lists have "high:" and "high_min:"; the zone's own word is "high".
            let figure = match name {
                Some(b"present") => &mut zones.present_pages,
                Some(b"managed") => &mut zones.managed_pages,
                Some(b"high") => &mut zones.high_pages,
                Some(b"count:") => &mut zones.pcp_free_pages,
                _ => continue,
            };
            *figure = number(words.next()?)?;
            nodes.entry(node?).or_default().add(&zones);
        }
        (!nodes.is_empty()).then_some(nodes)
    }

    /// The sum over all nodes.
    pub fn sum<'a>(nodes: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        nodes.into_iter().for_each(|zones| sum.add(zones));
        sum
    }

    fn add(&mut self, other: &Self) {
        for (sum, pages) in [
            (&mut self.present_pages, other.present_pages),
            (&mut self.managed_pages, other.managed_pages),
            (&mut self.high_pages, other.high_pages),
            (&mut self.pcp_free_pages, other.pcp_free_pages),
        ] {
            *sum = sum.saturating_add(pages);
        }
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
        present  1002\n        managed  1000\n    cpu: 1\n              count: 3\n\
        Node 12, zone   Normal\n        high     7\n        present  9\n";

    #[test]
    fn sums_of_zones_and_of_their_per_cpu_lists_by_node() {
        let first = Zones {
            present_pages: 5000,
            managed_pages: 4840,
            high_pages: 100,
            pcp_free_pages: 7,
        };
        let second = Zones {
            present_pages: 9,
            high_pages: 7,
            ..Zones::default()
        };
        let nodes = Zones::by_node(TEXT).unwrap();
        assert_eq!(nodes, BTreeMap::from([(0, first), (12, second)]));
        let all = Zones {
            present_pages: 5009,
            high_pages: 107,
            ..first
        };
        assert_eq!(Zones::sum(nodes.values()), all);
        for torn in [
            &b""[..],
            b"Node 0, zone DMA\n  present  x\n",
            b"  present  7\n",
            b"Node x, zone\n",
        ] {
            assert_eq!(Zones::by_node(torn), None);
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in proptest::collection::vec(any::<u8>(), 0..200), number in any::<u64>()) {
            let _ = Zones::by_node(&text);
            let nodes = Zones::by_node(format!("Node 0, zone\npresent {number}\npresent {number}\nNode 1, zone\npresent {number}").as_bytes());
            let _ = Zones::sum(nodes.unwrap_or_default().values());
        }
    }
}
