//! The index of a file: lists the file's record batches, and which rows each host has in them.
//!
//! The index is stored in the file's own Arrow footer as the metadata `gleaner.index`, in lines of JSON.
//! The first line lists the batches, each with its hash and number of rows. Then one line per host
//! follows, in order: id, first row in the file, number of rows, and the host's databases with their
//! lowest and highest record sequence.
//!
//! ```text
//! [["5d81…",1030],["e00c…",1027]]
//! ["0db1…",0,7,[["7c4f…",1,7]]]
//! ["11aa…",7,5,[["90be…",12,16]]]
//! ```
//!
//! A host is found by bisection in the file's mapped bytes: the reader needs no memory of its own for an
//! index of ten thousand hosts.

use crate::manifest::HostEntry;
use arrow::buffer::Buffer;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Key, in the footer's metadata, of the index.
pub(crate) const INDEX_KEY: &str = "gleaner.index";

/// Key, in the footer's metadata, of the interval to which the file's samples were thinned, in ms.
pub(crate) const THINNED_KEY: &str = "gleaner.thinned_to_ms";

/// A host's rows in a file: `rows` rows from `first_row` on. No other host has rows among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostRows {
    pub(crate) host_id: String,
    pub(crate) first_row: u64,
    pub(crate) rows: u64,
    /// Databases that recorded the rows, ordered by id. All of a database's records are within its bounds,
    /// but not all records within the bounds need exist.
    pub(crate) databases: Vec<DatabaseRows>,
}

/// Bounds of the records of one database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(String, i64, i64)", into = "(String, i64, i64)")]
pub(crate) struct DatabaseRows {
    pub(crate) database_id: String,
    pub(crate) first_sequence: i64,
    pub(crate) last_sequence: i64,
}

/// Record batches with one hash over their bytes. Since format version 2, a part is a single batch; in
/// version 1 it was all batches of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) batches: Range<usize>,
    pub(crate) first_row: u64,
    pub(crate) rows: u64,
    pub(crate) blake3: String,
}

/// A parsed index.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) parts: Vec<Part>,
    /// Text of the index's lines for hosts.
    hosts: Buffer,
}

/// An index that is being built.
#[derive(Debug, Default)]
pub(crate) struct IndexText {
    batches: Vec<(String, u64)>,
    hosts: String,
    pub(crate) rows: u64,
    pub(crate) hosts_count: u64,
}

type Line<'a> = (String, u64, u64, Vec<DatabaseRows>);

impl IndexText {
    /// Adds a record batch that has been written.
    pub(crate) fn add_batch(&mut self, blake3: String, rows: u64) {
        self.batches.push((blake3, rows));
    }

    /// Adds the next host; its rows follow those of the hosts added before.
    pub(crate) fn add_host(
        &mut self,
        host_id: &str,
        rows: u64,
        databases: &[DatabaseRows],
    ) -> serde_json::Result<()> {
        let line = (host_id, self.rows, rows, databases);
        self.hosts += &serde_json::to_string(&line)?;
        self.hosts.push('\n');
        self.rows += rows;
        self.hosts_count += 1;
        Ok(())
    }

    pub(crate) fn finish(self) -> serde_json::Result<String> {
        let mut text = serde_json::to_string(&self.batches)?;
        text.push('\n');
        text += &self.hosts;
        Ok(text)
    }
}

impl Index {
    /// Parses the index in `text`.
    pub(crate) fn parse(text: &Buffer) -> serde_json::Result<Self> {
        let head = line_end(text, 0);
        let batches: Vec<(String, u64)> = serde_json::from_slice(&text[..head])?;
        let mut first_row = 0_u64;
        let parts = batches.into_iter().enumerate().map(|(at, (blake3, rows))| {
            let part = Part {
                batches: at..at + 1,
                first_row,
                rows,
                blake3,
            };
            first_row = first_row.saturating_add(rows);
            part
        });
        let parts = parts.collect();
        let hosts = text.slice((head + 1).min(text.len()));
        Ok(Self { parts, hosts })
    }

    /// Index of a file of format version 1, made from the manifest's entry.
    pub(crate) fn inline(hosts: &[HostEntry]) -> serde_json::Result<Self> {
        let mut text = IndexText::default();
        let mut parts = Vec::new();
        for host in hosts {
            parts.push(Part {
                batches: host.first_batch..host.first_batch.saturating_add(host.batches),
                first_row: text.rows,
                rows: host.rows,
                blake3: host.blake3.clone(),
            });
            let databases: Vec<_> = host
                .databases
                .iter()
                .map(|d| DatabaseRows {
                    database_id: d.database_id.clone(),
                    first_sequence: d.first_sequence,
                    last_sequence: d.last_sequence,
                })
                .collect();
            text.add_host(&host.host_id, host.rows, &databases)?;
        }
        let hosts = Buffer::from_vec(text.hosts.into_bytes());
        Ok(Self { parts, hosts })
    }

