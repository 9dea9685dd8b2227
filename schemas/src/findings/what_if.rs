//! Effects of other settings of the limits: memory gained, and the cost to owners.

use super::finding::{Finding, TablePlace, printed};
use super::{LendingMode, Scope};
use serde::{Deserialize, Serialize};

/// Results of one setting of the limits, over all hosts of the dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct WhatIf {
    /// Name of the limit that differs from the defaults: `none`, `idle_after_s`, `load_limit`,
    /// `headroom_share`, `minimum_idle_s`, `scope`, or `idle_after_s,headroom_share` in the grid of the two.
    pub varied: String,
    /// Time without activity of the owner after which a host is idle.
    pub idle_after_s: f64,
    /// Load limit of idle hosts: the 5-minute load average must be below this limit for `idle_after_s`, too;
    /// absent: any load.
    pub load_limit: Option<f64>,
    /// Share of physical memory that is never lent.
    pub headroom_share: f64,
    /// Further time for which a host must have been idle before it lends.
    pub minimum_idle_s: f64,
    /// `idle`: only idle hosts lend. `all`: all hosts lend, whatever their owners do, and reclaim memory only
    /// when their quotas shrink.
    pub scope: Scope,
    /// Mode of lending.
    pub mode: LendingMode,
    /// Hosts that have the mode's figures and known idleness.
    pub hosts_count: i64,
    /// Time observed on these hosts.
    pub observed_s: f64,
    /// Mean memory that can be lent, over the observed time and hosts.
    pub mean_quota_bytes: f64,
    /// Mean memory that can be lent, as a share of physical memory.
    pub quota_share: f64,
    /// Reclaims per host and observed day: a host that lends reclaims its memory when it is no longer idle.
    pub reclaims_per_host_day: f64,
    /// Mean of the bytes that a reclaim returns; absent without reclaims.
    pub mean_reclaimed_bytes: Option<f64>,
    /// Bytes returned per host and day: by reclaims, and by quotas that shrink while the host stays idle.
    pub reclaimed_bytes_per_host_day: f64,
    /// Mean memory context size of a reclaim, which is the memory that the owner has to page in again. Absent
    /// where footprints are unknown.
    pub mean_memory_context_bytes: Option<f64>,
    /// 99 % quantile of the memory context size; absent where footprints are unknown.
    pub p99_memory_context_bytes: Option<f64>,
    /// Memory that owners have to page in again per host and day; absent where footprints are unknown.
    pub memory_context_bytes_per_host_day: Option<f64>,
    /// True if no other setting of the same mode and scope lends at least as much at less cost, or more at no
    /// higher cost. The cost is `memory_context_bytes_per_host_day`; where no footprint is known at all,
    /// `reclaimed_bytes_per_host_day`.
    pub is_on_frontier: bool,
}

impl Finding for WhatIf {
    const PRINTED: Option<TablePlace> =
        printed(190, "Other limits: best settings by gain and cost");
    const PLAIN_TEXT: &'static [&'static str] = &["varied"];
}
