//! Views by hour of the week, in the fleet's time zone ([`crate::findings::Parameters::time_zone`]).

use super::Scope;
use super::finding::Finding;
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
    /// `kernel`, `process`, `file_cache`, `available`, `harvestable`; by the paper's lookahead `live_file_cache` and
    /// `available_paper`.
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

impl Finding for MemoryUsageByHour {
    const PLAIN_TEXT: &'static [&'static str] = &["size_class", "category"];
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

impl Finding for DipsByHour {}

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

impl Finding for IdleByHour {}

/// Share of one hour of the week in which a region is available, and of what is available then, the share that is still
/// so an hour later. Of at most three sizes: the smallest, the middle and the largest that a host of the class could
/// have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct AvailabilityByHour {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Time that counts.
    pub scope: Scope,
    /// Size of the region.
    pub region_bytes: i64,
    /// 1 is Monday, 7 Sunday.
    pub weekday: i64,
    /// 0 to 23.
    pub hour: i64,
    /// Share of the time that samples cover in that hour in which the region was available (and, in idle time, the owner
    /// away; of hosts of which that can be told).
    pub available_share: f64,
    /// Probability that what is available at an instant of that hour has been so all the while one hour later, as for
    /// [`crate::findings::AvailabilityOdds`]; absent where nothing could be followed that long.
    pub still_available_1h: Option<f64>,
    /// Time in which the region was available and whose fate is known: what `still_available_1h` rests on.
    pub counted_s: f64,
}

impl Finding for AvailabilityByHour {}

/// Rate of owners' returns in one hour of the week ([`crate::findings::Reclaims`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ReclaimsByHour {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// 1 is Monday, 7 Sunday.
    pub weekday: i64,
    /// 0 to 23.
    pub hour: i64,
    /// Returns in that hour, over hosts and weeks.
    pub returns: i64,
    /// Idle time seen in that hour, likewise.
    pub idle_hours_s: f64,
    /// Returns per hour of that idle time; absent without any.
    pub per_idle_hour: Option<f64>,
}

impl Finding for ReclaimsByHour {}
