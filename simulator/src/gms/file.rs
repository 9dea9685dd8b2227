//! A scenario of global memory as TOML: `system = "gms"`, settings, datasets with recorded hosts, and values to try.

use super::recorded::Recorded;
use super::scenario::Scenario;
use crate::event::{DAY, MS};
use crate::hosts::begin;
use crate::swept::ScenarioError;
use crate::swept::file::{at_line, check_runs, is_of_system, leaves, one_seed, set, shown, with};
use gleaner_policy::global::settings::MemoryPolicy;
use serde::Deserialize;
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use toml::{Table, Value};

/// Longest recorded time, in days.
const MOST_DAYS: f64 = 100.0;
/// Key of the dataset among the swept settings.
const DATASET: &str = "dataset";
/// Settings of the policy `hash` alone.
const OF_HASH: [&str; 2] = ["homes", "is_exclusive"];
/// Value of such a setting in rows of other policies.
const NO_VALUE: &str = "–";

/// System that a scenario file simulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum System {
    Gms,
}

/// A scenario file. Settings that are left out have the paper's values.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    #[serde(rename = "system")]
    _system: System,
    /// Purpose of the scenario, in one line.
    #[serde(default)]
    pub about: String,
    /// Seeds to run; rows have the median over the seeds, and the range.
    #[serde(default = "one_seed")]
    pub seeds: Vec<u64>,
    /// Folders of datasets by name. Their hosts are the nodes with idle memory, and each dataset is simulated by
    /// itself. Without datasets, nodes have `idle_frames`.
    #[serde(default)]
    pub datasets: BTreeMap<String, PathBuf>,
    /// Begin of the recorded time: a date (UTC), RFC 3339, or ms since 1970-01-01 UTC; absent: the first day of each
    /// dataset.
    #[serde(default, deserialize_with = "begin")]
    pub from: Option<String>,
    /// Length of the recorded time in days, in which the clients must end.
    #[serde(default = "half_a_day")]
    pub days: f64,
    /// Nodes with idle memory per client: `clients` follows from `idle_nodes`, and is at least 1. Absent: `clients`
    /// is as set.
    pub nodes_per_client: Option<u32>,
    /// Settings of the cluster.
    #[serde(default)]
    pub scenario: Scenario,
    /// Values to try, by setting: `boost_quarters = [4, 5, 8]`. With several settings, every combination is tried.
    #[serde(default)]
    sweep: Table,
}

/// A combination of the swept values.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Values in the order of [`ScenarioFile::keys`], as text.
    pub values: Vec<String>,
    /// Name of the dataset whose hosts are the nodes with idle memory.
    pub dataset: Option<String>,
    /// Settings with these values, still without recorded hosts.
    pub scenario: Scenario,
}

impl ScenarioFile {
    /// Returns true if the text is a scenario of global memory, valid or not.
    #[must_use]
    pub fn is_of_gms(text: &str) -> bool {
        is_of_system(text, "gms")
    }

