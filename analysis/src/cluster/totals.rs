//! Cluster totals over time: physical and available memory and quotas of all hosts, and of idle ones
//! (Acharya & Setia, Figure 6), and the distribution of these totals over cells.

use crate::cluster::by_cell::ByCell;
use crate::cluster::grid::HostCells;
use crate::cluster::points::stretches;
use crate::cluster::quantile::reached_by;
use crate::statistics::distribution::Distribution;
use gleaner_schemas::findings::{ClusterAvailable, ClusterPoint, Findings, Scope};
use serde::{Deserialize, Serialize};

/// Sums over the hosts seen in one cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Total {
    hosts_seen: i64,
    hosts_missing: i64,
    physical_bytes: i64,
    available_bytes: i64,
    available_least_bytes: i64,
    /// Number of hosts whose idleness is known.
    hosts_told: i64,
    idle_ms: i64,
    idle_available_bytes: i64,
    idle_available_least_bytes: i64,
    idle_paper_quota_bytes: i64,
    /// Number of hosts whose harvestable memory is known.
    hosts_harvestable: i64,
    harvestable_bytes: i64,
    /// Number of hosts whose harvestable memory and idleness are known.
    hosts_idle_harvestable: i64,
    idle_harvestable_bytes: i64,
}

impl Total {
    fn add(&mut self, other: &Self) {
        // The values are never negative, so that saturating sums do not depend on their order.
        let add = |mine: &mut i64, theirs: i64| *mine = mine.saturating_add(theirs);
        add(&mut self.hosts_seen, other.hosts_seen);
        add(&mut self.hosts_missing, other.hosts_missing);
        add(&mut self.physical_bytes, other.physical_bytes);
        add(&mut self.available_bytes, other.available_bytes);
        add(&mut self.available_least_bytes, other.available_least_bytes);
        add(&mut self.hosts_told, other.hosts_told);
        add(&mut self.idle_ms, other.idle_ms);
        add(&mut self.idle_available_bytes, other.idle_available_bytes);
        add(
            &mut self.idle_available_least_bytes,
            other.idle_available_least_bytes,
        );
        add(
            &mut self.idle_paper_quota_bytes,
            other.idle_paper_quota_bytes,
        );
        add(&mut self.hosts_harvestable, other.hosts_harvestable);
        add(&mut self.harvestable_bytes, other.harvestable_bytes);
        add(
            &mut self.hosts_idle_harvestable,
            other.hosts_idle_harvestable,
        );
        add(
            &mut self.idle_harvestable_bytes,
            other.idle_harvestable_bytes,
        );
    }
}

/// Totals by cell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Totals {
    cells: ByCell<Total>,
}

impl Totals {
    pub(crate) fn of_host(host: &HostCells) -> Self {
        let mut found = Self::default();
        for at in host.missing() {
            found.cells.at(at).hosts_missing = 1;
        }
        for (at, cell) in host.iter() {
            let told = cell.idle.is_some();
            *found.cells.at(at) = Total {
                hosts_seen: 1,
                hosts_missing: 0,
                physical_bytes: cell.physical_bytes,
                available_bytes: cell.available_bytes,
                available_least_bytes: cell.available_least_bytes,
                hosts_told: i64::from(told),
                idle_ms: cell.idle_ms,
                idle_available_bytes: cell.idle_available_bytes,
                idle_available_least_bytes: if cell.idle == Some(true) {
                    cell.available_least_bytes
                } else {
                    0
                },
                idle_paper_quota_bytes: cell.idle_paper_quota_bytes,
                hosts_harvestable: i64::from(cell.harvestable_bytes.is_some()),
                harvestable_bytes: cell.harvestable_bytes.unwrap_or(0),
                hosts_idle_harvestable: i64::from(told && cell.idle_harvestable_bytes.is_some()),
                idle_harvestable_bytes: cell.idle_harvestable_bytes.unwrap_or(0),
            };
        }
        found
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.cells.merge(&other.cells, Total::add);
    }

