//! Plan of a scenario file: every combination of its values, checked before any run.

use super::key::{self, SweptKey};
use super::{Recording, ScenarioFile, SweepError, Workload};
use crate::dodo::{Scenario, SimulationError, check};
use crate::event::{DAY, MS};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use toml::Table;

/// Maximum simulated time.
const MOST_DAYS: f64 = 36_600.0;

/// Settings for programs only: recorded clients have their own compute times, and run once.
const OF_PROGRAMS: [&str; 3] = ["think_ns", "pause_ns", "reference_runs"];

/// A combination of dataset, workload and settings. The plan runs it once with each seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Index of the dataset among the plan's.
    pub dataset: usize,
    /// The program, or the recorded clients.
    pub program: Workload,
    /// Values of the plan's swept keys, in their order.
    pub settings: Vec<String>,
    /// The scenario's settings without the seed.
    pub scenario: Scenario,
}

/// Cases and seeds to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Names of the datasets.
    pub datasets: Vec<String>,
    /// Recorded clients; empty if programs run. Results do not need them, so they are not stored.
    #[serde(skip)]
    pub clients: Vec<Recording>,
    /// The swept keys.
    pub keys: Vec<String>,
    /// Length of each run.
    pub length_ns: u64,
    /// Seeds for every case.
    pub seeds: Vec<u64>,
    /// Cases by dataset, program and values; the last key's values change first.
    pub cases: Vec<Case>,
}

impl Plan {
    /// Makes a case of every combination; the datasets have these names.
    ///
    /// # Errors
    /// [`SweepError`]: an unknown key, an invalid value, or nothing to run.
    pub fn new(file: &ScenarioFile, datasets: Vec<String>) -> Result<Self, SweepError> {
        let workloads = file.workloads()?;
        let tables = file.clients.as_deref();
        for (is_empty, what, wanted) in [
            (
                datasets.is_empty(),
                "dataset",
                "name one in [datasets], or by --dataset",
            ),
            (
                workloads.is_empty(),
                "program",
                "name one in `programs`, or leave it out for all",
            ),
            (
                tables.is_some_and(<[_]>::is_empty),
                "client",
                "write a table [[clients]], or leave it out for programs",
            ),
            (
                file.seeds.is_empty(),
                "seed",
                "name one in `seeds`, or leave it out for 1",
            ),
        ] {
            if is_empty {
                return Err(SweepError::Nothing { what, wanted });
            }
        }
        let length_ns = length_ns(file.days)?;
        let clients = tables.unwrap_or_default().iter();
        let clients = clients.map(|table| table.recording(length_ns));
        let clients = clients.collect::<Result<Vec<_>, _>>()?;
        if tables.is_some() {
            reject_program_settings(file)?;
        }
        let mut cases = Vec::new();
        let combinations = combinations(&file.scenario, &file.sweep)?;
        for dataset in 0..datasets.len() {
            for &program in &workloads {
                for (settings, scenario) in &combinations {
                    cases.push(Case {
                        dataset,
                        program,
                        settings: settings.clone(),
                        scenario: of_workload(program, length_ns, scenario),
                    });
                }
            }
        }
        Ok(Self {
            datasets,
            clients,
            keys: file.sweep.iter().map(|swept| swept.key.clone()).collect(),
            length_ns,
            seeds: file.seeds.clone(),
            cases,
        })
    }

    /// Number of simulations.
    #[must_use]
    pub const fn runs(&self) -> usize {
        self.cases.len() * self.seeds.len()
    }

    /// Runs of one of `parts_count` parts, numbered from 1, as positions among all [`Plan::runs`]. A run is a
    /// case with a seed; the seed changes first.
    ///
    /// Runs that follow each other differ in seed and values only, and cost about the same. Of each
    /// `parts_count` such runs every part gets one, and the order of the parts rotates from one group to the
    /// next: otherwise all runs with one value, which may be the slowest, could fall into the same part.
    #[must_use]
    pub fn runs_of_part(&self, number: usize, parts_count: usize) -> Vec<usize> {
        let is_of_part = |run: &usize| part_of(*run, parts_count) == number;
        (0..self.runs()).filter(is_of_part).collect()
    }

