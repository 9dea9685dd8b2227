//! Parser of `/proc/zoneinfo`.

use super::{LARGEST_PAGES, lines, number, words};
use std::collections::BTreeMap;

/// Sums over zones, in pages; absent if a zone lacks the figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zones {
    /// Pages that exist.
    pub present_pages: Option<u64>,
    /// Pages managed by the allocator.
    pub managed_pages: Option<u64>,
    /// High watermarks: pages that the kernel keeps free for itself.
    pub high_pages: Option<u64>,
    /// Free pages on the per-CPU lists; a zone without memory has no such lists.
    pub pcp_free_pages: Option<u64>,
}

/// A sum, with the number of its summands.
#[derive(Clone, Copy, Default)]
struct Sum {
    pages: u64,
    figures: usize,
}

/// Sums over a node's zones, as far as parsed.
#[derive(Default)]
struct Node {
    zones: usize,
    present: Sum,
    managed: Sum,
    high: Sum,
    pcp_free: Sum,
}

impl Zones {
    /// Sums the zones of each NUMA node, by node number; `None` without zones or with a malformed
    /// figure.
    #[must_use]
    pub fn by_node(text: &[u8]) -> Option<BTreeMap<u16, Self>> {
        let mut nodes: BTreeMap<u16, Node> = BTreeMap::new();
        let mut current = None;
        for line in lines(text) {
            let mut words = words(line);
            let name = words.next();
            if name == Some(b"Node") {
                // "Node 0, zone Normal", and "Node 0, per-node stats" on old kernels.
                let number = number(words.next()?.strip_suffix(b",")?)?;
                let is_zone = words.next() == Some(b"zone");
                nodes.entry(number).or_default().zones += usize::from(is_zone);
                current = Some(number);
                continue;
            }
            let Some(node) = current.and_then(|number| nodes.get_mut(&number)) else {
                continue;
            };
            // The per-CPU lists have "high:" and "high_min:"; the zone's own word is "high".
            let sum = match name {
                Some(b"present") => &mut node.present,
                Some(b"managed") => &mut node.managed,
                Some(b"high") => &mut node.high,
                Some(b"count:") => &mut node.pcp_free,
                _ => continue,
            };
            sum.pages = sum.pages.saturating_add(number(words.next()?)?);
            sum.figures += 1;
            if sum.pages > LARGEST_PAGES {
                return None;
            }
        }
        nodes.retain(|_, node| node.zones > 0);
        let sums = nodes
            .into_iter()
            .map(|(number, node)| (number, node.sums()));
        Some(sums.collect()).filter(|nodes: &BTreeMap<u16, Self>| !nodes.is_empty())
    }

    /// Sum over all nodes; `None` if a node lacks the figure.
    pub fn sum<'a>(nodes: impl IntoIterator<Item = &'a Self> + Clone) -> Self {
        let all = |figure: fn(&Self) -> Option<u64>| {
            let figures = nodes.clone().into_iter().map(figure);
            figures.reduce(|sum, pages| Some(sum?.saturating_add(pages?)))?
        };
        let pcp_free = nodes.clone().into_iter().filter_map(|n| n.pcp_free_pages);
        Self {
            present_pages: all(|n| n.present_pages),
            managed_pages: all(|n| n.managed_pages),
            high_pages: all(|n| n.high_pages),
            pcp_free_pages: pcp_free.reduce(u64::saturating_add),
        }
    }
}

impl Node {
    /// Returns sums that include every zone: without one zone's figure, a sum would silently be
    /// too small.
    fn sums(&self) -> Zones {
        let of_all_zones = |sum: Sum| (sum.figures == self.zones).then_some(sum.pages);
        Zones {
            present_pages: of_all_zones(self.present),
            managed_pages: of_all_zones(self.managed),
            high_pages: of_all_zones(self.high),
            pcp_free_pages: (self.pcp_free.figures > 0).then_some(self.pcp_free.pages),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &[u8] = b"Node 0, zone      DMA\n  per-node stats\n      nr_inactive_anon 7\n  pages free     2816\n\
        boost    0\n        min      37\n        low      46\n        high     55\n        spanned  4095\n\
        present  3998\n        managed  3840\n  pagesets\n    cpu: 0\n              count: 4\n\
              high:  9\n              high_min: 23\nNode 0, zone    DMA32\n        high     45\n\
        present  1002\n        managed  1000\n    cpu: 1\n              count: 3\n\
        Node 12, zone   Normal\n        high     7\n        present  9\n";

    #[test]
    fn sums_of_zones_and_of_their_per_cpu_lists_by_node() {
        let first = Zones {
            present_pages: Some(5000),
            managed_pages: Some(4840),
            high_pages: Some(100),
            pcp_free_pages: Some(7),
        };
        let second = Zones {
            present_pages: Some(9),
            high_pages: Some(7),
            ..Zones::default()
        };
        let nodes = Zones::by_node(TEXT).unwrap();
        assert_eq!(nodes, BTreeMap::from([(0, first), (12, second)]));
        let all = Zones {
            present_pages: Some(5009),
            managed_pages: None, // the second zone lacks it
            high_pages: Some(107),
            pcp_free_pages: Some(7),
        };
        assert_eq!(Zones::sum(nodes.values()), all);
    }

    #[test]
    fn what_is_no_figure_is_refused_and_what_lacks_one_is_absent() {
        assert_eq!(Zones::by_node(b""), None);
        assert_eq!(Zones::by_node(b"  present  7\n"), None);
        assert_eq!(Zones::by_node(b"Node x, zone\n present 7\n"), None);
        for none in [
            "present  x",
            "present -1",
            "present",
            "present 18446744073709551615",
        ] {
            let text = format!("Node 0, zone DMA\n  {none}\n");
            assert_eq!(Zones::by_node(text.as_bytes()), None, "{none}");
        }
        let one_without =
            b"Node 0, zone DMA\n high 5\n present 9\nNode 0, zone DMA32\n present 1\n";
        let told = Zones {
            present_pages: Some(10),
            ..Zones::default()
        };
        assert_eq!(
            Zones::by_node(one_without),
            Some(BTreeMap::from([(0, told)]))
        );
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
