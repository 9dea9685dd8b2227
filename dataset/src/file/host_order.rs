//! Order in which a reader reads hosts, from which a fetch knows the next ones.

use crate::manifest::FileEntry;
use crate::store::Limits;

/// Number of pieces of each file that fit into memory: the present one, the next one, and an earlier one that
/// slower threads still read.
const PIECES_PER_FILE: u64 = 3;

/// Hosts that are read one after the other, in the order of their ids.
#[derive(Debug)]
pub(crate) struct HostOrder {
    /// Ids of the hosts, sorted.
    hosts: Vec<String>,
    /// Maximum length of a piece with the record batches of several hosts. The pieces of all files that one host
    /// needs fit into memory.
    pub(crate) piece_bytes: u64,
}

impl HostOrder {
    /// Order of `hosts`, whose rows are in `files`.
    pub(crate) fn new<'a>(
        mut hosts: Vec<String>,
        files: impl Iterator<Item = &'a FileEntry>,
        limits: &Limits,
    ) -> Self {
        hosts.sort_unstable();
        hosts.dedup();
        let files = files_per_host(&hosts, files).max(1);
        let fitting = limits.held_bytes / (PIECES_PER_FILE * files);
        Self {
            hosts,
            piece_bytes: fitting.min(limits.piece_bytes),
        }
    }

    pub(crate) fn has(&self, host_id: &str) -> bool {
        let found = self
            .hosts
            .binary_search_by(|host| host.as_str().cmp(host_id));
        found.is_ok()
    }

    /// Returns true if no host of the order has this id or a later one.
    pub(crate) fn ends_before(&self, host_id: &str) -> bool {
        self.hosts.last().is_none_or(|last| last.as_str() < host_id)
    }
}

/// Largest number of files that may have rows of the same host.
fn files_per_host<'a>(hosts: &[String], files: impl Iterator<Item = &'a FileEntry>) -> u64 {
    // Changes of the number from one host to the next.
    let mut changes = vec![0_i64; hosts.len() + 1];
    for file in files {
        let first = hosts.partition_point(|host| *host < file.first_host_id);
        let end = hosts.partition_point(|host| *host <= file.last_host_id);
        for (at, change) in [(first, 1), (end.max(first), -1)] {
            if let Some(changed) = changes.get_mut(at) {
                *changed += change;
            }
        }
    }
    let mut files = 0;
    let numbers = changes.into_iter().map(|change| {
        files += change;
        files
    });
    numbers.max().unwrap_or(0).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(first: &str, last: &str) -> FileEntry {
        FileEntry {
            table: String::new(),
            date: String::new(),
            path: String::new(),
            rows: 0,
            bytes: 0,
            blake3: String::new(),
            footer_blake3: String::new(),
            first_time_ms: 0,
            last_time_ms: 0,
            hosts_count: 0,
            first_host_id: first.to_owned(),
            last_host_id: last.to_owned(),
            thinned_to_ms: None,
            hosts: Vec::new(),
        }
    }

    #[test]
    fn pieces_of_all_files_of_a_host_fit_into_memory() {
        let limits = Limits {
            held_bytes: 1200,
            piece_bytes: 300,
            ..Limits::default()
        };
        let hosts = || ["c", "a", "e", "c"].map(str::to_owned).to_vec();
        for (files, expected) in [
            (vec![], 300),
            (vec![file("a", "z")], 300),
            (vec![file("a", "z"), file("b", "d")], 200), // both may have rows of c
            (vec![file("a", "b"), file("b", "d"), file("d", "z")], 300),
            (
                vec![
                    file("a", "e"),
                    file("a", "c"),
                    file("c", "c"),
                    file("f", "z"),
                ],
                133,
            ),
        ] {
            let order = HostOrder::new(hosts(), files.iter(), &limits);
            assert_eq!(order.piece_bytes, expected, "{files:?}");
            assert!(order.has("c") && !order.has("b"));
            assert!(order.ends_before("f") && !order.ends_before("e"));
        }
        let none = HostOrder::new(Vec::new(), std::iter::empty(), &limits);
        assert!(none.ends_before("") && !none.has(""));
    }
}
