//! The hosts together: what a cluster has, and for how long, on a grid of time that all hosts share.
//!
//! A host is put on the grid once ([`grid`]), and each part adds what it needs: sums over hosts by cell, so
//! that memory grows with the grid and not with the fleet. Sums are whole numbers: the same dataset gives the
//! same figures, however it is divided. *Lendable* is what the paper recruits (`policy::quota`): available and lent
//! memory less the headroom.

mod by_cell;
mod by_class;
mod cell;
mod contribution;
pub(crate) mod grid;
mod guaranteed;
mod joint;
mod missing;
mod outlook;
mod points;
mod pooling;
mod quantile;
mod returns;
mod totals;

use crate::error::Result;
use crate::measure::Measure;
use crate::trace::HostTrace;
use by_class::ByClass;
use contribution::Contributions;
use gleaner_schemas::findings::{Findings, Parameters};
use grid::HostCells;
use guaranteed::Guarantees;
use joint::Joint;
use pooling::Pools;
use returns::Returns;
use totals::Totals;

/// Every measure of the hosts together.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    totals: Totals,
    by_class: ByClass,
    contributions: Contributions,
    guarantees: Guarantees,
    joint: Joint,
    returns: Returns,
    pools: Pools,
}

impl Measure for Cluster {
    fn of_host(trace: &HostTrace<'_>, parameters: &Parameters) -> Result<Self> {
        // Once for all parts, which is why this is no list of `measures!`.
        let host = HostCells::of(trace, parameters);
        Ok(Self {
            totals: Totals::of_host(&host),
            by_class: ByClass::of_host(&host),
            contributions: Contributions::of_host(&host),
            guarantees: Guarantees::of_host(&host),
            joint: Joint::of_host(&host, parameters),
            returns: Returns::of_host(&host, parameters)?,
            pools: Pools::of_host(&host),
        })
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
        findings.not_measured.extend(missing);
    }
}
