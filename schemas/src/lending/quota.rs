//! Memory that a host may lend.

use serde::{Deserialize, Serialize};

/// Mode of lending: the hosts that lend, and the memory that they may lend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Only idle hosts lend, and never more than can be taken without paging out the owner's pages.
    #[default]
    Gentle,
    /// The paper's mode: only idle hosts lend, but all memory that is not in use. This includes pages of idle
    /// processes and unused cache.
    Paper,
    /// Like the gentle mode, but busy hosts lend as well; they keep a larger headroom.
    Spare,
}

/// Reason of a quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum QuotaReason {
    /// The host is idle: the quota is computed from its memory.
    Idle,
    /// The host is busy, and has more than enough free memory (mode `spare`).
    Spare,
    /// The host has not been idle for long enough yet.
    Waiting,
    /// The owner is present.
    InUse,
    /// The load is too high.
    Loaded,
    /// The owner has paused lending.
    Paused,
    /// Memory is running short.
    Pressure,
    /// The owner's activity, or the memory, cannot be observed.
    #[default]
    #[serde(other)]
    Unknown,
}

/// Memory that one host may lend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HostQuota {
    /// Id of the host: 32 lower-case hex digits.
    pub host_id: String,
    /// Bytes that the host may lend in all, now.
    pub quota_bytes: u64,
    /// Bytes of the quota that are leased.
    pub lent_bytes: u64,
    /// Bytes of the quota that are not leased; 0 where the host grants no leases (it leaves its quota to
    /// other memory servers).
    pub unleased_bytes: u64,
    /// Quota that the host would have if it were idle.
    pub idle_quota_bytes: u64,
    /// Physical memory of the host.
    pub physical_bytes: u64,
    /// Bytes that are never lent: the headroom, or the larger headroom of a busy host.
    #[serde(default)]
    pub headroom_bytes: u64,
    /// Mode of lending: the hosts that lend, and the memory that they may lend.
    pub mode: Mode,
    /// Reason of the quota.
    pub reason: QuotaReason,
    /// Time for which the host has been idle; absent if it is not idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_for_ms: Option<i64>,
    /// Time until the host will be idle, if nothing happens; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_in_ms: Option<i64>,
    /// Low water: minimum that could have been lent at any observed time of the last 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_water_bytes: Option<u64>,
    /// Age of these figures.
    #[serde(default)]
    pub age_ms: i64,
    /// Parts of the quota that are expected to stay for a time; empty until the forecasts have learnt enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outlook: Vec<Outlook>,
}

/// Part of the quota that is expected to stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Outlook {
    /// Minimum time for which the bytes stay available.
    pub duration_ms: i64,
    /// Probability that the bytes stay available throughout.
    pub confidence: f64,
    /// Number of bytes expected to stay.
    pub bytes: u64,
}

/// Quotas of all hosts: the answer of `GET /v1/quotas`, and the content of a quota file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Quotas {
    /// Time of writing, in milliseconds since 1970-01-01 UTC, by the clock of the writer.
    pub time_ms: i64,
    /// Quota of each host.
    pub hosts: Vec<HostQuota>,
}
