//! Rows of results: one row for each case.

use super::SweepError;
use super::measure::MEASURES;
use super::plan::{Case, Plan};
use super::workload::Workload;
use crate::dodo::{ClientOutcome, SimulationError};
use crate::swept::Spread;
use serde::{Deserialize, Serialize};

/// Results of a case, over the seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Index of the dataset among the plan's.
    pub dataset: usize,
    /// The program, or the recorded clients.
    pub program: Workload,
    /// Values of the plan's swept keys, in their order.
    pub settings: Vec<String>,
    /// Values in the order of [`MEASURES`]; absent if no seed has one.
    pub values: Vec<Option<Spread>>,
    /// Values for each of the plan's seeds.
    pub by_seed: Vec<Vec<Option<f64>>>,
    /// Outcome of each recorded client, by seed; empty for a program.
    pub clients: Vec<Vec<ClientOutcome>>,
}

/// Results of one simulation that a row needs; the list of a program's runs is dropped.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunResults {
    /// Values in the order of [`MEASURES`].
    pub(super) values: Vec<Option<f64>>,
    /// Outcome of each recorded client; empty for a program.
    pub(super) clients: Vec<ClientOutcome>,
    /// Time that the program takes without remote memory, if it did not end once in the simulated time; in
    /// this case there are no values.
    pub(super) unended_run_ns: Option<u64>,
}

impl RunResults {
    /// Results of a simulation in which the program did not end.
    pub(super) fn unended(baseline_run_ns: u64) -> Self {
        Self {
            values: vec![None; MEASURES.len()],
            clients: Vec::new(),
            unended_run_ns: Some(baseline_run_ns),
        }
    }
}

/// Makes the rows of a plan from the results of all its runs, in their order.
///
/// # Errors
/// [`SweepError::Simulation`] if no program ended in any run.
pub(super) fn rows(plan: &Plan, results: &[RunResults]) -> Result<Vec<Row>, SweepError> {
    let mut values = results.iter().flat_map(|of_run| &of_run.values);
    let has_values = values.any(Option::is_some);
    let unended = |(run, of_run): (usize, &RunResults)| Some((run, of_run.unended_run_ns?));
    if !has_values
        && let Some((run, baseline_run_ns)) = results.iter().enumerate().find_map(unended)
    {
        let source = SimulationError::TooShort {
            length_ns: plan.length_ns,
            baseline_run_ns,
        };
        return Err(plan.failed(run, source));
    }
    let of_cases = results.chunks(plan.seeds.len().max(1));
    let rows = plan.cases.iter().zip(of_cases);
    Ok(rows.map(|(case, seeds)| Row::new(case, seeds)).collect())
}

impl Row {
    fn new(case: &Case, seeds: &[RunResults]) -> Self {
        let over_seeds =
            |at: usize| Spread::new(seeds.iter().filter_map(|seed| seed.values[at]).collect());
        Self {
            dataset: case.dataset,
            program: case.program,
            settings: case.settings.clone(),
            values: (0..MEASURES.len()).map(over_seeds).collect(),
            by_seed: seeds.iter().map(|seed| seed.values.clone()).collect(),
            clients: seeds.iter().map(|seed| seed.clients.clone()).collect(),
        }
    }
}
