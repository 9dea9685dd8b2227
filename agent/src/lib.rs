//! The tracer: samples this host's memory, processes, files and owner activity into SQLite.
//!
//! The journey of one sample: [`read`] parses `/proc`, `/sys` and `/dev` (pure parsers over bytes; root
//! paths, page size and tick length are arguments), [`processes`], [`files`] and [`activity`] walk
//! what is in use, [`sample`] divides memory among the categories of `gleaner_policy`, [`sampler`]
//! keeps what is needed from one sample to the next, and [`store`] writes one transaction.
//! [`run`] does that at each interval, and waits for the owner's return in between; [`live`] tells local
//! daemons of both; [`export`] hands the rows on to a dataset.

pub mod absence;
pub mod activity;
pub mod args;
pub mod cgroups;
pub mod changes;
pub mod clock;
pub mod config;
pub mod damage;
pub mod database;
pub mod error;
mod events;
pub mod export;
pub mod figures;
pub mod files;
pub mod gap;
mod history;
pub mod host;
pub mod identity;
pub mod inspect;
pub mod interval;
pub mod live;
mod mapped;
pub mod nodes;
pub mod opens;
mod owner;
pub mod physical;
pub mod print;
pub mod processes;
pub mod proportional;
pub mod read;
mod recorder;
mod residency;
pub mod retention;
pub mod run;
pub mod sample;
pub mod sampler;
pub mod session;
pub mod status;
pub mod store;
mod ticker;
pub mod vacuum;

pub use error::Error;
