//! The recruiter (central manager): knows what every host may lend, places requests for leases and introduces clients to
//! memory servers. Its state is soft: rebuilt from announcements.
//!
//! A request's journey: [`http`] asks who sends it, [`registry`] whether it may be and who could be asked, [`placing`] asks hosts
//! over their [`links`], whose announcements and answers are all that the registry is made of: a [`conversation`] with each host.
//! [`state`] holds what these share, and stands below them. [`adapter`] is for memory servers of others.
//!
//! Rooms, from the top; each uses only those after it: `ask`, `run`, `export`, `forecasts`, `http`,
//! `conversation`, `placing`, `state`, `choice`, `config`, `links`, `metrics`, `revocations`, `args`,
//! `registry`, `adapter`, `error`.

pub mod adapter;
pub mod args;
pub mod ask;
mod choice;
pub mod config;
mod conversation;
pub mod error;
mod export;
mod forecasts;
pub mod http;
mod links;
mod metrics;
mod placing;
pub mod registry;
mod revocations;
pub mod run;
mod state;

pub use error::Error;

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, ms since 1970-01-01 UTC.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
}
