//! Rows: the results of a case.

use super::measure::MEASURES;
use super::plan::Case;
use super::workload::Workload;
use crate::dodo::ClientOutcome;
use serde::Serialize;

/// A measure over the seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Median; for an even number the mean of the two in the middle.
    pub median: f64,
    /// Least of the values.
    pub low: f64,
    /// Greatest of the values.
    pub high: f64,
}

impl Spread {
    /// Spread of the present values; absent without any.
    fn of(values: impl Iterator<Item = Option<f64>>) -> Option<Self> {
        let mut values: Vec<f64> = values.flatten().collect();
        values.sort_unstable_by(f64::total_cmp);
        let middle = values.get(values.len() / 2)?;
        let below = values.get((values.len() - 1) / 2)?;
        Some(Self {
            median: below.midpoint(*middle),
            low: *values.first()?,
            high: *values.last()?,
        })
    }
}

/// A case, over the seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The dataset, by its place among the plan's.
    pub dataset: usize,
    /// The program, or the recorded clients.
    pub program: Workload,
    /// Values of the plan's swept keys, in their order.
    pub settings: Vec<String>,
    /// Values in the order of [`MEASURES`]; absent if no seed has one.
    pub values: Vec<Option<Spread>>,
    /// Outcome of each of the plan's seeds.
    pub by_seed: Vec<Vec<Option<f64>>>,
    /// Outcome of each recorded client, by seed; of a program none.
    pub clients: Vec<Vec<ClientOutcome>>,
}

/// Results of one run that are kept: weeks of a program's runs are not.
pub(super) struct RunResults {
    pub(super) values: Vec<Option<f64>>,
    pub(super) clients: Vec<ClientOutcome>,
}

impl Row {
    pub(super) fn new(case: &Case, seeds: &[RunResults]) -> Self {
        let over_seeds = |at: usize| Spread::of(seeds.iter().map(|seed| seed.values[at]));
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
