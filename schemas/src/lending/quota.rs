//! Memory that a host may lend.

use serde::{Deserialize, Serialize};

/// Extent to which lending may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// On idle hosts, and never more than can be taken without pushing the owner's pages out.
    #[default]
    Gentle,
    /// The paper's: on idle hosts, everything not in use, idle processes' pages and unused cache included.
    Paper,
    /// As in the gentle mode; on busy hosts too, with a larger reserve.
    Spare,
}

/// Reason of a quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum QuotaReason {
    /// Idle: what the accounting gives.
    Idle,
    /// Busy, and more than enough is free (mode `spare`).
    Spare,
    /// The host is not idle for long enough yet.
    Waiting,
    /// The owner is there.
    InUse,
    /// The load is too high.
    Loaded,
    /// The owner has paused lending.
    Paused,
    /// Memory runs short.
    Pressure,
    /// The owner's activity, or the memory, cannot be seen.
    #[default]
    #[serde(other)]
    Unknown,
}

/// Memory that one host may lend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HostQuota {
    /// 32 lower-case hex digits.
    pub host_id: String,
    /// Bytes that it may lend in all, now.
    pub quota_bytes: u64,
    /// Bytes of it that are leased.
    pub lent_bytes: u64,
    /// Bytes left to lease; 0 where the host grants none (it leaves its quota to others' memory servers).
    pub free_bytes: u64,
    /// Bytes that it would lend once idle.
    pub once_idle_bytes: u64,
    /// Physical memory.
    pub physical_bytes: u64,
    /// Bytes that are left alone beside the quota: the headroom, or the larger one of a busy host.
    #[serde(default)]
    pub held_back_bytes: u64,
    /// Extent to which lending may go.
    pub mode: Mode,
    /// Reason of the quota.
    pub reason: QuotaReason,
    /// For how long it has been idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_for_ms: Option<i64>,
    /// In how long it will be idle, if nothing happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_in_ms: Option<i64>,
    /// Least that could have been lent at any time of the last 24 hours, as far as was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_water_bytes: Option<u64>,
    /// Age of these figures.
    #[serde(default)]
    pub age_ms: i64,
    /// Probable remaining times: this much, for at least so long, with this confidence; empty before anything
    /// was learnt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outlook: Vec<Outlook>,
}

/// Part that is expected to stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Outlook {
    /// For at least so long.
    pub for_ms: i64,
    /// The probability that so much stays throughout.
    pub confidence: f64,
    /// Number of bytes.
    pub bytes: u64,
}

/// Quotas of all hosts: the answer of `GET /v1/quotas`, and the content of a quota file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Quotas {
    /// Time of writing, in milliseconds since 1970-01-01 UTC, by the clock of the writer.
    pub time_ms: i64,
    /// Quotas by host id.
    pub hosts: Vec<HostQuota>,
}
