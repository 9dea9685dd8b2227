//! A scenario of servers as TOML: `system = "servers"`, settings, and values to try.

use super::measures::MEASURES;
use super::scenario::Scenario;
use crate::swept::ScenarioError;
use crate::swept::file::{at_line, check_runs, is_of_system, leaves, one_seed, set, shown, with};
use serde::Deserialize;
use toml::{Table, Value};

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
    /// Values in the order of the swept settings, as text.
    pub values: Vec<String>,
    /// Settings with these values.
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
        file.scenario
            .check()
            .map_err(|error| at_line(text, error))?;
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

    /// Swept settings, as dotted paths.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        leaves(&self.sweep)
            .into_iter()
            .map(|(key, _)| key)
            .collect()
    }

    /// Every combination of the swept values, the last setting varying fastest.
    ///
    /// # Errors [`ScenarioError::Swept`] names the setting with an invalid value; [`ScenarioError::Setting`]: a
    /// combination is invalid, or there are too many runs.
    pub fn cases(&self) -> Result<Vec<Case>, ScenarioError> {
        let mut cases = vec![Case {
            values: Vec::new(),
            scenario: self.scenario.clone(),
        }];
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

impl Case {
    /// The same case with a setting's value.
    fn with(&self, key: &str, value: &Value) -> Result<Self, ScenarioError> {
        let swept = |reason| ScenarioError::Swept {
            key: key.to_owned(),
            reason,
        };
        let scenario = with(&self.scenario, key, value).map_err(swept)?;
        let values = self.values.iter().cloned().chain([shown(value)]).collect();
        Ok(Self { values, scenario })
    }
}
