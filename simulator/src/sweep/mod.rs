//! Scenarios from files, with swept values: concurrent runs, and their results as rows.
//!
//! ```text
//! file (or shipped) ─► plan: datasets × programs (or recorded clients) × values ─► run: on every CPU, each seed ─► rows: median and range
//! ```
//!
//! - `file`: a scenario as TOML. `key`: dotted paths into [`Scenario`](crate::dodo::Scenario), and lists of values for them.
//! - `workload`: a program or recorded clients. `plan`: every combination, checked before any run. `cluster`:
//!   a dataset and its simulated time.
//! - `forecasts`: what must be learnt from earlier time if hosts lend only memory that is expected to stay.
//! - `clients`: recorded streams instead of programs, as in a file; `borrowers`: their requests, read once.
//! - `run`: hosts are read once for each way of reading them; the number of threads does not change the rows.
//! - `measure`: the list of an outcome's figures, with unit and meaning; `row`: these figures over the seeds.

mod borrowers;
mod clients;
mod cluster;
mod error;
mod file;
mod forecasts;
mod key;
mod measure;
mod parallel;
mod plan;
mod row;
mod run;
mod shipped;
#[cfg(test)]
mod tests;
mod workload;

pub use clients::{ClientTable, Recording, Store};
pub use cluster::Cluster;
pub use error::SweepError;
pub use file::ScenarioFile;
pub use forecasts::ForecastInputs;
pub use key::SweptKey;
pub use measure::{MEASURES, Measure, Unit};
pub use plan::{Case, Plan};
pub use row::{Row, Spread};
pub use run::run;
pub use shipped::{SHIPPED, ShippedScenario};
pub use workload::Workload;
