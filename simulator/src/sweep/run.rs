//! Runs all cases of a plan.

use super::borrowers;
use super::row::{Row, RunResults};
use super::workload::Workload;
use super::{Case, Cluster, MEASURES, Plan, SweepError, measure, parallel};
use crate::dodo::{Borrower, Scenario, SimulationError, simulate, simulate_clients};
use crate::hosts::{Reading, Timeline, read};
use crate::streams::ReplayedClient;
use gleaner_policy::quota::Mode;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Inputs shared by all runs.
struct Inputs {
    /// Timelines of hosts, for each dataset with one set of settings for reading it.
    hosts: Vec<Vec<Timeline>>,
    /// Recorded clients, for each dataset and size of region.
    clients: Vec<Vec<Borrower<ReplayedClient>>>,
    /// For each case, the indices of its hosts in `hosts` and of its clients in `clients`.
    places: Vec<(usize, usize)>,
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
    let inputs = inputs(plan, clusters, threads)?;
    let with_seeds = |at| plan.seeds.iter().map(move |seed| (at, *seed));
    let runs: Vec<(usize, u64)> = (0..plan.cases.len()).flat_map(with_seeds).collect();
    let done = AtomicUsize::new(0);
    progress(0);
    let outcomes = parallel::each(threads, &runs, |&(at, seed)| {
        let case = &plan.cases[at];
        let failed = |source| SweepError::Simulation {
            case: format!("{}, seed {seed}", plan.words(case)),
            source,
        };
        let (hosts, clients) = inputs.places[at];
        let clients = inputs.clients.get(clients).map_or(&[][..], Vec::as_slice);
        let outcome = one(case, seed, &inputs.hosts[hosts], clients);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        match outcome {
            Ok(told) => Ok(Ok(told)),
            // If no run ends in the simulated time, this is a result like others, not an error.
            Err(source @ SimulationError::TooShort { .. }) => Ok(Err(failed(source))),
            Err(source) => Err(failed(source)),
        }
    })?;
    let (mut of_seeds, mut too_short) = (Vec::with_capacity(outcomes.len()), None);
    for outcome in outcomes {
        of_seeds.push(outcome.unwrap_or_else(|error| {
            too_short.get_or_insert(error);
            RunResults {
                values: vec![None; MEASURES.len()],
                clients: Vec::new(),
            }
        }));
    }
    let mut values = of_seeds.iter().flat_map(|told| &told.values);
    if let Some(error) = too_short
        && values.all(Option::is_none)
    {
        return Err(error);
    }
    let of_cases = of_seeds.chunks(plan.seeds.len());
    let rows = plan.cases.iter().zip(of_cases);
    Ok(rows.map(|(case, seeds)| Row::new(case, seeds)).collect())
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
        },
        Workload::Streams => {
            let outcome = simulate_clients(&scenario, clients, hosts)?;
            RunResults {
                values: measure::of_clients(&outcome),
                clients: outcome.clients,
            }
        }
    })
}

/// Reads the hosts and streams that the cases need, each once, and checks the hosts that clients are mapped
/// to.
fn inputs(plan: &Plan, clusters: &[Cluster], threads: NonZeroUsize) -> Result<Inputs, SweepError> {
    let ids = borrowers::host_ids(&plan.clients, clusters)?;
    let (mut readings, mut sizes, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for case in &plan.cases {
        let reading = reading(&case.scenario, &clusters[case.dataset])?;
        let size = place(&mut sizes, case.scenario.remote.region_bytes);
        places.push((place(&mut readings, (case.dataset, reading)), size));
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
    for (case, (_, size)) in plan.cases.iter().zip(&mut places) {
        *size += case.dataset * sizes.len();
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
