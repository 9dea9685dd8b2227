//! Times at which memory could be had on a host: the input of policy simulators.

use crate::findings::{EndCause, Scope};
use std::collections::BTreeSet;

/// Question that is put to every host.
#[derive(Clone, Debug, PartialEq)]
pub struct AvailabilityQuestion {
    /// Size of the region that is to be had.
    pub region_bytes: i64,
    /// Time that counts.
    pub scope: Scope,
    /// Shorter periods do not count; 0: all do that have a length.
    pub least_ms: i64,
    /// A host is idle after so long without activity and with a low load.
    pub idle_after_s: f64,
    /// The 5-minute load average that is not low any more.
    pub load_limit: f64,
    /// Share of physical memory that is never lent.
    pub headroom_share: f64,
    /// Hosts by id; `None`: all.
    pub hosts: Option<BTreeSet<String>>,
    /// Start of the requested time; `None`: no limit.
    pub from_ms: Option<i64>,
    /// End of the requested time, exclusive; `None`: no limit.
    pub until_ms: Option<i64>,
    /// True if each sample is requested, beside the periods.
    pub has_samples: bool,
}

/// The answer of one host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostAvailability {
    /// Id of the host.
    pub host: String,
    /// The host's name, or its id where it has none.
    pub host_name: String,
    /// Physical memory at its last sample.
    pub physical_bytes: i64,
    /// Logical CPUs, where known.
    pub cpus_count: Option<i64>,
    /// From its first sample.
    pub from_ms: i64,
    /// To its last.
    pub to_ms: i64,
    /// True if the scope is known: in idle time, if the owner could be seen. Otherwise there are no periods,
    /// which does not mean that nothing was available.
    pub is_told: bool,
    /// In order; one may begin where another ends, none overlap.
    pub periods: Vec<AvailablePeriod>,
    /// In the order of recording; none unless asked for.
    pub samples: Vec<AvailableSample>,
}

/// A time in which the region could be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvailablePeriod {
    /// Begin of the period.
    pub from_ms: i64,
    /// End: the first time at which it could not be had any more.
    pub to_ms: i64,
    /// True if it began then; false if it was found available when samples, or the sight of the owner, began.
    pub is_start_seen: bool,
    /// Cause of its end; `None` where it went on unseen.
    pub end: Option<EndCause>,
}

/// Facts of one sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AvailableSample {
    /// Time of the sample.
    pub time_ms: i64,
    /// True if nothing is known of the time between the sample before and this one.
    pub follows_gap: bool,
    /// Physical memory, in bytes.
    pub physical_bytes: i64,
    /// Physical memory less all that is in use.
    pub available_bytes: i64,
    /// MemAvailable less the headroom, where known.
    pub harvestable_bytes: Option<i64>,
    /// True if the idle rule called the host idle then; `None` if unknown.
    pub is_idle: Option<bool>,
    /// True if it lies in an idle period, which begins with the last activity and load: known only later.
    pub is_away: Option<bool>,
    /// Memory that could be lent by the paper, were the host idle; `None` where the trace does not say where memory
    /// went.
    pub recruitable_bytes: Option<i64>,
    /// Memory that the gentle policy would have lent then: 0 unless idle.
    pub quota_bytes: Option<i64>,
}
