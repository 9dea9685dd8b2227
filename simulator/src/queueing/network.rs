//! A mixed network of queues: centres, closed chains with a fixed number of customers, and open chains whose
//! customers arrive from outside and leave.

use super::error::{QueueingError, check};

/// Longest mean service time of a stage, in seconds. It is far above real ones: models stretch service times by the load
/// of open chains.
const MOST_SERVICE_S: f64 = 1e16;
/// Shortest total service time of a closed chain's route, in seconds. Shorter cycles would vanish in the
/// simulation's clock, which counts nanoseconds.
const LEAST_CYCLE_S: f64 = 1e-6;
/// Most customers of a closed chain.
const MOST_CUSTOMERS: f64 = 1e6;
/// Highest rate of an open chain, in customers per second.
const MOST_ARRIVALS_PER_S: f64 = 1e12;
/// Lowest rate of an open chain, in customers per second.
pub(super) const LEAST_ARRIVALS_PER_S: f64 = 1e-9;
/// Most centres, chains, stages of a route, and centres of a stage.
const MOST_PARTS: f64 = 1e4;

/// Service at a centre.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// One server, first come, first served.
    Fcfs,
    /// A server for each customer: nobody queues. It stands for latencies and for thinking.
    Delay,
}

/// A service centre.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Centre {
    /// Name in messages.
    pub name: String,
    /// Service of the centre.
    pub discipline: Discipline,
}

/// A stage of a route: one visit.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Indices of centres; the customer visits one of them, each with the same probability.
    pub centres: Vec<usize>,
    /// Mean service time of the visit, in seconds, without waiting. Times are exponentially distributed.
    pub service_s: f64,
}

impl Stage {
    /// A visit to one centre.
    #[must_use]
    pub fn at(centre: usize, service_s: f64) -> Self {
        Self {
            centres: vec![centre],
            service_s,
        }
    }
}

/// A chain whose customers repeat their route for ever.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedChain {
    /// Name in messages.
    pub name: String,
    /// Number of customers.
    pub customers: u32,
    /// Stages of one cycle.
    pub route: Vec<Stage>,
}

/// A chain whose customers arrive as a Poisson process, and leave at the end of their route.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenChain {
    /// Name in messages.
    pub name: String,
    /// Mean number of customers that arrive each second.
    pub arrivals_per_s: f64,
    /// Stages from arrival to departure.
    pub route: Vec<Stage>,
}

/// A mixed network whose parameters have been checked.
///
/// It has a product-form solution (Baskett, Chandy, Muntz and Palacios 1975) if all visits to an
/// [`Discipline::Fcfs`] centre have the same mean service time. Otherwise mean value analysis of it is the usual
/// approximation.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    centres: Vec<Centre>,
    closed: Vec<ClosedChain>,
    open: Vec<OpenChain>,
}

impl Network {
    /// Builds a network and checks its parameters.
    ///
    /// # Errors
    /// [`QueueingError::Parameter`] names the parameter that is outside its range; [`QueueingError::Overloaded`]
    /// names a centre whose open chains alone need all of its time.
    pub fn new(
        centres: Vec<Centre>,
        closed: Vec<ClosedChain>,
        open: Vec<OpenChain>,
    ) -> Result<Self, QueueingError> {
        check("number of centres", centres.len() as f64, 1.0..=MOST_PARTS)?;
        let chains = closed.len() + open.len();
        check("number of chains", chains as f64, 1.0..=MOST_PARTS)?;
        for chain in &closed {
            let name = format!("customers of {}", chain.name);
            check(&name, f64::from(chain.customers), 1.0..=MOST_CUSTOMERS)?;
            let cycle_s = check_route(&chain.name, &chain.route, centres.len())?;
            let name = format!("sum of service_s of {}", chain.name);
            check(&name, cycle_s, LEAST_CYCLE_S..=MOST_SERVICE_S * MOST_PARTS)?;
        }
        for chain in &open {
            let name = format!("arrivals_per_s of {}", chain.name);
            let rates = LEAST_ARRIVALS_PER_S..=MOST_ARRIVALS_PER_S;
            check(&name, chain.arrivals_per_s, rates)?;
            check_route(&chain.name, &chain.route, centres.len())?;
        }
        let network = Self {
            centres,
            closed,
            open,
        };
        for (centre, utilization) in network.centres.iter().zip(network.open_loads()) {
            if centre.discipline == Discipline::Fcfs && utilization >= 1.0 {
                return Err(QueueingError::Overloaded {
                    centre: centre.name.clone(),
                    utilization,
                });
            }
        }
        Ok(network)
    }

    /// The centres, in the order of their indices.
    #[must_use]
    pub fn centres(&self) -> &[Centre] {
        &self.centres
    }

    /// The closed chains.
    #[must_use]
    pub fn closed(&self) -> &[ClosedChain] {
        &self.closed
    }

    /// The open chains.
    #[must_use]
    pub fn open(&self) -> &[OpenChain] {
        &self.open
    }

    /// Service demand of a route at each centre, in seconds: the mean service time of a customer there from the
    /// route's begin to its end.
    pub(super) fn demands_s(&self, route: &[Stage]) -> Vec<f64> {
        let mut demands = vec![0.0; self.centres.len()];
        for stage in route {
            let share_s = stage.service_s / stage.centres.len() as f64;
            for centre in &stage.centres {
                if let Some(demand) = demands.get_mut(*centre) {
                    *demand += share_s;
                }
            }
        }
        demands
    }

    /// Load of the open chains at each centre: the mean number of their customers in service.
    pub(super) fn open_loads(&self) -> Vec<f64> {
        let mut loads = vec![0.0; self.centres.len()];
        for chain in &self.open {
            for (load, demand_s) in loads.iter_mut().zip(self.demands_s(&chain.route)) {
                *load += chain.arrivals_per_s * demand_s;
            }
        }
        loads
    }
}

/// Checks a route in a network of `centres` centres; returns its total mean service time in seconds.
fn check_route(chain: &str, route: &[Stage], centres: usize) -> Result<f64, QueueingError> {
    let stages = route.len() as f64;
    check(
        &format!("number of stages of {chain}"),
        stages,
        1.0..=MOST_PARTS,
    )?;
    let mut total_s = 0.0;
    for (number, stage) in (1..).zip(route) {
        let of = format!("stage {number} of {chain}");
        let choices = stage.centres.len() as f64;
        check(
            &format!("number of centres of {of}"),
            choices,
            1.0..=MOST_PARTS,
        )?;
        check(
            &format!("service_s of {of}"),
            stage.service_s,
            0.0..=MOST_SERVICE_S,
        )?;
        let last = centres.saturating_sub(1) as f64;
        for centre in &stage.centres {
            check(
                &format!("index of a centre of {of}"),
                *centre as f64,
                0.0..=last,
            )?;
        }
        total_s += stage.service_s;
    }
    Ok(total_s)
}
