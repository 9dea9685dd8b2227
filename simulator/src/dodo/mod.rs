//! Dodo, as the availability study simulated it (Acharya & Setia, sections 3 and 4): one client, whose
//! program keeps regions of its data in the idle memory of a cluster.
//!
//! ```text
//! program ─► local cache ─► region known? ─► network ◄─ idle memory daemon (Cluster: hosts over time)
//!              (LRU)          │ no: ask the central manager (placement, refraction)
//!                             └─► disk, string ─► the region is stored where there was room
//! ```
//!
//! - `scenario`: all settings, with the study's values and the sources of all values; `outcome`: the results.
//! - `machine`: disks, string and network, which serve requests in order of arrival.
//! - `local`, `cluster`: places of blocks and regions. The cluster knows the actual state; the client knows
//!   only the answers to its requests.
//! - `client`: a workstation, request by request; `process`, `running`: a program's processes on it; `check`:
//!   invariants of every run.
//! - `simulate`: a week of runs, compared with runs without remote memory and with unlimited remote memory.
//!   `shared`: several concurrent clients, each of which runs its program once.

mod check;
mod client;
mod cluster;
mod dice;
mod local;
mod machine;
mod outcome;
mod owners;
mod process;
mod running;
mod scenario;
mod shared;
mod simulate;
#[cfg(test)]
mod tests;

pub use check::Violation;
pub use outcome::{ClientOutcome, Counts, Hour, Outcome, Owners, Regions, Run, SharedOutcome};
pub use scenario::{
    Client, Disks, LostRegion, Network, Overlap, PlacementName, Recruitment, Remote, RetentionName,
    Scenario, ZoneName,
};
pub use shared::{Borrower, simulate_clients};
pub(crate) use simulate::check;
pub use simulate::{SimulationError, reference, simulate, simulate_program};
