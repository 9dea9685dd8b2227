//! The collector: accepts the batches of a cluster's agents, stores each durably before acknowledging it,
//! seals them as files of a dataset, and serves the dataset.
//!
//! A batch's journey: [`http`] authenticates the sender and decodes the batch, [`journal`] makes it durable,
//! and the sender gets the acknowledgement. Later [`sealer`] moves the batch into the dataset, [`publish`]
//! copies the dataset to an object store, and [`tables`] publishes it as Iceberg tables. [`hosts`] keeps the
//! progress of each host, and [`peers`] the state of the dataset's other collectors.
//!
//! Rooms, from the top; each uses only those after it: `run`, `ask`, `http`, `config`, `args`, `sealer`,
//! `hosts`, `peers`, `publish`, `tables`, `journal`, `upkeep`, `wording`, `error`.

pub mod args;
pub mod ask;
pub mod config;
pub mod error;
pub mod hosts;
mod http;
pub mod journal;
pub mod peers;
pub mod publish;
pub mod run;
pub mod sealer;
pub mod tables;
pub mod upkeep;
mod wording;

pub use error::Error;

use std::time::{SystemTime, UNIX_EPOCH};

/// Present time, ms since 1970-01-01 UTC.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
}
