//! Runs all cases of a scenario file on several threads. The number of threads does not change the rows.

use super::error::ServersError;
use super::file::{Case, ScenarioFile};
use super::measures::{MEASURES, Measure};
use super::model::Model;
use super::outcome::Outcome;
use super::scenario::Scenario;
use crate::parallel;
use crate::swept::{Spread, SweptRow};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Simulates clients and servers. The same scenario and seed give the same outcome.
///
/// # Errors
/// [`ServersError::Scenario`] names a setting outside its range; [`ServersError::Law`] is a defect of the
/// simulation.
pub fn simulate(scenario: &Scenario, seed: u64) -> Result<Outcome, ServersError> {
    scenario.check()?;
    Model::new(scenario, seed).run()
}

/// Number of simulations of a scenario file, for progress: one for each case and seed.
///
/// # Errors
/// Those of [`ScenarioFile::cases`].
pub fn runs(file: &ScenarioFile) -> Result<usize, ServersError> {
    Ok(file.cases()?.len() * file.seeds.len())
}

/// Simulates every case with every seed. Calls the progress function with the number of finished runs.
///
/// # Errors
/// Those of [`simulate`] and [`ScenarioFile::cases`].
pub fn rows(
    file: &ScenarioFile,
    threads: NonZeroUsize,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<SweptRow>, ServersError> {
    let cases = file.cases()?;
    let with_seeds = |case| file.seeds.iter().map(move |seed| (case, *seed));
    let runs: Vec<(&Case, u64)> = cases.iter().flat_map(with_seeds).collect();
    let done = AtomicUsize::new(0);
    progress(0);
    let figures = parallel::each(threads, &runs, |(case, seed)| {
        let outcome = simulate(&case.scenario, *seed)?;
        progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        let value = |measure: &Measure| (measure.value)(&outcome);
        Ok::<Vec<Option<f64>>, ServersError>(MEASURES.iter().map(value).collect())
    })?;
    let of_cases = cases.iter().zip(figures.chunks(file.seeds.len().max(1)));
    let row = |(case, of_seeds): (&Case, &[Vec<Option<f64>>])| {
        let value = |at: usize| {
            let values = of_seeds
                .iter()
                .map(|figures| figures.get(at).copied().flatten());
            values.collect::<Option<Vec<f64>>>().and_then(Spread::new)
        };
        SweptRow {
            settings: case.values.clone(),
            values: (0..MEASURES.len()).map(value).collect(),
        }
    };
    Ok(of_cases.map(row).collect())
}