    /// Index of a run's case, and the run's seed.
    pub(super) fn case_and_seed(&self, run: usize) -> (usize, u64) {
        let seeds_count = self.seeds.len();
        (run / seeds_count, self.seeds[run % seeds_count])
    }

    /// Indices of the cases of these runs.
    pub(super) fn cases_of(&self, runs: &[usize]) -> BTreeSet<usize> {
        let cases = runs.iter().map(|run| self.case_and_seed(*run).0);
        cases.collect()
    }

    /// Describes a run in words: `lu on A, remote.placement = spread, seed 1`.
    pub(super) fn words_of_run(&self, run: usize) -> String {
        let (case, seed) = self.case_and_seed(run);
        format!("{}, seed {seed}", self.words(&self.cases[case]))
    }

    /// Error of a run that failed.
    pub(super) fn failed(&self, run: usize, source: SimulationError) -> SweepError {
        SweepError::Simulation {
            case: self.words_of_run(run),
            source,
        }
    }

    /// Describes a case in words: `lu on A, remote.placement = spread`.
    pub(super) fn words(&self, case: &Case) -> String {
        let name = self.datasets.get(case.dataset).map_or("", String::as_str);
        let set = self.keys.iter().zip(&case.settings);
        let set: String = set
            .map(|(key, value)| format!(", {key} = {value}"))
            .collect();
        format!("{} on {name}{set}", case.program)
    }
}

/// Number of the part, from 1, that a run belongs to.
pub(super) fn part_of(run: usize, parts_count: usize) -> usize {
    let parts_count = parts_count.max(1);
    (run % parts_count + run / parts_count) % parts_count + 1
}

fn of_workload(workload: Workload, length_ns: u64, scenario: &Scenario) -> Scenario {
    let application = match workload {
        Workload::Program(program) => program,
        Workload::Streams => scenario.application,
    };
    Scenario {
        application,
        length_ns,
        ..scenario.clone()
    }
}

/// Returns an error if a scenario of recorded clients has settings for programs, which would have no effect.
fn reject_program_settings(file: &ScenarioFile) -> Result<(), SweepError> {
    let swept = file.sweep.iter().map(|swept| &swept.key);
    let mut keys = file.scenario.keys().chain(swept);
    match keys.find(|key| OF_PROGRAMS.contains(&key.as_str())) {
        Some(key) => Err(SweepError::NotOfClients { key: key.clone() }),
        None => Ok(()),
    }
}

/// Converts days to ns, rounded up to whole milliseconds, since samples have times in ms.
fn length_ns(days: f64) -> Result<u64, SweepError> {
    if days > 0.0 && days <= MOST_DAYS {
        return Ok((days * DAY as f64 / MS as f64).ceil() as u64 * MS);
    }
    Err(SweepError::Value {
        key: "days".to_owned(),
        value: days.to_string(),
        reason: format!("more than 0, and at most {MOST_DAYS}"),
    })
}

/// Every combination of the swept values, each added to the settings of `base`.
fn combinations(
    base: &Table,
    sweep: &[SweptKey],
) -> Result<Vec<(Vec<String>, Scenario)>, SweepError> {
    for key in base.keys() {
        key::refuse_elsewhere(key)?;
    }
    let scenario = |settings: &Table| {
        key::scenario(settings).map_err(|e| SweepError::File {
            reason: format!("[scenario]: {}", e.message()),
        })
    };
    scenario(base)?;
    let mut all = vec![(Vec::new(), base.clone())];
    for swept in sweep {
        let mut longer = Vec::with_capacity(all.len() * swept.values.len());
        for (values, settings) in &all {
            for value in &swept.values {
                let mut settings = settings.clone();
                key::set(&mut settings, &swept.key, value)?;
                let values = values.iter().cloned().chain([key::shown(value)]);
                longer.push((values.collect(), settings));
            }
        }
        all = longer;
    }
    let checked = all.into_iter().map(|(values, settings)| {
        let scenario = scenario(&settings)?;
        check(&scenario)?;
        Ok::<_, SweepError>((values, scenario))
    });
    checked.collect()
}
