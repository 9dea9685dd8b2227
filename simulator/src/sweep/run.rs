//! Runs all cases of a plan.

use super::borrowers;
use super::row::{self, Row, RunResults};
use super::workload::Workload;
use super::{Case, Cluster, Plan, SweepError, measure};
use crate::dodo::{Borrower, Scenario, SimulationError, simulate, simulate_clients};
use crate::hosts::{Reading, Timeline, read};
use crate::parallel;
use crate::streams::ReplayedClient;
use gleaner_policy::quota::Mode;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Inputs shared by all runs.
struct Inputs {
    /// Timelines of hosts, for each dataset with one set of settings for reading it.
    hosts: Vec<Vec<Timeline>>,
    /// Recorded clients, for each dataset and size of region.
    clients: Vec<Vec<Borrower<ReplayedClient>>>,
    /// By a case's index, the indices of its hosts in `hosts` and of its clients in `clients`.
    places: BTreeMap<usize, (usize, usize)>,
}

/// Runs a plan on its datasets, which must be in the plan's order. Calls the progress function with the
/// number of finished simulations, up to [`Plan::runs`].
///
/// # Errors
/// [`SweepError`]: hosts or streams cannot be read, forecasts were not learnt ([`Plan::forecasts`]), or a
/// simulation fails. A case in which no run ended has no values; it is an error only if that holds for every
/// case.
pub fn run(
    plan: &Plan,
    clusters: &[Cluster],
    threads: NonZeroUsize,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Row>, SweepError> {
    let runs: Vec<usize> = (0..plan.runs()).collect();
    row::rows(plan, &results(plan, &runs, clusters, threads, progress)?)
}

/// Results of these runs of a plan, in their order.
///
/// # Errors
/// The errors of [`run`]; a program that did not end is none of them.
pub(super) fn results(
    plan: &Plan,
    runs: &[usize],
    clusters: &[Cluster],
    threads: NonZeroUsize,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<RunResults>, SweepError> {
    let inputs = inputs(plan, runs, clusters, threads)?;
    let done = AtomicUsize::new(0);
    progress(0);
    parallel::each(threads, runs, |&run| {
        let (at, seed) = plan.case_and_seed(run);
        let (hosts, clients) = inputs.places[&at];
        let clients = inputs.clients.get(clients).map_or(&[][..], Vec::as_slice);
        let outcome = one(&plan.cases[at], seed, &inputs.hosts[hosts], clients);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        match outcome {
            Ok(results) => Ok(results),
            // If no run ends in the simulated time, this is a result like others, not an error.
            Err(SimulationError::TooShort {
                baseline_run_ns, ..
            }) => Ok(RunResults::unended(baseline_run_ns)),
            Err(source) => Err(plan.failed(run, source)),
        }
    })
}

fn one(
    case: &Case,
    seed: u64,
    hosts: &[Timeline],
    clients: &[Borrower<ReplayedClient>],
) -> Result<RunResults, SimulationError> {
    let scenario = Scenario {
        seed,
        ..case.scenario.clone()
    };
    Ok(match case.program {
        Workload::Program(_) => RunResults {
            values: measure::of(&simulate(&scenario, hosts)?),
            clients: Vec::new(),
            unended_run_ns: None,
        },
        Workload::Streams => {
            let outcome = simulate_clients(&scenario, clients, hosts)?;
            RunResults {
                values: measure::of_clients(&outcome),
                clients: outcome.clients,
                unended_run_ns: None,
            }
        }
    })
}

/// Reads the hosts and streams that the runs need, each once, and checks the hosts that clients are mapped
/// to.
fn inputs(
    plan: &Plan,
    runs: &[usize],
    clusters: &[Cluster],
    threads: NonZeroUsize,
) -> Result<Inputs, SweepError> {
    let ids = borrowers::host_ids(&plan.clients, clusters)?;
    let (mut readings, mut sizes, mut places) = (Vec::new(), Vec::new(), BTreeMap::new());
    for at in plan.cases_of(runs) {
        let case = &plan.cases[at];
        let reading = reading(&case.scenario, &clusters[case.dataset])?;
        let size = place(&mut sizes, case.scenario.remote.region_bytes);
        let hosts = place(&mut readings, (case.dataset, reading));
        places.insert(at, (hosts, size));
    }
    let hosts: Vec<Vec<Timeline>> = parallel::each(threads, &readings, |(dataset, reading)| {
        let cluster = &clusters[*dataset];
        read(&cluster.dataset, reading).map_err(|source| SweepError::Hosts {
            name: cluster.name.clone(),
            source,
        })
    })?;
    for ((dataset, _), hosts) in readings.iter().zip(&hosts) {
        borrowers::reject_host_without_samples(&ids[*dataset], &clusters[*dataset], hosts)?;
    }
    let clients = borrowers::read(&plan.clients, &sizes, threads)?;
    let on_each = |ids| {
        clients
            .iter()
            .map(move |of_size| borrowers::on(ids, of_size))
    };
    let clients = ids.iter().flat_map(on_each).collect();
    for (at, (_, size)) in &mut places {
        *size += plan.cases[*at].dataset * sizes.len();
    }
    Ok(Inputs {
        hosts,
        clients,
        places,
    })
}

/// Index of `value` in `known`; a new value is appended first.
fn place<T: PartialEq>(known: &mut Vec<T>, value: T) -> usize {
    let place = known.iter().position(|k| *k == value);
    place.unwrap_or_else(|| {
        known.push(value);
        known.len() - 1
    })
}

/// Settings for reading hosts for a scenario. Timelines contain every mode, so the mode makes no difference.
fn reading(scenario: &Scenario, cluster: &Cluster) -> Result<Reading, SweepError> {
    let (from_ms, until_ms) = (cluster.from_ms, cluster.until_ms);
    let mut reading = scenario.recruitment.reading(from_ms, until_ms);
    reading.limits.mode = Mode::Paper;
    reading.foresight = cluster.foresight(&scenario.recruitment)?;
    Ok(reading)
}
