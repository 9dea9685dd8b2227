//! Effects of other limits: memory gained against its cost to the owners.

use super::finding::{Finding, TablePlace, printed};
use super::{LendingMode, Scope};
use serde::{Deserialize, Serialize};

/// One setting of the limits, over all hosts of the dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct WhatIf {
    /// Key that differs from the defaults: `none`, `idle_after_s`, `load_limit`, `headroom_share`, `minimum_idle_s`,
    /// `scope`, or `idle_after_s,headroom_share` in the grid of the two.
    pub varied: String,
    /// Idle: no activity of the owner for this long.
    pub idle_after_s: f64,
    /// Idle: 5-minute load average below this for as long; absent: any load.
    pub load_limit: Option<f64>,
    /// Share of physical memory that is never lent.
    pub headroom_share: f64,
    /// Memory is lent once the host has been idle for this long as well.
    pub minimum_idle_s: f64,
    /// `idle`: only idle hosts lend. `all`: all do, whatever their owners do, and take back by quotas that shrink alone.
    pub scope: Scope,
    /// Extent to which lending goes.
    pub mode: LendingMode,
    /// Hosts that have what the mode needs, and of which it can be told when they are idle.
    pub hosts_count: i64,
    /// Time observed on them.
    pub observed_s: f64,
    /// Mean over the observed time and hosts of the memory that can be lent.
    pub lent_mean_bytes: f64,
    /// The same as a share of physical memory.
    pub lent_share: f64,
    /// Times that a host that lends takes memory back because it is no longer idle, a host and day observed.
    pub reclaims_per_host_day: f64,
    /// Mean of the bytes that a reclaim takes back; absent without reclaims.
    pub returned_mean_bytes: Option<f64>,
    /// Bytes taken back a host and day: by reclaims, and by quotas that shrink while the host stays idle.
    pub returned_per_host_day_bytes: f64,
    /// Mean memory context size of a reclaim: what owners have to page in again. Absent where footprints are unknown.
    pub context_mean_bytes: Option<f64>,
    /// The 99 % quantile.
    pub context_p99_bytes: Option<f64>,
    /// Memory that owners have to page in again a host and day: absent as well.
    pub context_per_host_day_bytes: Option<f64>,
    /// Whether no other setting of the same mode and scope lends at least as much at less cost, or more at no more. The cost
    /// is `context_per_host_day_bytes`; where no footprint is known at all, `returned_per_host_day_bytes`.
    pub on_frontier: bool,
}

impl Finding for WhatIf {
    const PRINTED: Option<TablePlace> = printed(
        190,
        "Other limits: settings that none beats in gain and cost",
    );
    const PLAIN_TEXT: &'static [&'static str] = &["varied"];
}