    pub(crate) fn write(&self, cell_ms: i64, findings: &mut Findings) {
        let seen = self.cells.iter().filter(|(_, total)| total.hosts_seen > 0);
        let (cells, totals): (Vec<i64>, Vec<Total>) = seen.map(|(at, t)| (at, *t)).unzip();
        let mut before = None;
        for part in stretches(&cells) {
            let (first, last) = (cells[part.start], cells[part.end - 1]);
            let is_after_gap = before.is_some_and(|before: i64| first - before > 1);
            let point = point(
                first.saturating_mul(cell_ms),
                is_after_gap,
                &totals[part],
                cell_ms,
            );
            findings.cluster_over_time.push(point);
            before = Some(last);
        }
        let available = |t: &Total| Some((t.available_bytes, t.physical_bytes));
        let idle =
            |t: &Total| (t.hosts_told > 0).then_some((t.idle_available_bytes, t.physical_bytes));
        // If more than one host of ten is missing, the sum is not the cluster's.
        let whole = || {
            totals
                .iter()
                .filter(|t| t.hosts_seen >= t.hosts_missing.saturating_mul(9))
        };
        let all = summary(Scope::All, whole().filter_map(available).collect());
        let idle = summary(Scope::Idle, whole().filter_map(idle).collect());
        findings
            .cluster_available
            .extend(all.into_iter().chain(idle));
    }
}

fn point(time_ms: i64, is_after_gap: bool, totals: &[Total], cell_ms: i64) -> ClusterPoint {
    let n = totals.len() as f64;
    let mean = |of: fn(&Total) -> i64| totals.iter().map(|t| of(t) as f64).sum::<f64>() / n;
    let told = totals.iter().any(|t| t.hosts_told > 0);
    let harvestable = totals.iter().any(|t| t.hosts_harvestable > 0);
    let idle_harvestable = totals.iter().any(|t| t.hosts_idle_harvestable > 0);
    let least = |of: fn(&Total) -> i64| totals.iter().map(of).min();
    ClusterPoint {
        time_ms,
        cells_count: totals.len() as i64,
        is_after_gap,
        hosts_seen_count: mean(|t| t.hosts_seen),
        hosts_idle_count: told.then(|| mean(|t| t.idle_ms) / cell_ms as f64),
        physical_bytes: mean(|t| t.physical_bytes),
        available_bytes: mean(|t| t.available_bytes),
        min_available_bytes: least(|t| t.available_least_bytes).unwrap_or(0),
        harvestable_bytes: harvestable.then(|| mean(|t| t.harvestable_bytes)),
        idle_available_bytes: told.then(|| mean(|t| t.idle_available_bytes)),
        min_idle_available_bytes: least(|t| t.idle_available_least_bytes).filter(|_| told),
        idle_paper_quota_bytes: told.then(|| mean(|t| t.idle_paper_quota_bytes)),
        idle_harvestable_bytes: idle_harvestable.then(|| mean(|t| t.idle_harvestable_bytes)),
    }
}

/// Summary of totals. Each total is a pair with the physical memory. `None` without totals.
fn summary(scope: Scope, totals: Vec<(i64, i64)>) -> Option<ClusterAvailable> {
    let distribution = Distribution::of(totals.iter().copied());
    let physical = Distribution::of(totals.iter().map(|t| (t.1, t.1))).mean()?;
    let mut bytes: Vec<i64> = totals.into_iter().map(|t| t.0).collect();
    bytes.sort_unstable();
    let mean_bytes = distribution.mean()?;
    Some(ClusterAvailable {
        scope,
        cells_count: distribution.count,
        mean_bytes,
        sd_bytes: distribution.deviation(),
        p1_bytes: reached_by(&bytes, 990)?,
        p5_bytes: reached_by(&bytes, 950)?,
        median_bytes: reached_by(&bytes, 500)?,
        max_bytes: distribution.max,
        share_of_physical: if physical > 0.0 {
            mean_bytes / physical
        } else {
            0.0
        },
    })
}
