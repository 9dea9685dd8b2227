//! The rules that the daemon, the analysis and the simulator share: what counts as idle, as in use,
//! as available, and how much of it may be lent.
//!
//! Pure: no clock, no randomness, no I/O. Time comes in as an argument. What was simulated is what
//! runs.
//!
//! Rooms, from the top; each uses only those after it: `lending`, `outlook`, `placement`, `refraction`,
//! `eviction`, `memory_context`, `quota`, `forecast`, `idle`, `guest_load`, `active`, `accounting`.

pub mod accounting;
pub mod active;
pub mod eviction;
pub mod forecast;
pub mod guest_load;
pub mod idle;
pub mod lending;
pub mod memory_context;
pub mod outlook;
pub mod placement;
pub mod quota;
pub mod refraction;
