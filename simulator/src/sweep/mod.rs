//! Runs scenarios from files with swept values: all combinations run concurrently, and their results become
//! rows.
//!
//! ```text
//! file (or shipped) ─► plan: datasets × programs (or recorded clients) × values ─► run: on every CPU, each seed ─► rows: median and range
//! ```
//!
//! - `file`: a scenario as TOML. `key`: dotted paths of [`Scenario`](crate::dodo::Scenario)'s settings, and
//!   lists of values for them.
//! - `workload`: a program or recorded clients. `plan`: every combination, checked before any run. `cluster`:
//!   a dataset and its simulated time.
//! - `forecasts`: the forecasts to be learnt from earlier time if hosts lend only memory that is expected to
//!   stay available.
//! - `clients`: recorded streams that run instead of programs, as in a file; `borrowers`: their requests,
//!   read once.
//! - `run`: runs all cases, and reads hosts once for each set of settings. The number of threads does not
//!   change the rows.
//! - `part`: results of some runs, which can be stored and merged; `sweep_summary`: properties of a sweep that
//!   its results show.
//! - `measure`: the list of an outcome's figures, with unit and meaning; `row`: these figures over the seeds.

mod borrowers;
mod clients;
mod cluster;
mod error;
mod file;
mod forecasts;
mod key;
mod measure;
mod part;
mod plan;
mod row;
mod run;
mod shipped_scenarios;
mod sweep_summary;
#[cfg(test)]
mod tests;
mod workload;

pub use clients::{ClientTable, Recording, Store};
pub use cluster::Cluster;
pub use error::{SweepError, SweepPartError};
pub use file::ScenarioFile;
pub use forecasts::ForecastInputs;
pub use key::SweptKey;
pub use measure::{MEASURES, Measure, Unit};
pub use part::SweepPart;
pub use plan::{Case, Plan};
pub use row::Row;
pub use run::run;
pub use shipped_scenarios::{SHIPPED, ShippedScenario};
pub use sweep_summary::{SimulatedTime, SweepSummary};
pub use workload::Workload;
