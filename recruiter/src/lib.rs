//! The recruiter (central manager) tracks what every host may lend, places requests for leases, and
//! introduces clients to memory servers. Its state is soft: it is rebuilt from the hosts' announcements.
//!
//! A request's journey: [`http`] authenticates the sender, [`registry`] checks permission and lists candidate
//! hosts, and [`placing`] asks hosts over their [`links`]. The registry is built only from the hosts'
//! announcements and answers, which arrive in a [`conversation`] with each host. [`state`] holds the state shared
//! by these modules. [`commons`] has the members and epochs of commonses, which arrive by [`member_link`]s;
//! [`socket`] has the code that both kinds of connection share. [`adapter`] controls third-party memory servers.
//!
//! Rooms, from the top; each uses only those after it: `ask`, `run`, `export`, `forecasts`, `http`,
//! `member_link`, `conversation`, `socket`, `placing`, `state`, `choice`, `config`, `links`, `metrics`,
//! `revocations`, `args`, `commons`, `registry`, `adapter`, `error`.

pub mod adapter;
pub mod args;
pub mod ask;
mod choice;
mod commons;
pub mod config;
mod conversation;
pub mod error;
mod export;
mod forecasts;
pub mod http;
mod links;
mod member_link;
mod metrics;
mod placing;
pub mod registry;
mod revocations;
pub mod run;
mod socket;
mod state;

pub use error::Error;

use std::time::{SystemTime, UNIX_EPOCH};

/// Present time, ms since 1970-01-01 UTC.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
}
