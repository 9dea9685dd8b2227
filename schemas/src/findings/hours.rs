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
    /// Day of the week: 1 is Monday, 7 Sunday (ISO 8601).
    pub weekday: i64,
    /// Hour of the day, 0 to 23.
    pub hour: i64,
    /// Name of the category: `kernel`, `process`, `file_cache`, `available`, `harvestable`; also
    /// `live_file_cache` and `available_paper`, which the paper's lookahead computes.
    pub category: String,
    /// Samples of that hour that have the category.
    pub samples_count: i64,
    /// Mean over those samples.
    pub mean_bytes: f64,
    /// Minimum over those samples.
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
    /// Day of the week: 1 is Monday, 7 Sunday.
    pub weekday: i64,
    /// Hour of the day, 0 to 23.
    pub hour: i64,
    /// Threshold in bytes; absent where it is relative.
    pub threshold_bytes: Option<i64>,
    /// Threshold as a share of each host's physical memory; absent where it is absolute.
    pub threshold_share: Option<f64>,
    /// Sample intervals with less memory available than the threshold.
    pub intervals_count: i64,
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
    /// Day of the week: 1 is Monday, 7 Sunday.
    pub weekday: i64,
    /// Hour of the day, 0 to 23.
    pub hour: i64,
    /// Samples taken in that hour with known idleness.
    pub samples_count: i64,
    /// Share of those samples that lie in an idle period.
    pub idle_share: f64,
}

impl Finding for IdleByHour {}

/// Availability of a region in one hour of the week, and its odds for a horizon of one hour. At most three
/// region sizes: the smallest, the middle and the largest that a host of the class could provide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct AvailabilityByHour {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Scope of the figures: the whole time or only idle periods.
    pub scope: Scope,
    /// Size of the region.
    pub region_bytes: i64,
    /// Day of the week: 1 is Monday, 7 Sunday.
    pub weekday: i64,
    /// Hour of the day, 0 to 23.
    pub hour: i64,
    /// Share of the covered time in that hour in which the region was available. In scope `idle` the owner
    /// must be away as well, and only hosts with known idleness count.
    pub available_share: f64,
    /// Probability that a region available at an instant of that hour remains available throughout the next
    /// hour, as for [`crate::findings::AvailabilityOdds`]; absent where no instant could be followed that
    /// long.
    pub available_1h_probability: Option<f64>,
    /// Time in which the region was available and its fate is known: the base of `available_1h_probability`.
    pub counted_s: f64,
}

impl Finding for AvailabilityByHour {}

/// Rate of owners' returns in one hour of the week ([`crate::findings::Reclaims`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ReclaimsByHour {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Day of the week: 1 is Monday, 7 Sunday.
    pub weekday: i64,
    /// Hour of the day, 0 to 23.
    pub hour: i64,
    /// Returns in that hour, over hosts and weeks.
    pub returns_count: i64,
    /// Idle time observed in that hour, over hosts and weeks.
    pub idle_hours_s: f64,
    /// Returns per hour of that idle time; absent without idle time.
    pub per_idle_hour: Option<f64>,
}

impl Finding for ReclaimsByHour {}
