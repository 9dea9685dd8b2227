//! Reasons why a simulation of servers has no results.

use super::laws::BrokenLaw;
use crate::swept::ScenarioError;

/// Failure of a simulation of servers, or of reading its scenario.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServersError {
    /// Fault of the scenario file, or of a setting.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A law that every simulation obeys is violated: a defect of the simulation.
    #[error("a conservation law is violated: please report this, with the scenario")]
    Law(#[from] BrokenLaw),
}
