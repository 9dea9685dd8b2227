//! Reasons why a simulation of servers has no results.

use super::PAGE_BYTES;
use super::laws::BrokenLaw;
use crate::hosts::HostsError;
use crate::swept::ScenarioError;

/// Failure of a simulation of servers, or of reading its scenario.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServersError {
    /// Fault of the scenario file, or of a setting.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A dataset's hosts cannot be read.
    #[error("dataset {name}")]
    Hosts {
        /// Name of the dataset.
        name: String,
        /// Error of reading the hosts.
        source: HostsError,
    },
    /// The scenario names a dataset that was not opened.
    #[error("dataset {name} is not open: name its folder in [datasets], or by --dataset")]
    NoDataset {
        /// Name of the dataset.
        name: String,
    },
    /// The scenario names a curve that was not read.
    #[error("curve {name} is not read: name its file in [curves]")]
    NoCurve {
        /// Name of the curve.
        name: String,
    },
    /// The curve counts pages of another size than the servers'.
    #[error(
        "curve {name} has pages of {page_bytes} bytes, and servers have pages of {expected} bytes",
        expected = PAGE_BYTES
    )]
    CurvePages {
        /// Name of the curve.
        name: String,
        /// Bytes of the curve's pages.
        page_bytes: u64,
    },
    /// A law that every simulation obeys is violated: a defect of the simulation.
    #[error("a conservation law is violated: please report this, with the scenario")]
    Law(#[from] BrokenLaw),
}
