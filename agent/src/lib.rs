//! The tracer: samples this host's memory, processes, files and owner activity into SQLite.
//!
//! The journey of one sample: [`read`] parses `/proc`, `/sys` and `/dev` (pure parsers over bytes; root
//! paths, page size and tick length are arguments). [`sample`] walks processes and files in use, divides
//! memory among the categories of `gleaner_policy`, and keeps what the next sample needs. [`activity`]
//! determines when the owner was last active. [`trace`] stores all of this in one transaction, and exports it
//! to a dataset. [`owner`] decides whether the owner is away. [`run`] does this at each interval, and waits
//! for the owner's return in between; [`live`] sends samples and returns to local daemons. [`session`] is the
//! reporter inside a desktop. [`ship`] sends the trace to a collector, in a process of its own.
//!
//! Rooms, from the top; each uses only those after it: `run`, `service`, `live`, `owner`, `inspect`,
//! `status`, `ship`, `print`, `trace`, `host`, `sample`, `activity`, `identity`, `state_files`, `config`,
//! `args`, `session`, `read`, `ticker`, `clock`, `priority`, `missing_values`, `error`.

pub mod activity;
pub mod args;
pub mod clock;
pub mod config;
pub mod error;
pub mod host;
pub mod identity;
pub mod inspect;
pub mod live;
pub mod missing_values;
pub mod owner;
pub mod print;
mod priority;
pub mod read;
pub mod run;
pub mod sample;
mod service;
pub mod session;
pub mod ship;
pub mod state_files;
pub mod status;
mod ticker;
pub mod trace;

pub use error::Error;
pub(crate) use gleaner_schemas::interval;
