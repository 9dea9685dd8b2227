//! A scenario as TOML.

use super::SweepError;
use super::clients::ClientTable;
use super::key::{self, SweptKey};
use super::workload::Workload;
use crate::applications::Application;
use crate::hosts::begin;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::Table;

/// A scenario file: settings, programs or recorded clients, datasets, time, seeds, and values to try.
/// Settings that are left out have the study's values.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// Purpose of the scenario, in one line.
    #[serde(default)]
    pub about: String,
    /// Programs, run one at a time; default: all of the study's.
    pub programs: Option<Vec<Application>>,
    /// Recorded streams instead of programs; their clients run concurrently.
    pub clients: Option<Vec<ClientTable>>,
    /// Folders of datasets by name.
    #[serde(default)]
    pub datasets: BTreeMap<String, PathBuf>,
    /// The simulation's begin: a date (UTC), RFC 3339, or ms since 1970-01-01 UTC; absent: the first day of
    /// each dataset.
    #[serde(default, deserialize_with = "begin")]
    pub from: Option<String>,
    /// Number of simulated days; default: a week.
    #[serde(default = "a_week")]
    pub days: f64,
    /// Seeds to run; rows have the median over the seeds, and the range.
    #[serde(default = "one_seed")]
    pub seeds: Vec<u64>,
    /// Settings of [`Scenario`](crate::dodo::Scenario), by its names.
    #[serde(default)]
    pub scenario: Table,
    /// Values to try: `remote.placement = ["random", "spread"]`. With several keys, every combination is
    /// tried.
    #[serde(default, deserialize_with = "sweep")]
    pub sweep: Vec<SweptKey>,
}

impl ScenarioFile {
    /// Reads a scenario file.
    ///
    /// # Errors
    /// [`SweepError::File`], with the line, if the text is not TOML or has an unknown key;
    /// [`SweepError::ProgramsAndClients`] if it has both.
    pub fn parse(text: &str) -> Result<Self, SweepError> {
        let file: Self = toml::from_str(text).map_err(|e| SweepError::File {
            reason: e.to_string(),
        })?;
        file.workloads()?;
        Ok(file)
    }

    /// Workloads of the scenario, in order.
    pub(super) fn workloads(&self) -> Result<Vec<Workload>, SweepError> {
        let of =
            |programs: &[Application]| programs.iter().copied().map(Workload::Program).collect();
        match (&self.programs, &self.clients) {
            (Some(_), Some(_)) => Err(SweepError::ProgramsAndClients),
            (Some(programs), None) => Ok(of(programs)),
            (None, Some(_)) => Ok(vec![Workload::Streams]),
            (None, None) => Ok(of(&Application::STUDY)),
        }
    }

    /// Adds a swept key, or replaces the values of the same key.
    pub fn set_sweep(&mut self, swept: SweptKey) {
        match self.sweep.iter_mut().find(|s| s.key == swept.key) {
            Some(there) => *there = swept,
            None => self.sweep.push(swept),
        }
    }
}

const fn a_week() -> f64 {
    7.0
}

fn one_seed() -> Vec<u64> {
    vec![1]
}

fn sweep<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<SweptKey>, D::Error> {
    key::lists(&Table::deserialize(from)?).map_err(serde::de::Error::custom)
}
