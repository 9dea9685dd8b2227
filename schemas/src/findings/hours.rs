//! Views by hour of the week, in the fleet's time zone ([`crate::findings::Parameters::time_zone`]).

use serde::{Deserialize, Serialize};

/// Use of memory by one category in one hour of the week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct MemoryUsageByHour {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// 1 is Monday, 7 Sunday (ISO 8601).
    pub weekday: i64,
    /// 0 to 23.
    pub hour: i64,
    /// `kernel`, `process`, `file_cache`, `available` or `harvestable`.
    pub category: String,
    /// Samples taken in that hour that have it.
    pub samples_count: i64,
    /// Mean over them.
    pub mean_bytes: f64,
    /// Least.
    pub min_bytes: i64,
    /// Mean share of physical memory.
    pub mean_share: f64,
}

/// Dips in one hour of the week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct DipsByHour {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// 1 is Monday, 7 Sunday.
    pub weekday: i64,
    /// 0 to 23.
    pub hour: i64,
    /// Threshold; absent where it is relative.
    pub threshold_bytes: Option<i64>,
    /// Threshold as a share of each host's physical memory; absent where it is absolute.
    pub threshold_share: Option<f64>,
    /// Sample intervals below it.
    pub intervals: i64,
    /// Samples taken in that hour.
    pub samples_count: i64,
}

/// Idleness in one hour of the week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct IdleByHour {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// 1 is Monday, 7 Sunday.
    pub weekday: i64,
    /// 0 to 23.
    pub hour: i64,
    /// Samples taken in that hour of which it can be told.
    pub samples_count: i64,
    /// Share of them in an idle period.
    pub idle_share: f64,
}
