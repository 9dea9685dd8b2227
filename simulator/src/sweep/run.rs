//! All runs of a plan.

use super::row::Row;
use super::{Cluster, MEASURES, Plan, SweepError, measure, parallel};
use crate::dodo::{Scenario, SimulationError, simulate};
use crate::hosts::{Reading, Timeline, read};
use gleaner_policy::quota::Mode;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs a plan on its datasets, which stand in the plan's order, and tells how many of [`Plan::runs`] are done.
///
/// # Errors
/// [`SweepError`]: hosts that cannot be read, forecasts that were not learnt ([`Plan::forecasts`]), or a simulation that fails; where not one run ended, only if that is so in every case.
/// Otherwise such a case has no values.
pub fn run(
    plan: &Plan,
    clusters: &[Cluster],
    threads: NonZeroUsize,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Row>, SweepError> {
    let mut readings: Vec<(usize, Reading)> = Vec::new();
    let mut places = Vec::with_capacity(plan.cases.len());
    for case in &plan.cases {
        let wanted = (
            case.dataset,
            reading(&case.scenario, &clusters[case.dataset])?,
        );
        let place = readings.iter().position(|known| *known == wanted);
        places.push(place.unwrap_or(readings.len()));
        if place.is_none() {
            readings.push(wanted);
        }
    }
    let hosts: Vec<Vec<Timeline>> = parallel::each(threads, &readings, |(dataset, reading)| {
        let cluster = &clusters[*dataset];
        read(&cluster.dataset, reading).map_err(|source| SweepError::Hosts {
            name: cluster.name.clone(),
            source,
        })
    })?;
    let with_seeds = |at| plan.seeds.iter().map(move |seed| (at, *seed));
    let runs: Vec<(usize, u64)> = (0..plan.cases.len()).flat_map(with_seeds).collect();
    let done = AtomicUsize::new(0);
    progress(0);
    let outcomes = parallel::each(threads, &runs, |&(at, seed)| {
        let case = &plan.cases[at];
        let scenario = Scenario {
            seed,
            ..case.scenario.clone()
        };
        let failed = |source| SweepError::Simulation {
            case: format!("{}, seed {seed}", plan.words(case)),
            source,
        };
        let outcome = simulate(&scenario, &hosts[places[at]]);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        match outcome {
            // Weeks of runs are not kept.
            Ok(outcome) => Ok(Ok(measure::of(&outcome))),
            // That a setting is too slow for the time says something beside others.
            Err(source @ SimulationError::TooShort { .. }) => Ok(Err(failed(source))),
            Err(source) => Err(failed(source)),
        }
    })?;
    let (mut of_seeds, mut too_short) = (Vec::with_capacity(outcomes.len()), None);
    for outcome in outcomes {
        of_seeds.push(outcome.unwrap_or_else(|error| {
            too_short.get_or_insert(error);
            vec![None; MEASURES.len()]
        }));
    }
    if let Some(error) = too_short
        && of_seeds.iter().flatten().all(Option::is_none)
    {
        return Err(error);
    }
    let of_cases = of_seeds.chunks(plan.seeds.len());
    let rows = plan.cases.iter().zip(of_cases);
    Ok(rows.map(|(case, seeds)| Row::new(case, seeds)).collect())
}

/// How hosts are read for a scenario. Timelines hold every mode, which makes no difference here.
fn reading(scenario: &Scenario, cluster: &Cluster) -> Result<Reading, SweepError> {
    let (from_ms, until_ms) = (cluster.from_ms, cluster.until_ms);
    let mut reading = scenario.recruitment.reading(from_ms, until_ms);
    reading.limits.mode = Mode::Paper;
    reading.foresight = cluster.foresight(&scenario.recruitment)?;
    Ok(reading)
}
