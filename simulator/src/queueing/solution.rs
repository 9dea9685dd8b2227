//! Mean values of a mixed network.

use super::demand::{ChainDemands, ClosedDemands, ClosedMeans};
use super::error::QueueingError;
use super::network::{Discipline, Network};
use super::{approximate, exact};

/// Mean values of a network in equilibrium.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// Closed chains, in the network's order.
    pub closed: Vec<ChainMeans>,
    /// Open chains, in the network's order.
    pub open: Vec<ChainMeans>,
    /// Centres, in the network's order.
    pub centres: Vec<CentreMeans>,
}

/// Mean values of one chain.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainMeans {
    /// Cycles, or customers of an open chain, that are completed in a second.
    pub throughput_per_s: f64,
    /// Time that a customer spends at each centre in one cycle, waiting and in service, in seconds.
    pub residences_s: Vec<f64>,
}

/// Mean values of one centre.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CentreMeans {
    /// Mean number of busy servers: at an FCFS centre the share of time that it is busy, at a delay centre the same as
    /// `customers`.
    pub utilization: f64,
    /// Mean number of customers of all chains, waiting and in service.
    pub customers: f64,
}

/// Solves a network by exact mean value analysis.
///
/// The open chains stretch the service times of the closed chains at each FCFS centre by 1 / (1 − load): Lazowska et al.
/// 1984, chapter 7, on mixed models. The solution is exact for networks of product form ([`Network`]).
///
/// # Errors
/// [`QueueingError::TooLarge`]: there are too many populations; [`approximate_solution`] takes any.
pub fn exact_solution(network: &Network) -> Result<Solution, QueueingError> {
    let means = exact::solve(&closed_demands(network))?;
    Ok(mixed(network, means))
}

/// Solves a network by Schweitzer's approximation.
///
/// # Errors
/// [`QueueingError::NotConverged`].
pub fn approximate_solution(network: &Network) -> Result<Solution, QueueingError> {
    let means = approximate::solve(&closed_demands(network))?;
    Ok(mixed(network, means))
}

/// Factor by which open chains stretch the service times of an FCFS centre.
fn stretch(discipline: Discipline, open_load: f64) -> f64 {
    match discipline {
        Discipline::Fcfs => 1.0 / (1.0 - open_load),
        Discipline::Delay => 1.0,
    }
}

fn closed_demands(network: &Network) -> ClosedDemands {
    let disciplines: Vec<Discipline> = network.centres().iter().map(|c| c.discipline).collect();
    let loads = network.open_loads();
    let stretches = || {
        disciplines
            .iter()
            .zip(&loads)
            .map(|(d, load)| stretch(*d, *load))
    };
    let chains = network.closed().iter().map(|chain| ChainDemands {
        name: chain.name.clone(),
        customers: chain.customers,
        demands_s: network
            .demands_s(&chain.route)
            .into_iter()
            .zip(stretches())
            .map(|(demand_s, stretch)| demand_s * stretch)
            .collect(),
    });
    let chains = chains.collect();
    ClosedDemands {
        disciplines,
        chains,
    }
}

/// Adds the open chains to the closed chains' mean values.
fn mixed(network: &Network, means: ClosedMeans) -> Solution {
    let mut centres = vec![CentreMeans::default(); network.centres().len()];
    let closed = means.throughputs_per_s.into_iter().zip(means.residences_s);
    let closed: Vec<ChainMeans> = closed
        .map(|(throughput_per_s, residences_s)| ChainMeans {
            throughput_per_s,
            residences_s,
        })
        .collect();
    for (chain, means) in network.closed().iter().zip(&closed) {
        add(&mut centres, means, &network.demands_s(&chain.route));
    }
    let closed_customers: Vec<f64> = centres.iter().map(|c| c.customers).collect();
    let loads = network.open_loads();
    let mut open = Vec::with_capacity(network.open().len());
    for chain in network.open() {
        let demands_s = network.demands_s(&chain.route);
        let at_centres = network
            .centres()
            .iter()
            .zip(&demands_s)
            .zip(&loads)
            .zip(&closed_customers);
        let residences_s = at_centres
            .map(
                |(((centre, demand_s), load), closed)| match centre.discipline {
                    Discipline::Fcfs => {
                        demand_s * (1.0 + closed) * stretch(Discipline::Fcfs, *load)
                    }
                    Discipline::Delay => *demand_s,
                },
            )
            .collect();
        let means = ChainMeans {
            throughput_per_s: chain.arrivals_per_s,
            residences_s,
        };
        add(&mut centres, &means, &demands_s);
        open.push(means);
    }
    Solution {
        closed,
        open,
        centres,
    }
}

/// Adds a chain to the mean values of the centres, by Little's law and the utilization law.
fn add(centres: &mut [CentreMeans], chain: &ChainMeans, demands_s: &[f64]) {
    let of_chain = chain.residences_s.iter().zip(demands_s);
    for (centre, (residence_s, demand_s)) in centres.iter_mut().zip(of_chain) {
        centre.customers += chain.throughput_per_s * residence_s;
        centre.utilization += chain.throughput_per_s * demand_s;
    }
}
