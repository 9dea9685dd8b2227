//! The collector: takes in the batches of a cluster's agents, keeps each durably before it is
//! acknowledged, seals them as files of a dataset, and serves it.
//!
//! A batch's journey: [`http`] asks who sends it and decodes it, [`journal`] makes it durable, the sender
//! is told; later [`sealer`] moves it into the dataset, and [`publish`] puts a copy of that on an object
//! store. [`hosts`] remembers how far each host has come.
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
