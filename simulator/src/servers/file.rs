//! A scenario of servers as TOML: `system = "servers"`, settings, and values to try.

use super::error::ServersError;
use super::measures::MEASURES;
use super::scenario::Scenario;
use crate::swept::file::{MOST_RUNS, is_of_system, leaves, line_of, one_seed, set, shown, with};
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
    /// # Errors [`ServersError::File`] and [`ServersError::Line`] name the line; [`ServersError::Swept`]
    /// names the swept setting.
    pub fn parse(text: &str) -> Result<Self, ServersError> {
        let file: Self = toml::from_str(text).map_err(|e| ServersError::File {
            reason: e.to_string(),
        })?;
        file.scenario
            .check()
            .map_err(|error| at_line(text, error))?;
        for key in &file.columns {
            if !MEASURES.iter().any(|measure| measure.key == key) {
                return Err(ServersError::Setting {
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
    /// [`ServersError::Swept`]: the path leads through a setting.
    pub fn set_sweep(&mut self, key: &str, values: Vec<Value>) -> Result<(), ServersError> {
        set(&mut self.sweep, key, Value::Array(values)).map_err(|reason| ServersError::Swept {
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
    /// # Errors [`ServersError::Swept`] names the setting with an invalid value; [`ServersError::Setting`]: a
    /// combination is invalid, or there are too many runs.
    pub fn cases(&self) -> Result<Vec<Case>, ServersError> {
        let mut cases = vec![Case {
            values: Vec::new(),
            scenario: self.scenario.clone(),
        }];
        for (key, values) in leaves(&self.sweep) {
            let wrong = |reason: &str| ServersError::Swept {
                key: key.clone(),
                reason: reason.to_owned(),
            };
            let values = values.as_array().filter(|values| !values.is_empty());
            let values = values.ok_or_else(|| wrong("write a list of values"))?;
            self.check_runs(cases.len().saturating_mul(values.len()))?;
            let mut longer = Vec::with_capacity(cases.len() * values.len());
            for case in &cases {
                for value in values {
                    longer.push(case.with(&key, value)?);
                }
            }
            cases = longer;
        }
        self.check_runs(cases.len())?;
        for case in &cases {
            case.scenario.check()?;
        }
        Ok(cases)
    }

    /// Limits the number of runs: one for each case and seed.
    fn check_runs(&self, cases: usize) -> Result<(), ServersError> {
        let runs = cases.saturating_mul(self.seeds.len());
        if (1..=MOST_RUNS).contains(&runs) {
            return Ok(());
        }
        Err(ServersError::Setting {
            key: "seeds",
            value: format!("{runs} runs"),
            reason: format!("must be 1 to {MOST_RUNS}"),
        })
    }
}

impl Case {
    /// The same case with a setting's value.
    fn with(&self, key: &str, value: &Value) -> Result<Self, ServersError> {
        let swept = |reason| ServersError::Swept {
            key: key.to_owned(),
            reason,
        };
        let scenario = with(&self.scenario, key, value).map_err(swept)?;
        let values = self.values.iter().cloned().chain([shown(value)]).collect();
        Ok(Self { values, scenario })
    }
}

/// Adds the line of a setting to its error, if the file has the setting.
fn at_line(text: &str, error: ServersError) -> ServersError {
    let ServersError::Setting { key, .. } = &error else {
        return error;
    };
    match line_of(text, key) {
        Some(line) => ServersError::Line {
            line,
            fault: Box::new(error),
        },
        None => error,
    }
}
