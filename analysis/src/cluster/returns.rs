//! Simultaneous returns: the number of hosts that stop being idle within one cell, and the memory that they
//! reclaim.
//!
//! A host returns in a cell if it was idle at the cell's start and that idle period is known to end in the
//! cell, by the owner's activity or a high load. It reclaims what it had to lend at the cell's start.

use crate::cluster::by_cell::ByCell;
use crate::cluster::cell::Cell;
use crate::cluster::grid::HostCells;
use crate::error::Result;
use crate::trace::calendar::{Calendar, HOURS_OF_WEEK};
use gleaner_schemas::findings::{Findings, Parameters, ReturnsByHour, WorstReturn};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// Number of worst moments listed.
const WORST_LISTED: usize = 10;
const HOUR_MS: i64 = 3_600_000;

/// Sums over the hosts whose idleness is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct IdleSums {
    hosts: i64,
    hour_of_week: u8,
    idle_before: i64,
    quota_bytes: i64,
    returns: i64,
    bytes: i64,
}

impl IdleSums {
    fn add(&mut self, other: &Self) {
        self.hosts += other.hosts;
        // The hour is the same in both, or 0 in sums without a host.
        self.hour_of_week = self.hour_of_week.max(other.hour_of_week);
        self.idle_before += other.idle_before;
        self.quota_bytes = self.quota_bytes.saturating_add(other.quota_bytes);
        self.returns += other.returns;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Returns by cell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Returns {
    cells: ByCell<IdleSums>,
}

impl Returns {
    pub(crate) fn of_host(host: &HostCells, parameters: &Parameters) -> Result<Self> {
        let told = host.iter().filter(|(_, cell)| cell.idle.is_some());
        let (places, cells): (Vec<i64>, Vec<&Cell>) = told.unzip();
        let starts_ms: Vec<i64> = (places.iter())
            .map(|at| at.saturating_mul(host.cell_ms))
            .collect();
        let hours = Calendar::new(&parameters.time_zone)?.hours_of_week(&starts_ms);
        let mut found = Self::default();
        for ((at, cell), hour_of_week) in places.into_iter().zip(cells).zip(hours) {
            let quota = |counts: bool| {
                if counts { cell.quota_at_start_bytes } else { 0 }
            };
            *found.cells.at(at) = IdleSums {
                hosts: 1,
                hour_of_week,
                idle_before: i64::from(cell.idle_at_start),
                quota_bytes: quota(cell.idle_at_start),
                returns: i64::from(cell.returned),
                bytes: quota(cell.returned),
            };
        }
        Ok(found)
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.cells.merge(&other.cells, IdleSums::add);
    }

    pub(crate) fn write(&self, cell_ms: i64, findings: &mut Findings) {
        let seen = || self.cells.iter().filter(|(_, back)| back.hosts > 0);
        // A cell longer than an hour lies in several hours, so there are no figures by hour.
        if cell_ms <= HOUR_MS {
            let mut hours = vec![Vec::new(); HOURS_OF_WEEK];
            for (_, back) in seen() {
                if let Some(hour) = hours.get_mut(usize::from(back.hour_of_week)) {
                    hour.push(*back);
                }
            }
            let records = hours.iter().enumerate();
            let records = records.filter_map(|(hour, cells)| in_hour(hour as i64, cells));
            findings.returns_by_hour.extend(records);
        }
        let mut worst: Vec<_> = seen().filter(|(_, back)| back.returns > 0).collect();
        worst.sort_by_key(|(at, back)| (Reverse((back.bytes, back.returns)), *at));
        let records = worst.into_iter().take(WORST_LISTED);
        findings
            .worst_returns
            .extend(records.map(|(at, back)| WorstReturn {
                time_ms: at.saturating_mul(cell_ms),
                hosts_count: back.returns,
                idle_hosts_before_count: back.idle_before,
                reclaimed_bytes: back.bytes,
                share_of_quota:
                    (back.quota_bytes > 0).then(|| back.bytes as f64 / back.quota_bytes as f64),
            }));
    }
}

fn in_hour(hour_of_week: i64, cells: &[IdleSums]) -> Option<ReturnsByHour> {
    let n = cells.len() as f64;
    let returns: i64 = cells.iter().map(|b| b.returns).sum();
    let idle_before: i64 = cells.iter().map(|b| b.idle_before).sum();
    Some(ReturnsByHour {
        weekday: hour_of_week / 24 + 1,
        hour: hour_of_week % 24,
        cells_count: cells.len() as i64,
        mean_returns_per_cell: returns as f64 / n,
        max_returns_per_cell: cells.iter().map(|b| b.returns).max()?,
        share_of_idle_hosts: (idle_before > 0).then(|| returns as f64 / idle_before as f64),
        mean_reclaimed_bytes: cells.iter().map(|b| b.bytes as f64).sum::<f64>() / n,
        max_reclaimed_bytes: cells.iter().map(|b| b.bytes).max()?,
    })
}
