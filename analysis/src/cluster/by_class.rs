//! Memory over time by class of hosts: means over the hosts of a class (Acharya & Setia, Figure 4).

use crate::cluster::by_cell::ByCell;
use crate::cluster::grid::HostCells;
use crate::cluster::points::stretches;
use crate::sizes::SizeClass;
use gleaner_schemas::findings::{ClassPoint, Findings};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Sum of bytes over the hosts whose value is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Sum {
    hosts: i64,
    bytes: i64,
}

impl Sum {
    fn of(bytes: Option<i64>) -> Self {
        Self {
            hosts: i64::from(bytes.is_some()),
            bytes: bytes.unwrap_or(0),
        }
    }

    fn add(&mut self, other: Self) {
        self.hosts += other.hosts;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Sums over the hosts of a class that are seen in one cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Sums {
    available: Sum,
    kernel: Sum,
    process: Sum,
    file_cache: Sum,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.available.add(other.available);
        self.kernel.add(other.kernel);
        self.process.add(other.process);
        self.file_cache.add(other.file_cache);
    }
}

/// Sums by class and cell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ByClass {
    classes: BTreeMap<SizeClass, ByCell<Sums>>,
}

impl ByClass {
    pub(crate) fn of_host(host: &HostCells) -> Self {
        let mut cells = ByCell::default();
        for (at, cell) in host.iter() {
            *cells.at(at) = Sums {
                available: Sum::of(Some(cell.available_bytes)),
                kernel: Sum::of(cell.kernel_bytes),
                process: Sum::of(cell.process_bytes),
                file_cache: Sum::of(cell.file_cache_bytes),
            };
        }
        Self {
            classes: BTreeMap::from([(host.size_class, cells)]),
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (class, cells) in &other.classes {
            let mine = self.classes.entry(*class).or_default();
            mine.merge(cells, Sums::add);
        }
    }

    pub(crate) fn write(&self, cell_ms: i64, findings: &mut Findings) {
        for (class, cells) in &self.classes {
            let seen = cells.iter().filter(|(_, sums)| sums.available.hosts > 0);
            let (cells, sums): (Vec<i64>, Vec<Sums>) = seen.map(|(at, s)| (at, *s)).unzip();
            let mut before = None;
            for part in stretches(&cells) {
                let (first, last) = (cells[part.start], cells[part.end - 1]);
                let sums = &sums[part];
                let mean = |of: fn(&Sums) -> Sum| {
                    let hosts: i64 = sums.iter().map(|s| of(s).hosts).sum();
                    let bytes: f64 = sums.iter().map(|s| of(s).bytes as f64).sum();
                    (hosts > 0).then(|| bytes / hosts as f64)
                };
                let hosts: i64 = sums.iter().map(|s| s.available.hosts).sum();
                findings.class_over_time.push(ClassPoint {
                    size_class: class.to_string(),
                    time_ms: first.saturating_mul(cell_ms),
                    is_after_gap: before.is_some_and(|before: i64| first - before > 1),
                    hosts_seen_count: hosts as f64 / sums.len() as f64,
                    kernel_bytes: mean(|s| s.kernel),
                    process_bytes: mean(|s| s.process),
                    file_cache_bytes: mean(|s| s.file_cache),
                    available_bytes: mean(|s| s.available).unwrap_or(0.0),
                });
                before = Some(last);
            }
        }
    }
}
