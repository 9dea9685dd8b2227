//! Parser of `/proc/meminfo`.

use super::{LARGEST_BYTES, lines, number, words};
use gleaner_schemas::units::kib_to_bytes;
use std::collections::HashMap;

/// Columns of `samples` that may be absent, with the names in this file that they are computed from.
const COLUMNS: [(&str, &[&str]); 23] = [
    ("mem_available_bytes", &["MemAvailable"]),
    ("buffers_bytes", &["Buffers"]),
    ("cached_bytes", &["Cached"]),
    ("swap_cached_bytes", &["SwapCached"]),
    ("anon_bytes", &["AnonPages"]),
    ("shmem_bytes", &["Shmem"]),
    ("mapped_bytes", &["Mapped"]),
    ("active_file_bytes", &["Active(file)"]),
    ("inactive_file_bytes", &["Inactive(file)"]),
    ("unevictable_bytes", &["Unevictable"]),
    ("dirty_bytes", &["Dirty"]),
    ("writeback_bytes", &["Writeback"]),
    ("slab_bytes", &["Slab"]),
    (
        "reclaimable_kernel_bytes",
        &["KReclaimable", "SReclaimable"],
    ),
    ("kernel_stack_bytes", &["KernelStack"]),
    ("page_tables_bytes", &["PageTables", "SecPageTables"]),
    ("percpu_bytes", &["Percpu"]),
    ("vmalloc_bytes", &["VmallocUsed"]),
    (
        "hugetlb_bytes",
        &["Hugetlb", "HugePages_Total", "Hugepagesize"],
    ),
    ("swap_total_bytes", &["SwapTotal"]),
    ("swap_free_bytes", &["SwapFree"]),
    ("zswap_bytes", &["Zswap"]),
    ("zswapped_bytes", &["Zswapped"]),
];

/// Figures by name, in bytes; `None` if the name is not followed by a figure.
#[derive(Clone, Debug, Default)]
pub struct Meminfo {
    by_name: HashMap<String, Option<u64>>,
}

impl Meminfo {
    /// Parses all lines; `None` without MemTotal and MemFree, which every kernel gives.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        Self::from_lines(lines(text))
    }

    /// Parses a NUMA node's `meminfo`, whose lines begin with `Node 0`; `None` without MemTotal and
    /// MemFree.
    #[must_use]
    pub fn parse_node(text: &[u8]) -> Option<Self> {
        let of_the_node = |line| {
            let mut parts = <[u8]>::splitn(line, 3, |&b| b == b' ');
            (parts.next()? == b"Node").then(|| parts.nth(1))?
        };
        Self::from_lines(lines(text).filter_map(of_the_node))
    }

    fn from_lines<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let by_name = lines.filter_map(entry).collect();
        let meminfo = Self { by_name };
        let is_whole = meminfo.get("MemTotal").is_some() && meminfo.get("MemFree").is_some();
        is_whole.then_some(meminfo)
    }

    /// The figure `name`, in bytes (a plain count for `HugePages_…`).
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.by_name.get(name).copied().flatten()
    }

    /// Name of the first malformed field among those that `column` is computed from.
    #[must_use]
    pub fn malformed(&self, column: &str) -> Option<&'static str> {
        let (_, names) = COLUMNS.iter().find(|(name, _)| *name == column)?;
        let is_malformed = |name: &&str| self.by_name.get(*name) == Some(&None);
        names.iter().copied().find(is_malformed)
    }

    /// Figure `name`; if the kernel has no such name, the result of `otherwise`.
    fn get_or(&self, name: &str, otherwise: impl FnOnce() -> Option<u64>) -> Option<u64> {
        self.by_name.get(name).copied().unwrap_or_else(otherwise)
    }

    /// KReclaimable; SReclaimable before Linux 4.20, which did not count other caches.
    #[must_use]
    pub fn reclaimable_kernel_bytes(&self) -> Option<u64> {
        self.get_or("KReclaimable", || self.get("SReclaimable"))
    }

    /// Huge pages (hugetlb) of all sizes; before Linux 4.16 only of the default size.
    #[must_use]
    pub fn hugetlb_bytes(&self) -> Option<u64> {
        self.get_or("Hugetlb", || {
            let pages = self.get("HugePages_Total")?;
            Some(pages.saturating_mul(self.get("Hugepagesize")?))
        })
    }

    /// PageTables and SecPageTables; before Linux 6.0 PageTables included both.
    #[must_use]
    pub fn page_tables_bytes(&self) -> Option<u64> {
        let secondary = self.get_or("SecPageTables", || Some(0))?;
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

/// Parses only MemAvailable, in bytes: the figure that is read between samples.
#[must_use]
pub fn mem_available_bytes(text: &[u8]) -> Option<u64> {
    let line = lines(text).find(|line| line.starts_with(b"MemAvailable:"))?;
    entry(line).and_then(|(_, bytes)| bytes)
}

fn entry(line: &[u8]) -> Option<(String, Option<u64>)> {
    let mut words = words(line);
    let name = words.next()?.strip_suffix(b":")?;
    let value = words.next().and_then(number);
    let value = match words.next() {
        Some(b"kB") => value.map(kib_to_bytes),
        Some(_) => None,
        None => value,
    };
    let value = value.filter(|&bytes| bytes <= LARGEST_BYTES);
    Some((String::from_utf8_lossy(name).into_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn figures_by_name_in_bytes() {
        let text = b"MemTotal:       16309864 kB\nMemFree: 0 kB\nActive(file):    4 kB\nInactive(file):  6 kB\n\
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
        assert_eq!(meminfo.malformed("cached_bytes"), None);
        assert!(Meminfo::parse(b"MemFree: 1 kB\n").is_none());
        assert!(Meminfo::parse(b"MemTotal: 1 kB\n").is_none());
    }

    #[test]
    fn what_is_no_figure_makes_its_column_absent() {
        for (line, column, name) in [
            ("Cached: x kB", "cached_bytes", "Cached"),
            ("Cached: -1 kB", "cached_bytes", "Cached"),
            ("Cached:", "cached_bytes", "Cached"),
            ("Cached: 7 MB", "cached_bytes", "Cached"),
            ("Cached: 18446744073709551616 kB", "cached_bytes", "Cached"),
            ("Cached: 99999999999999999 kB", "cached_bytes", "Cached"),
            (
                "PageTables: 4 kB\nSecPageTables: kB",
                "page_tables_bytes",
                "SecPageTables",
            ),
        ] {
            let text = format!("MemTotal: 9 kB\nMemFree: 1 kB\n{line}\n");
            let meminfo = Meminfo::parse(text.as_bytes()).unwrap();
            assert_eq!(meminfo.get("Cached"), None, "{line}");
            assert_eq!(meminfo.page_tables_bytes(), None, "{line}");
            assert_eq!(meminfo.malformed(column), Some(name), "{line}");
        }
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
