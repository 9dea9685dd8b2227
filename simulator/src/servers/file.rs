//! A scenario of servers as TOML: `system = "servers"`, settings, and values to try.

use super::measures::MEASURES;
use super::scenario::Scenario;
use crate::hosts::begin;
use crate::swept::ScenarioError;
use crate::swept::file::{at_line, check_runs, is_of_system, leaves, one_seed, set, shown, with};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::{Table, Value};

/// Key of the dataset among the swept settings.
const DATASET: &str = "dataset";
/// Key of the curve among the swept settings.
const CURVE: &str = "curve";
/// Settings that a dataset's hosts replace.
const OF_HOSTS: [&str; 2] = ["servers", "owners"];
/// Settings that a curve replaces.
const OF_CURVE: [&str; 3] = ["page_ins_per_s", "page_outs_per_s", "client_pages"];

/// System that a scenario file simulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum System {
    Servers,
}

/// A scenario file. Settings that are left out have their default values.
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
    /// Folders of datasets by name. Their hosts are the servers, and each dataset is simulated by itself. Without
    /// datasets, the scenario has `servers` and `owners`.
    #[serde(default)]
    pub datasets: BTreeMap<String, PathBuf>,
    /// Begin of the recorded time: a date (UTC), RFC 3339, or ms since 1970-01-01 UTC; absent: the first day of each
    /// dataset.
    #[serde(default, deserialize_with = "begin")]
    pub from: Option<String>,
    /// Files of `gleaner curve record` by name. Each is simulated by itself: its program gives the clients' page-ins,
    /// page-outs and pages.
    #[serde(default)]
    pub curves: BTreeMap<String, PathBuf>,
    /// Settings of clients and servers.
    #[serde(default)]
    pub scenario: Scenario,
    /// Keys of the measures that the table shows; all of them if absent. JSON and CSV have all.
    #[serde(default)]
    pub columns: Vec<String>,
    /// Values to try, by setting: `shutdown = ["migrate", "at-once"]`. With several settings, every
    /// combination is tried.
    #[serde(default)]
    sweep: Table,
}

/// A combination of the swept values.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Values in the order of [`ScenarioFile::keys`], as text.
    pub values: Vec<String>,
    /// Name of the dataset whose hosts are the servers.
    pub dataset: Option<String>,
    /// Name of the curve of the clients' program.
    pub curve: Option<String>,
    /// Settings with these values, still without hosts and curve.
    pub scenario: Scenario,
}

impl ScenarioFile {
    /// Returns true if the text is a scenario of servers, valid or not.
    #[must_use]
    pub fn is_of_servers(text: &str) -> bool {
        is_of_system(text, "servers")
    }

    /// Reads a scenario file, and checks its settings and every combination of its swept values.
    ///
    /// # Errors [`ScenarioError::File`] and [`ScenarioError::Line`] name the line; [`ScenarioError::Swept`]
    /// names the swept setting.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let file: Self = toml::from_str(text).map_err(|e| ScenarioError::File {
            reason: e.to_string(),
        })?;
        let checked = file.scenario.check().and_then(|()| file.check_inputs());
        checked.map_err(|error| at_line(text, error))?;
        for key in &file.columns {
            if !MEASURES.iter().any(|measure| measure.key == key) {
                return Err(ScenarioError::Setting {
                    key: "columns",
                    value: key.clone(),
                    reason: "is no measure; docs/servers.md lists them".to_owned(),
                });
            }
        }
        file.cases()?;
        Ok(file)
    }

    /// Checks that settings of datasets and curves, and settings that these replace, are not mixed.
    ///
    /// # Errors
    /// [`ScenarioError::Setting`] names the setting.
    pub fn check_inputs(&self) -> Result<(), ScenarioError> {
        let swept = leaves(&self.sweep);
        let is_swept = |key: &str| swept.iter().any(|(swept, _)| swept.starts_with(key));
        let wrong = |key, reason: &str| {
            Err(ScenarioError::Setting {
                key,
                value: "…".to_owned(),
                reason: reason.to_owned(),
            })
        };
        let own = Scenario::default();
        let is_of_datasets = is_swept("recorded.") || self.scenario.recorded != own.recorded;
        if self.datasets.is_empty() && (is_of_datasets || self.from.is_some()) {
            let key = if is_of_datasets { "recorded" } else { "from" };
            let reason =
                "is for hosts of a dataset: write a table [datasets] with a line NAME = \"FOLDER\"";
            return wrong(key, reason);
        }
        if !self.datasets.is_empty() {
            if !self.scenario.owners.is_empty() {
                return wrong("owners", "come from the datasets: leave the setting out");
            }
            for key in OF_HOSTS {
                if is_swept(key) {
                    return wrong(key, "come from the datasets: leave the setting out");
                }
            }
        }
        let is_of_curves = is_swept("local_share") || self.scenario.local_share != own.local_share;
        if self.curves.is_empty() && is_of_curves {
            let reason = "is for curves: write a table [curves] with a line NAME = \"FILE\"";
            return wrong("local_share", reason);
        }
        for key in OF_CURVE {
            if !self.curves.is_empty() && is_swept(key) {
                return wrong(key, "comes from the curves: leave the setting out");
            }
        }
        Ok(())
    }

    /// Longest simulated time of all cases, in ms: the time that datasets must have.
    ///
    /// # Errors
    /// Those of [`Self::cases`].
    pub fn longest_ms(&self) -> Result<u32, ScenarioError> {
        let cases = self.cases()?;
        let lengths_ms = cases.iter().map(|case| case.scenario.length_ms);
        Ok(lengths_ms.max().unwrap_or(self.scenario.length_ms))
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

    /// Swept settings, as dotted paths; before them `dataset` and `curve`, if there are any.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        let dataset = (!self.datasets.is_empty()).then(|| DATASET.to_owned());
        let curve = (!self.curves.is_empty()).then(|| CURVE.to_owned());
        let swept = leaves(&self.sweep).into_iter().map(|(key, _)| key);
        dataset.into_iter().chain(curve).chain(swept).collect()
    }

    /// Every combination of the swept values, the last setting varying fastest.
    ///
    /// # Errors [`ScenarioError::Swept`] names the setting with an invalid value; [`ScenarioError::Setting`]: a
    /// combination is invalid, or there are too many runs.
    pub fn cases(&self) -> Result<Vec<Case>, ScenarioError> {
        let mut cases = self.cases_of_inputs();
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
        for case in &cases {
            case.scenario.check()?;
        }
        Ok(cases)
    }
}

impl ScenarioFile {
    /// Every combination of dataset and curve, with the file's settings.
    fn cases_of_inputs(&self) -> Vec<Case> {
        let names = |places: &BTreeMap<String, PathBuf>| -> Vec<Option<String>> {
            match places.is_empty() {
                true => vec![None],
                false => places.keys().cloned().map(Some).collect(),
            }
        };
        let mut cases = Vec::new();
        for dataset in names(&self.datasets) {
            for curve in names(&self.curves) {
                cases.push(Case {
                    values: dataset.iter().chain(&curve).cloned().collect(),
                    dataset: dataset.clone(),
                    curve,
                    scenario: self.scenario.clone(),
                });
            }
        }
        cases
    }
}

impl Case {
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
            curve: self.curve.clone(),
            scenario,
        })
    }
}
