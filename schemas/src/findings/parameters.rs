//! Parameters from which the figures are computed.

use super::{FindingList, MemoryPoint};
use serde::{Deserialize, Serialize};

/// Parameters of the analysis: every threshold from which the figures are computed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Parameters {
    /// Start of the analysed span, inclusive; absent: no limit. Periods that cross the start are cut there.
    pub from_time_ms: Option<i64>,
    /// End of the analysed span, exclusive; absent: no limit.
    pub until_time_ms: Option<i64>,
    /// Minimum length of availability periods; shorter ones are dropped (the paper: five minutes).
    pub minimum_period_s: f64,
    /// Time without activity of the owner after which a host is idle (the paper: five minutes).
    pub idle_after_s: f64,
    /// Load limit of idle hosts: the 5-minute load average must be below this limit for `idle_after_s`, too
    /// (the paper: 0.3).
    pub load_limit: f64,
    /// Share of physical memory that is never lent (the paper: 15 %).
    pub headroom_share: f64,
    /// Time after a return: processes active within it count for the memory context (the paper: 200 s).
    pub return_window_s: f64,
    /// Sizes of the regions whose availability is measured.
    pub region_bytes: Vec<i64>,
    /// Thresholds of the dips in bytes.
    pub dip_threshold_bytes: Vec<i64>,
    /// Thresholds of the dips as shares of each host's physical memory.
    pub dip_threshold_shares: Vec<f64>,
    /// Upper bounds of the classes by memory size; if empty: powers of two.
    pub size_class_bytes: Vec<i64>,
    /// Length of a cell of the time grid that all hosts share; 0: ten minutes, longer in datasets of many
    /// days.
    pub cluster_cell_s: f64,
    /// Time zone of the fleet's hours and weekdays, by its IANA name.
    pub time_zone: String,
    /// Number of resamples of the bootstrap over hosts; 0: no intervals.
    pub bootstrap_count: u32,
    /// Sizes of further forecast regions, as shares of each host's physical memory.
    pub region_shares: Vec<f64>,
    /// Maximum number of points of a survival curve; 0: all points.
    pub curve_points_count: u32,
    /// Keys of the findings to compute; if empty: all but `memory_over_time`, which is large. Findings that are
    /// computed along with them are included as well.
    pub measures: Vec<String>,
}

impl Parameters {
    /// Keys of the findings that are computed only if they are named: their records grow with the trace.
    pub const ONLY_IF_NAMED: [&'static str; 1] = [MemoryPoint::KEY];

    /// Returns true if any of these keys of the findings is requested.
    #[must_use]
    pub fn wants(&self, keys: &[&str]) -> bool {
        if self.measures.is_empty() {
            return keys.iter().any(|key| !Self::ONLY_IF_NAMED.contains(key));
        }
        self.measures.iter().any(|m| keys.contains(&m.as_str()))
    }
}

impl Default for Parameters {
    /// Returns the paper's parameters. Lists of sizes in bytes are empty: the analysis then chooses them by
    /// the hosts' memory.
    fn default() -> Self {
        Self {
            from_time_ms: None,
            until_time_ms: None,
            minimum_period_s: 300.0,
            idle_after_s: 300.0,
            load_limit: 0.3,
            headroom_share: 0.15,
            return_window_s: 200.0,
            region_bytes: Vec::new(),
            dip_threshold_bytes: Vec::new(),
            dip_threshold_shares: vec![0.05, 0.10, 0.25],
            size_class_bytes: Vec::new(),
            cluster_cell_s: 0.0,
            time_zone: "UTC".to_owned(),
            bootstrap_count: 1000,
            region_shares: vec![0.25, 0.5],
            measures: Vec::new(),
            curve_points_count: 60,
        }
    }
}