    /// Reads a scenario file, and checks its settings and every combination of its swept values.
    ///
    /// # Errors
    /// [`ScenarioError::File`] and [`ScenarioError::Line`] name the line; [`ScenarioError::Swept`] names the swept
    /// setting.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let file: Self = toml::from_str(text).map_err(|e| ScenarioError::File {
            reason: e.to_string(),
        })?;
        let checked = file.scenario.check().and_then(|()| file.check_recorded());
        checked.map_err(|error| at_line(text, error))?;
        file.cases()?;
        Ok(file)
    }

    /// Checks datasets, days and the settings of recorded hosts.
    ///
    /// # Errors
    /// [`ScenarioError::Setting`] names the setting.
    pub fn check_recorded(&self) -> Result<(), ScenarioError> {
        let wrong = |key, value: String, reason: &str| ScenarioError::Setting {
            key,
            value,
            reason: reason.to_owned(),
        };
        if !(f64::MIN_POSITIVE..=MOST_DAYS).contains(&self.days) {
            let reason = format!("must be more than 0, and at most {MOST_DAYS}");
            return Err(wrong("days", self.days.to_string(), &reason));
        }
        if self.nodes_per_client == Some(0) {
            return Err(wrong(
                "nodes_per_client",
                "0".to_owned(),
                "must be at least 1",
            ));
        }
        if !self.datasets.is_empty() {
            return self.scenario.check_no_other_owners();
        }
        let swept = leaves(&self.sweep);
        let is_swept = swept.iter().any(|(key, _)| key.starts_with("recorded."));
        if is_swept || self.scenario.recorded != Recorded::default() {
            let reason =
                "is for hosts of a dataset: write a table [datasets] with a line NAME = \"FOLDER\"";
            return Err(wrong("recorded", "…".to_owned(), reason));
        }
        Ok(())
    }

    /// Length of the recorded time, in whole milliseconds.
    #[must_use]
    pub fn length_ns(&self) -> u64 {
        (self.days * DAY as f64 / MS as f64).ceil() as u64 * MS
    }

    /// Replaces the values to try of a setting, or adds them.
    ///
    /// # Errors
    /// [`ScenarioError::Swept`]: the path leads through a setting.
    pub fn set_sweep(&mut self, key: &str, values: Vec<Value>) -> Result<(), ScenarioError> {
        set(&mut self.sweep, key, Value::Array(values)).map_err(|reason| ScenarioError::Swept {
            key: key.to_owned(),
            reason,
        })
    }

    /// Swept settings, as dotted paths; before them `dataset`, if there are datasets.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        let dataset = (!self.datasets.is_empty()).then(|| DATASET.to_owned());
        let swept = leaves(&self.sweep).into_iter().map(|(key, _)| key);
        dataset.into_iter().chain(swept).collect()
    }

    /// Every combination of the swept values, the last setting varying fastest. Settings of the policy `hash` alone are
    /// not varied under other policies.
    ///
    /// # Errors
    /// [`ScenarioError::Swept`] names the setting with an invalid value; [`ScenarioError::Setting`]: a combination is
    /// invalid, or there are too many runs.
    pub fn cases(&self) -> Result<Vec<Case>, ScenarioError> {
        let alone = Case {
            values: Vec::new(),
            dataset: None,
            scenario: self.scenario.clone(),
        };
        let mut cases: Vec<Case> = match self.datasets.is_empty() {
            true => vec![alone],
            false => self.datasets.keys().map(|name| alone.on(name)).collect(),
        };
        for (key, values) in leaves(&self.sweep) {
            let wrong = |reason: &str| ScenarioError::Swept {
                key: key.clone(),
                reason: reason.to_owned(),
            };
            let values = values.as_array().filter(|values| !values.is_empty());
            let values = values.ok_or_else(|| wrong("write a list of values"))?;
            check_runs(cases.len().saturating_mul(values.len()), self.seeds.len())?;
            let mut longer = Vec::with_capacity(cases.len() * values.len());
            for case in &cases {
                for value in values {
                    longer.push(case.with(&key, value)?);
                }
            }
            cases = longer;
        }
        check_runs(cases.len(), self.seeds.len())?;
        for case in &mut cases {
            self.set_clients(&mut case.scenario);
            case.scenario.check()?;
            if case.dataset.is_some() {
                case.scenario.check_no_other_owners()?;
            }
        }
        self.leave_out_repeated(&mut cases);
        Ok(cases)
    }

    /// Sets the number of clients, if it follows from the number of nodes.
    pub(super) fn set_clients(&self, scenario: &mut Scenario) {
        if let Some(nodes) = self.nodes_per_client {
            scenario.clients = (scenario.idle_nodes / nodes.max(1)).max(1);
        }
    }

    /// Leaves out cases that differ only in settings of the policy `hash`, if another policy decides.
    fn leave_out_repeated(&self, cases: &mut Vec<Case>) {
        let keys = self.keys();
        let mut seen: HashSet<Vec<String>> = HashSet::new();
        cases.retain_mut(|case| {
            if case.scenario.policy != MemoryPolicy::Hash {
                let of_hash = keys.iter().map(|key| OF_HASH.contains(&key.as_str()));
                for (value, is_of_hash) in case.values.iter_mut().zip(of_hash) {
                    if is_of_hash {
                        NO_VALUE.clone_into(value);
                    }
                }
            }
            seen.insert(case.values.clone())
        });
    }
}

impl Case {
    /// The same case on a dataset.
    fn on(&self, dataset: &str) -> Self {
        Self {
            values: vec![dataset.to_owned()],
            dataset: Some(dataset.to_owned()),
            scenario: self.scenario.clone(),
        }
    }

    /// The same case with a setting's value.
    fn with(&self, key: &str, value: &Value) -> Result<Self, ScenarioError> {
        let swept = |reason| ScenarioError::Swept {
            key: key.to_owned(),
            reason,
        };
        let scenario = with(&self.scenario, key, value).map_err(swept)?;
        let values = self.values.iter().cloned().chain([shown(value)]).collect();
        Ok(Self {
            values,
            dataset: self.dataset.clone(),
            scenario,
        })
    }
}

const fn half_a_day() -> f64 {
    0.5
}
