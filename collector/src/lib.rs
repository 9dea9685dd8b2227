//! The collector: takes in the batches of a cluster's agents, keeps each durably before it is
//! acknowledged, seals them as files of a dataset, and serves it.
//!
//! A batch's journey: [`http`] authenticates the sender and decodes the batch, [`journal`] makes it durable,
//! and the sender gets the acknowledgement; later [`sealer`] moves it into the dataset, and [`publish`]
//! copies that to an object store. [`hosts`] remembers the progress of each host.
//!
//! Rooms, from the top; each uses only those after it: `run`, `ask`, `http`, `config`, `args`, `sealer`,
//! `hosts`, `publish`, `journal`, `upkeep`, `wording`, `error`.

pub mod args;
pub mod ask;
pub mod config;
pub mod error;
pub mod hosts;
mod http;
pub mod journal;
pub mod publish;
pub mod run;
pub mod sealer;
pub mod upkeep;
mod wording;

pub use error::Error;

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, ms since 1970-01-01 UTC.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
}
