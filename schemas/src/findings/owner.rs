//! The owners: when away, and what could be leased.

use serde::{Deserialize, Serialize};

/// A time in which one host's owner was away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdlePeriod {
    /// Host id.
    pub host: String,
    /// Its start, backdated to the last activity seen.
    pub from_time_ms: i64,
    /// Its end.
    pub to_time_ms: i64,
    /// Length.
    pub duration_s: f64,
    /// Whether its start was cut by a gap or the trace's start.
    pub start_censored: bool,
    /// Whether its end was cut by a gap or the trace's end.
    pub end_censored: bool,
}

/// What one host could lease at its last sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quota {
    /// Host id.
    pub host: String,
    /// The sample.
    pub time_ms: i64,
    /// What could be leased now: the smaller of the two below when idle, else 0.
    pub quota_bytes: i64,
    /// The paper's recruited memory, were the host idle: total − in use − reserve − headroom.
    pub recruitable_bytes: i64,
    /// What could be taken without pushing the owner's pages out.
    pub harvestable_bytes: Option<i64>,
    /// Why the quota is what it is, in words.
    pub reason: String,
}
