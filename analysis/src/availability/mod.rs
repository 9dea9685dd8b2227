//! Available memory: by category, over time, below thresholds, and how long it lasts.

pub(crate) mod dip_hosts;
pub(crate) mod dips;
pub(crate) mod hours;
pub(crate) mod notions;
pub(crate) mod over_time;
pub(crate) mod periods;
pub(crate) mod usage;
pub(crate) mod worst_dips;
