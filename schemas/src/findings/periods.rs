//! How long regions of memory stay available (Acharya & Setia, Table 4).

use serde::{Deserialize, Serialize};

/// Which time counts for an availability period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// All time.
    #[default]
    All,
    /// Inside idle periods only: it ends when the owner returns as well.
    Idle,
}

/// How long regions of one size stay available, over the hosts of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AvailabilityPeriods {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Which time counts.
    pub scope: Scope,
    /// Size of the region.
    pub region_bytes: i64,
    /// Periods kept (not shorter than the minimum).
    pub periods: i64,
    /// Of those, cut by a gap or an end of the trace: they lasted longer than what was seen.
    pub censored: i64,
    /// Mean length of the periods as seen; absent without any.
    pub mean_s: Option<f64>,
    /// Median length as seen.
    pub median_s: Option<f64>,
    /// Longest as seen.
    pub longest_s: Option<f64>,
    /// Kaplan-Meier mean, restricted to the longest length seen: counts what the cut periods at least lasted.
    pub restricted_mean_s: Option<f64>,
    /// Share of the covered time in which the region was available (all scopes: of all covered time).
    pub available_time_share: Option<f64>,
}
