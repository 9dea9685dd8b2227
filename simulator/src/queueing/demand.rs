//! Service demands of closed chains, as both solvers take them, and the mean values that they return.

use super::network::Discipline;

/// Demands of all closed chains.
#[derive(Clone, Debug)]
pub(super) struct ClosedDemands {
    pub(super) disciplines: Vec<Discipline>,
    pub(super) chains: Vec<ChainDemands>,
}

/// Demands of one closed chain.
#[derive(Clone, Debug)]
pub(super) struct ChainDemands {
    pub(super) name: String,
    /// Number of customers, at least 1.
    pub(super) customers: u32,
    /// Mean service time at each centre during a cycle, stretched by the open chains' load.
    pub(super) demands_s: Vec<f64>,
}

impl ClosedDemands {
    /// Time that a customer of `chain` spends at each centre during a cycle, waiting and in service, if on arrival it
    /// finds this many customers at each centre.
    pub(super) fn residences_s(
        &self,
        chain: &ChainDemands,
        found: impl Iterator<Item = f64>,
    ) -> Vec<f64> {
        let at_centres = chain.demands_s.iter().zip(&self.disciplines).zip(found);
        let residence_s =
            |((demand_s, discipline), found): ((&f64, &Discipline), f64)| match discipline {
                Discipline::Fcfs => demand_s * (1.0 + found),
                Discipline::Delay => *demand_s,
            };
        at_centres.map(residence_s).collect()
    }
}

/// Mean values of all closed chains.
#[derive(Clone, Debug, Default)]
pub(super) struct ClosedMeans {
    /// Cycles that each chain completes in a second.
    pub(super) throughputs_per_s: Vec<f64>,
    /// Time of a cycle that each chain spends at each centre.
    pub(super) residences_s: Vec<Vec<f64>>,
}
