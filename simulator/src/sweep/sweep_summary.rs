//! Properties of a sweep that its results show beside the figures.

use super::{Cluster, Plan};
use serde::{Deserialize, Serialize};

/// A sweep: its scenario, its cases and the simulated times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepSummary {
    /// Name of the scenario.
    pub scenario: String,
    /// Purpose of the scenario, in one line.
    pub about: String,
    /// Cases and seeds.
    pub plan: Plan,
    /// Simulated time of each of the plan's datasets.
    pub times: Vec<SimulatedTime>,
}

/// Part of a dataset's time that is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimulatedTime {
    /// The simulation's begin, ms since 1970-01-01 UTC.
    pub from_ms: i64,
    /// The simulation's end, ms since 1970-01-01 UTC.
    pub until_ms: i64,
}

impl SweepSummary {
    /// Summary of a plan on its datasets, which must be in the plan's order.
    #[must_use]
    pub fn new(scenario: String, about: String, plan: Plan, clusters: &[Cluster]) -> Self {
        let time = |cluster: &Cluster| SimulatedTime {
            from_ms: cluster.from_ms,
            until_ms: cluster.until_ms,
        };
        Self {
            scenario,
            about,
            plan,
            times: clusters.iter().map(time).collect(),
        }
    }

    /// Name and simulated time of each dataset.
    pub fn datasets(&self) -> impl Iterator<Item = (&str, SimulatedTime)> {
        let names = self.plan.datasets.iter().map(String::as_str);
        names.zip(self.times.iter().copied())
    }
}
