//! Policies of memory servers (Felten and Zahorjan 1991, section 3), simulated: the choice of a server, the
//! shutdown when an owner returns, and the replacement of pages when all servers are full. The policies are
//! those of `policy::choice` and `policy::shutdown`, which the clerk uses, too.
//!
//! ```text
//! scenario ─► model: clients, servers, owners ─► messages, CPUs, links, disks ─► outcome ─► measures ─► rows
//!                 └► pages: places and room
//! ```
//!
//! - `shipped`, `rows`, `file`: scenario files with `system = "servers"`, and their results.
//! - `model`: one simulation; `pages`: places of pages; `machine`: stations that serve one request at a time.
//! - `scenario`: all settings; `owners`: changes of servers' room; `recorded`: rules of recorded hosts as servers.
//! - `outcome`, `measures`: results; `laws`: conservation laws, checked in every simulation.

mod error;
mod file;
mod laws;
mod machine;
mod measures;
mod model;
mod outcome;
mod owners;
mod pages;
mod recorded;
mod rows;
mod scenario;
mod shipped;
#[cfg(test)]
mod tests;

pub use error::ServersError;
pub use file::{Case, ScenarioFile};
pub use gleaner_policy::choice::Choice;
pub use gleaner_policy::shutdown::{CopyPace, Forwarding, Shutdown};
pub use laws::BrokenLaw;
pub use measures::{MEASURES, Measure};
pub use outcome::{Outcome, OwnerReturn, PageIns};
pub use owners::{RoomChange, room_changes};
pub use recorded::Recorded;
pub use rows::{Inputs, rows, runs, simulate};
pub use scenario::{FullServers, Scenario};
pub use shipped::SHIPPED;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4096;
