//! `/proc/meminfo`.

use super::{lines, number, words};
use gleaner_schemas::units::kib_to_bytes;
use std::collections::HashMap;

/// The kernel's figures by name, in bytes.
#[derive(Clone, Debug, Default)]
pub struct Meminfo {
    by_name: HashMap<String, u64>,
}

impl Meminfo {
    /// Reads what is there; `None` without a MemTotal, which every kernel gives.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let by_name: HashMap<String, u64> = lines(text).filter_map(entry).collect();
        by_name.contains_key("MemTotal").then_some(Self { by_name })
    }

    /// Reads a NUMA node's `meminfo`, whose lines begin with `Node 0`; `None` without its MemTotal and
    /// MemFree.
    #[must_use]
    pub fn parse_node(text: &[u8]) -> Option<Self> {
        let of_the_node = |line| {
            let mut parts = <[u8]>::splitn(line, 3, |&b| b == b' ');
            (parts.next()? == b"Node").then(|| parts.nth(1))?
        };
        let lines = lines(text).filter_map(of_the_node);
        let by_name: HashMap<String, u64> = lines.filter_map(entry).collect();
        let is_whole = by_name.contains_key("MemTotal") && by_name.contains_key("MemFree");
        is_whole.then_some(Self { by_name })
    }

    /// The figure `name`, in bytes (a plain count for `HugePages_…`).
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.by_name.get(name).copied()
    }

    /// KReclaimable; SReclaimable before Linux 4.20, which did not count other caches.
    #[must_use]
    pub fn reclaimable_kernel_bytes(&self) -> Option<u64> {
        self.get("KReclaimable")
            .or_else(|| self.get("SReclaimable"))
    }

    /// Hugetlb: huge pages of all sizes; the default size's alone before Linux 4.16.
    #[must_use]
    pub fn hugetlb_bytes(&self) -> Option<u64> {
        let default_size = || {
            let pages = self.get("HugePages_Total")?;
            Some(pages.saturating_mul(self.get("Hugepagesize")?))
        };
        self.get("Hugetlb").or_else(default_size)
    }

    /// PageTables and SecPageTables.
    #[must_use]
    pub fn page_tables_bytes(&self) -> Option<u64> {
        let secondary = self.get("SecPageTables").unwrap_or(0); // counted under PageTables before 6.0
        Some(self.get("PageTables")?.saturating_add(secondary))
    }

    /// Active(file) and Inactive(file).
    #[must_use]
    pub fn file_lru_bytes(&self) -> Option<u64> {
        Some(
            self.get("Active(file)")?
                .saturating_add(self.get("Inactive(file)")?),
        )
    }
}

/// MemAvailable alone, in bytes: what is read between samples.
#[must_use]
pub fn mem_available_bytes(text: &[u8]) -> Option<u64> {
    let line = lines(text).find(|line| line.starts_with(b"MemAvailable:"))?;
    entry(line).map(|(_, bytes)| bytes)
}

fn entry(line: &[u8]) -> Option<(String, u64)> {
    let mut words = words(line);
    let name = words.next()?.strip_suffix(b":")?;
    let value: u64 = number(words.next()?)?;
    let value = match words.next() {
        Some(b"kB") => kib_to_bytes(value),
        _ => value,
    };
    Some((String::from_utf8_lossy(name).into_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn figures_by_name_in_bytes() {
        let text = b"MemTotal:       16309864 kB\nActive(file):    4 kB\nInactive(file):  6 kB\n\
            SReclaimable: 7 kB\nHugePages_Total:       3\nHugepagesize:       2048 kB\nPageTables: 5 kB\n\
            SecPageTables: 1 kB\ntorn: \n";
        let meminfo = Meminfo::parse(text).unwrap();
        assert_eq!(meminfo.get("MemTotal"), Some(16_309_864 * 1024));
        assert_eq!(meminfo.get("HugePages_Total"), Some(3));
        assert_eq!(meminfo.get("torn"), None);
        assert_eq!(meminfo.reclaimable_kernel_bytes(), Some(7 * 1024));
        assert_eq!(meminfo.hugetlb_bytes(), Some(3 * 2048 * 1024));
        assert_eq!(meminfo.page_tables_bytes(), Some(6 * 1024));
        assert_eq!(meminfo.file_lru_bytes(), Some(10 * 1024));
        assert!(Meminfo::parse(b"MemFree: 1 kB\n").is_none());
    }

    #[test]
    fn figures_of_a_node() {
        let text = b"\nNode 1 MemTotal:       24684096 kB\nNode 1 MemFree:         5187656 kB\n\
            Node 1 Active(file):   10880128 kB\nNode 1 HugePages_Total:     3\nNode 1\nNode\n";
        let node = Meminfo::parse_node(text).unwrap();
        assert_eq!(node.get("MemTotal"), Some(24_684_096 * 1024));
        assert_eq!(node.get("Active(file)"), Some(10_880_128 * 1024));
        assert_eq!(node.get("HugePages_Total"), Some(3));
        assert!(Meminfo::parse_node(b"MemTotal: 1 kB\nMemFree: 1 kB\n").is_none());
        assert!(Meminfo::parse_node(b"Node 0 MemTotal: 1 kB\n").is_none());
    }

    proptest! {
        #[test]
        fn never_panics(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Meminfo::parse(&text);
            let _ = Meminfo::parse_node(&text);
            let _ = Meminfo::parse_node(&[b"Node 0 ".as_slice(), &text].concat());
            let _ = mem_available_bytes(&text);
            let _ = mem_available_bytes(&[b"MemAvailable:".as_slice(), &text].concat());
            let _ = Meminfo::parse(&[b"MemTotal: 1 kB\n".as_slice(), &text].concat());
        }
    }
}
