//! Global memory management (Feeley et al., SOSP 1995), simulated: clients run programs on nodes whose memory
//! `policy::global` manages, on the paper's machines and network.
//!
//! ```text
//! programs ─► process ─► policy::global::node (one per node) ─► actions ─► cluster: messages, disks, CPUs ─► outcome
//!                            ▲                                        │
//!                            └──────── event queue ◄──────────────────┘
//! ```
//!
//! - `shipped`, `rows`, `file`: scenario files with `system = "gms"`, and their results. `experiments`: the paper's
//!   Figures 6 to 13 as scenarios.
//! - `simulation`: one simulation; `cluster`: its events. `process`: a program on a node; `programs`: its references;
//!   `readers`: programs of our own.
//! - `scenario`: all settings; `owners`: changes of nodes' idle frames; `recorded`: recorded hosts as nodes; `costs`:
//!   the paper's Tables 1 to 5; `frames`: costs of larger frames; `machine`: stations that serve one request at a time.
//! - `outcome`: results; `check`: conservation laws, checked in every simulation.

mod check;
mod cluster;
mod costs;
mod error;
pub mod experiments;
mod file;
mod frames;
mod machine;
mod outcome;
mod owners;
mod process;
mod programs;
mod readers;
mod recorded;
mod rows;
mod scenario;
mod shipped;
mod simulation;
#[cfg(test)]
mod tests;

pub use check::Violation;
pub use costs::Costs;
pub use error::GmsError;
pub use file::{Case, ScenarioFile};
pub use gleaner_policy::global::cost::{EpochCost, GetPageCost};
pub use gleaner_policy::global::settings::MemoryPolicy;
pub use outcome::{ClientOutcome, Outcome, OwnersOutcome, Reads, Traffic, Window};
pub use owners::{OwnerChange, owner_changes};
pub use programs::Program;
pub use recorded::{Recorded, RecordedHosts};
pub use rows::{MEASURES, Measure, rows, runs};
pub use scenario::{NEEDED_FRAMES, Scenario};
pub use shipped::SHIPPED;
pub use simulation::{simulate, speedups};
