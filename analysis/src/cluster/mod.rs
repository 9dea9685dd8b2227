//! All hosts together: a cluster's memory over time, on a grid of time that all hosts share.
//!
//! A host is put on the grid once ([`grid`]), and each measure adds its sums over hosts by cell, so that
//! memory use grows with the grid and not with the fleet. The sums are integers: the same dataset gives the
//! same figures, however it is divided. The *quota* is the paper's (`policy::quota`):
//! available and lent memory less the headroom.

mod by_cell;
mod by_class;
mod cell;
mod contribution;
pub(crate) mod grid;
mod guarantees;
mod joint;
mod missing;
mod outlook;
mod points;
mod pooling;
mod quantile;
mod returns;
mod totals;

use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{Measure, MeasureOutput};
use crate::trace::reads::ReadSet;
use by_class::ByClass;
use contribution::Contributions;
use gleaner_schemas::findings::{
    ClassContribution, ClassPoint, ClusterAvailable, ClusterPoint, Copies, Findings, Guarantee,
    Parameters, PoolingSaving, RankContribution, ReturnsByHour, WorstReturn,
};
use grid::HostCells;
use guarantees::Guarantees;
use joint::JointFates;
use pooling::Pools;
use returns::Returns;
use serde::{Deserialize, Serialize};
use totals::Totals;

/// Every measure of the hosts together.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cluster {
    totals: Totals,
    by_class: ByClass,
    contributions: Contributions,
    guarantees: Guarantees,
    joint: JointFates,
    returns: Returns,
    pools: Pools,
}

impl Cluster {
    fn of_cells(host: &HostCells, parameters: &Parameters) -> Result<Self> {
        Ok(Self {
            totals: Totals::of_host(host),
            by_class: ByClass::of_host(host),
            contributions: Contributions::of_host(host),
            guarantees: Guarantees::of_host(host),
            joint: JointFates::of_host(host, parameters),
            returns: Returns::of_host(host, parameters)?,
            pools: Pools::of_host(host),
        })
    }
}