    /// All hosts, in order.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = serde_json::Result<HostRows>> {
        let lines = self.hosts.split(|&byte| byte == b'\n');
        lines.filter(|line| !line.is_empty()).map(host_rows)
    }

    /// Finds the rows of one host; `None` if the file has none.
    pub(crate) fn host(&self, host_id: &str) -> serde_json::Result<Option<HostRows>> {
        Ok(self.find(host_id)?.map(|(host, _)| host))
    }

    /// The hosts after `host_id`, in order; none if the file has no rows of this host.
    pub(crate) fn hosts_after(
        &self,
        host_id: &str,
    ) -> impl Iterator<Item = serde_json::Result<HostRows>> + use<'_> {
        let found = self.find(host_id).ok().flatten();
        let after = found.and_then(|(_, end)| self.hosts.get(end + 1..));
        let lines = after.unwrap_or_default().split(|&byte| byte == b'\n');
        lines.filter(|line| !line.is_empty()).map(host_rows)
    }

    /// Finds the rows of one host, and the end of its line.
    fn find(&self, host_id: &str) -> serde_json::Result<Option<(HostRows, usize)>> {
        let (mut low, mut high) = (0, self.hosts.len());
        while low < high {
            // Find the line that contains the middle.
            let middle = low + (high - low) / 2;
            let before = self.hosts[low..middle].iter().rposition(|&b| b == b'\n');
            let start = before.map_or(low, |newline| low + newline + 1);
            let end = line_end(&self.hosts, start);
            let found = host_rows(&self.hosts[start..end])?;
            match found.host_id.as_str().cmp(host_id) {
                std::cmp::Ordering::Equal => return Ok(Some((found, end))),
                std::cmp::Ordering::Less => low = end + 1,
                std::cmp::Ordering::Greater => high = start,
            }
        }
        Ok(None)
    }

    /// The parts with rows of `host`, each with the range of the host's rows in the part.
    pub(crate) fn parts_of(&self, host: &HostRows) -> impl Iterator<Item = (&Part, Range<u64>)> {
        let (first, end) = (host.first_row, host.first_row.saturating_add(host.rows));
        let start = self
            .parts
            .partition_point(|part| part.first_row.saturating_add(part.rows) <= first);
        let from = self.parts[start..].iter();
        from.take_while(move |part| part.first_row < end)
            .map(move |part| {
                let from = first.saturating_sub(part.first_row);
                let to = (end - part.first_row).min(part.rows);
                (part, from..to)
            })
    }
}

fn host_rows(line: &[u8]) -> serde_json::Result<HostRows> {
    let (host_id, first_row, rows, databases): Line<'_> = serde_json::from_slice(line)?;
    Ok(HostRows {
        host_id,
        first_row,
        rows,
        databases,
    })
}

/// End of the line that begins at `start`.
fn line_end(text: &[u8], start: usize) -> usize {
    let newline = text[start..].iter().position(|&byte| byte == b'\n');
    newline.map_or(text.len(), |length| start + length)
}

impl From<(String, i64, i64)> for DatabaseRows {
    fn from((database_id, first_sequence, last_sequence): (String, i64, i64)) -> Self {
        Self {
            database_id,
            first_sequence,
            last_sequence,
        }
    }
}

impl From<DatabaseRows> for (String, i64, i64) {
    fn from(d: DatabaseRows) -> Self {
        (d.database_id, d.first_sequence, d.last_sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_is_found_and_nobody_else() {
        let mut text = IndexText::default();
        let name = |i: u64| format!("host \"{i:03}\"\n");
        for i in 0..100 {
            let database = DatabaseRows {
                database_id: "x".repeat(i as usize % 7),
                first_sequence: -5,
                last_sequence: i as i64,
            };
            text.add_host(&name(2 * i), i, &[database]).unwrap();
        }
        text.add_batch("hash".to_owned(), 4950);
        let text = Buffer::from_vec(text.finish().unwrap().into_bytes());
        let index = Index::parse(&text).unwrap();
        assert_eq!(index.hosts().count(), 100);
        for (i, host) in (0..).zip(index.hosts().map(Result::unwrap)) {
            assert_eq!((host.host_id.clone(), host.rows), (name(2 * i), i));
            assert_eq!(host.first_row, i * i.saturating_sub(1) / 2);
            assert_eq!(index.host(&name(2 * i)).unwrap(), Some(host));
            assert_eq!(index.host(&name(2 * i + 1)).unwrap(), None);
            let after = index.hosts_after(&name(2 * i));
            assert_eq!(after.count() as u64, 99 - i);
            assert_eq!(index.hosts_after(&name(2 * i + 1)).count(), 0);
        }
        assert_eq!(index.host("").unwrap(), None);
    }

    #[test]
    fn a_host_lies_in_the_batches_that_its_rows_touch() {
        let mut text = IndexText::default();
        for (host, rows) in [("a", 3), ("b", 10), ("c", 1)] {
            text.add_host(host, rows, &[]).unwrap();
        }
        for rows in [5, 5, 4] {
            text.add_batch("hash".to_owned(), rows);
        }
        let text = Buffer::from_vec(text.finish().unwrap().into_bytes());
        let index = Index::parse(&text).unwrap();
        let parts = |host| {
            let host = index.host(host).unwrap().unwrap();
            let parts = index.parts_of(&host);
            parts
                .map(|(part, rows)| (part.batches.start, rows))
                .collect::<Vec<_>>()
        };
        assert_eq!(parts("a"), [(0, 0..3)]);
        assert_eq!(parts("b"), [(0, 3..5), (1, 0..5), (2, 0..3)]);
        assert_eq!(parts("c"), [(2, 3..4)]);
    }
}
