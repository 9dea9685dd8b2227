//! Scenarios in files, with values swept: the runs side by side, and their results as rows.
//!
//! ```text
//! file (or shipped) ─► plan: datasets × programs (or recorded clients) × values ─► run: on every CPU, each seed ─► rows: median and range
//! ```
//!
//! - `file`: a scenario as TOML. `key`: dotted paths into [`Scenario`](crate::dodo::Scenario), and lists of values for them.
//! - `workload`: a program or recorded clients. `plan`: every combination, looked at before anything is run. `cluster`: a dataset and the time of it that is simulated.
//! - `forecasts`: what must be learnt of the time before, where hosts lend only what is expected to stay.
//! - `clients`: recorded streams in the place of programs, as a file says them; `borrowers`: their requests, read once.
//! - `run`: hosts are read once for each way of reading them; how many threads there are changes nothing in the rows.
//! - `measure`: one list of the figures of an outcome, with unit and meaning; `row`: these over the seeds.

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
