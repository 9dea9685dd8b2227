//! Runs all cases of a scenario file on several threads. The number of threads does not change the rows.

use super::PAGE_BYTES;
use super::error::ServersError;
use super::file::{Case, ScenarioFile};
use super::measures::{MEASURES, Measure};
use super::model::Model;
use super::outcome::Outcome;
use super::scenario::Scenario;
use crate::hosts::{RecordedDataset, read_each};
use crate::parallel;
use crate::swept::{Spread, SweptRow};
use gleaner_schemas::curve::Curve;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Inputs that a scenario file names, opened.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Datasets of the file, in any order.
    pub datasets: Vec<RecordedDataset>,
    /// Curves of the file by name.
    pub curves: BTreeMap<String, Curve>,
}

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
/// Errors of [`ScenarioFile::cases`].
pub fn runs(file: &ScenarioFile) -> Result<usize, ServersError> {
    Ok(file.cases()?.len() * file.seeds.len())
}

/// Simulates every case with every seed, on the datasets and curves that the file names. Calls the progress function
/// with the number of finished runs.
///
/// # Errors
/// Errors of [`simulate`], [`ScenarioFile::check_inputs`] and [`ScenarioFile::cases`]; [`ServersError::NoDataset`],
/// [`ServersError::Hosts`], [`ServersError::NoCurve`] and [`ServersError::CurvePages`].
pub fn rows(
    file: &ScenarioFile,
    inputs: &Inputs,
    threads: NonZeroUsize,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<SweptRow>, ServersError> {
    file.check_inputs()?;
    let mut cases = file.cases()?;
    add_inputs(&mut cases, inputs, threads)?;
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

/// Makes curves the programs of the cases' clients, and hosts their servers; checks the resulting settings.
fn add_inputs(
    cases: &mut [Case],
    inputs: &Inputs,
    threads: NonZeroUsize,
) -> Result<(), ServersError> {
    for case in cases.iter_mut() {
        let Some(name) = &case.curve else {
            continue;
        };
        let curve = inputs.curves.get(name);
        let curve = curve.ok_or_else(|| ServersError::NoCurve { name: name.clone() })?;
        if curve.page_bytes != PAGE_BYTES {
            return Err(ServersError::CurvePages {
                name: name.clone(),
                page_bytes: curve.page_bytes,
            });
        }
        let local_share = case.scenario.local_share;
        case.scenario = case.scenario.clone().with_curve(curve, local_share);
    }
    let mut places = Vec::with_capacity(cases.len());
    let mut wanted = Vec::with_capacity(cases.len());
    for (at, case) in cases.iter().enumerate() {
        let Some(name) = &case.dataset else {
            continue;
        };
        let mut datasets = inputs.datasets.iter();
        let dataset = datasets.find(|dataset| dataset.name == *name);
        let dataset = dataset.ok_or_else(|| ServersError::NoDataset { name: name.clone() })?;
        let rules = &case.scenario.recorded;
        let reading = dataset.reading(
            rules.idle_after_s,
            rules.headroom_share,
            rules.is_always_idle,
        );
        places.push(at);
        wanted.push((dataset, reading));
    }
    let hosts = read_each(&wanted, threads)
        .map_err(|(name, source)| ServersError::Hosts { name, source })?;
    for (at, hosts) in places.into_iter().zip(hosts) {
        if let Some(case) = cases.get_mut(at) {
            case.scenario = case.scenario.clone().on_hosts(&hosts);
        }
    }
    for case in cases {
        case.scenario.check()?;
    }
    Ok(())
}
