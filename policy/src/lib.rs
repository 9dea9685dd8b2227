//! The rules that the daemon, the analysis and the simulator share: the definitions of idle, in use and
//! available, and the amount that may be lent.
//!
//! Pure: no clock, no randomness, no I/O. Time is an argument. The simulator runs the same code as the
//! daemons.
//!
//! Rooms, from the top; each uses only those after it: `global`, `lending`, `outlook`, `placement`, `choice`,
//! `shutdown`, `refraction`, `eviction`, `memory_context`, `quota`, `forecast`, `idle`, `guest_load`,
//! `active`, `accounting`.

pub mod accounting;
pub mod active;
pub mod choice;
pub mod eviction;
pub mod forecast;
pub mod global;
pub mod guest_load;
pub mod idle;
pub mod lending;
pub mod memory_context;
pub mod outlook;
pub mod placement;
pub mod quota;
pub mod refraction;
pub mod shutdown;