impl Measure for Cluster {
    const OUTPUTS: &'static [MeasureOutput] = &[
        MeasureOutput::of::<ClusterPoint>(ReadSet::SAMPLES),
        MeasureOutput::of::<ClusterAvailable>(ReadSet::SAMPLES),
        MeasureOutput::of::<ClassPoint>(ReadSet::SAMPLES),
        MeasureOutput::of::<ClassContribution>(ReadSet::SAMPLES),
        MeasureOutput::of::<RankContribution>(ReadSet::SAMPLES),
        MeasureOutput::of::<Guarantee>(ReadSet::SAMPLES),
        MeasureOutput::of::<Copies>(ReadSet::SAMPLES),
        MeasureOutput::of::<ReturnsByHour>(ReadSet::SAMPLES),
        MeasureOutput::of::<WorstReturn>(ReadSet::SAMPLES),
        MeasureOutput::of::<PoolingSaving>(ReadSet::SAMPLES),
    ];

    fn of_host(host: &HostHistory<'_>, parameters: &Parameters) -> Result<Self> {
        // The cells are made once for all measures, which is why this is no list of `pools!`.
        Self::of_cells(&HostCells::of(host, parameters), parameters)
    }

    fn merge(&mut self, other: &Self) {
        self.totals.merge(&other.totals);
        self.by_class.merge(&other.by_class);
        self.contributions.merge(&other.contributions);
        self.guarantees.merge(&other.guarantees);
        self.joint.merge(&other.joint);
        self.returns.merge(&other.returns);
        self.pools.merge(&other.pools);
    }

    fn write(&self, _size_class: &str, parameters: &Parameters, findings: &mut Findings) {
        let cell_ms = grid::cell_ms(parameters);
        self.totals.write(cell_ms, findings);
        self.by_class.write(cell_ms, findings);
        self.contributions.write(findings);
        self.guarantees.write(cell_ms, findings);
        self.joint.write(cell_ms, parameters, findings);
        self.returns.write(cell_ms, findings);
        self.pools.write(findings);
        let missing = missing::of_cluster(cell_ms, &self.pools, parameters, findings);
        findings.missing_measures.extend(missing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::cell::Cell;
    use crate::cluster::outlook::tests::any_host;
    use gleaner_schemas::findings::Scope;
    use proptest::prelude::*;

    fn parameters() -> Parameters {
        Parameters {
            region_bytes: vec![3, 6],
            cluster_cell_s: 600.0,
            ..Parameters::default()
        }
    }

    fn written<'a>(hosts: impl Iterator<Item = &'a [HostCells]>) -> Findings {
        let mut all: Option<Cluster> = None;
        for part in hosts {
            let mut of_part: Option<Cluster> = None;
            for host in part {
                let one = Cluster::of_cells(host, &parameters()).unwrap();
                match &mut of_part {
                    Some(cluster) => cluster.merge(&one),
                    None => of_part = Some(one),
                }
            }
            match (&mut all, of_part) {
                (Some(all), Some(part)) => all.merge(&part),
                (all, part) => *all = all.take().or(part),
            }
        }
        let mut findings = Findings::default();
        if let Some(all) = all {
            all.write("all", &parameters(), &mut findings);
        }
        findings
    }

    proptest! {
        /// Merging two halves equals merging all in every list; totals, returns and shares equal those of a
        /// walk over hosts and cells.
        #[test]
        fn equals_the_slow_version(
            mut hosts in prop::collection::vec(any_host(), 1..6), half in 0..6usize
        ) {
            for (i, host) in hosts.iter_mut().enumerate() {
                host.host = i.to_string();
            }
            let half = half.min(hosts.len());
            let found = written([&hosts[..]].into_iter());
            let halves = written([&hosts[..half], &hosts[half..]].into_iter());
            prop_assert_eq!(&found, &halves);
            let debug = format!("{found:?}");
            prop_assert!(!debug.contains("NaN") && !debug.contains("inf"));

            let in_cell = |at: i64| -> Vec<&Cell> {
                let cells = hosts.iter().flat_map(HostCells::iter);
                cells.filter(|(cell, _)| *cell == at).map(|(_, cell)| cell).collect()
            };
            let mut points = found.cluster_over_time.iter();
            let (mut returns, mut available) = (0, Vec::new());
            for at in 0..60 {
                let cells = in_cell(at);
                if cells.is_empty() {
                    continue;
                }
                let sum = |of: fn(&Cell) -> i64| cells.iter().map(|c| of(c)).sum::<i64>();
                let told = cells.iter().any(|c| c.idle.is_some());
                let point = points.next().unwrap();
                prop_assert_eq!(point.time_ms, at * 600_000);
                prop_assert_eq!(point.hosts_seen_count, cells.len() as f64);
                prop_assert_eq!(point.available_bytes, sum(|c| c.available_bytes) as f64);
                prop_assert_eq!(point.physical_bytes, cells.len() as f64 * 10.0);
                let idle = sum(|c| c.idle_available_bytes) as f64;
                prop_assert_eq!(point.idle_available_bytes, told.then_some(idle));
                let missing = hosts.iter().filter(|h| h.missing().any(|cell| cell == at)).count();
                if cells.len() >= 9 * missing {
                    available.push(point.available_bytes);
                }
                returns += sum(|c| i64::from(c.returned));
            }
            prop_assert!(points.next().is_none());
            let hours = found.returns_by_hour.iter();
            let found_returns: f64 = hours
                .map(|h| h.mean_returns_per_cell * h.cells_count as f64)
                .sum();
            prop_assert!((found_returns - returns as f64).abs() < 1e-9);
            let all = found.cluster_available.iter().find(|c| c.scope == Scope::All);
            if let Some(all) = all {
                let mean = available.iter().sum::<f64>() / available.len() as f64;
                prop_assert!((all.mean_bytes - mean).abs() < 1e-9);
                // By definition at most 1 % of the cells are below, or 5 %, or half of them.
                for (bytes, may_be) in [(all.p1_bytes, 0.01), (all.p5_bytes, 0.05), (all.median_bytes, 0.5)] {
                    let below = available.iter().filter(|a| **a < bytes as f64).count();
                    prop_assert!(below as f64 <= may_be * available.len() as f64);
                }
            }
            for scope in [Scope::All, Scope::Idle] {
                let classes = found.contribution_by_class.iter().filter(|c| c.scope == scope);
                let shares: Vec<f64> = classes.map(|c| c.available_share).collect();
                let sum: f64 = shares.iter().sum();
                prop_assert!(shares.is_empty() || (sum - 1.0).abs() < 1e-9);
                let ranks = found.contribution_by_rank.iter().filter(|c| c.scope == scope);
                let ranks: Vec<_> = ranks.map(|c| (c.hosts_share, c.available_share)).collect();
                // The top N hosts contribute at least N/total.
                prop_assert!(ranks.iter().all(|(hosts, given)| *given > hosts - 1e-9));
                prop_assert!(ranks.last().is_none_or(|last| *last == (1.0, 1.0)));
            }
        }
    }
}
