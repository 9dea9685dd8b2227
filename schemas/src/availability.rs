//! Times at which memory was available on a host: the input of policy simulators.

use crate::findings::{EndCause, Scope};
use std::collections::BTreeSet;

/// Question about the availability of memory, put to every host.
#[derive(Clone, Debug, PartialEq)]
pub struct AvailabilityQuestion {
    /// Size of the region that must be available.
    pub region_bytes: i64,
    /// Scope of the answer: the whole time, or only idle periods.
    pub scope: Scope,
    /// Minimum length of a period. With 0, every period longer than 0 counts.
    pub minimum_period_ms: i64,
    /// Time without activity, and with a low load, after which a host is idle.
    pub idle_after_s: f64,
    /// Limit below which the 5-minute load average counts as a low load.
    pub load_limit: f64,
    /// Share of physical memory that is never lent.
    pub headroom_share: f64,
    /// Ids of the hosts to include; `None`: all hosts.
    pub hosts: Option<BTreeSet<String>>,
    /// Start of the requested span; `None`: no limit.
    pub from_ms: Option<i64>,
    /// End of the requested span, exclusive; `None`: no limit.
    pub until_ms: Option<i64>,
    /// True if each sample is requested in addition to the periods.
    pub has_samples: bool,
}

/// The answer for one host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostAvailability {
    /// Id of the host.
    pub host_id: String,
    /// The host's name, or its id where it has none.
    pub host_name: String,
    /// Physical memory at the host's last sample.
    pub physical_bytes: i64,
    /// Number of logical CPUs, where known.
    pub cpus_count: Option<i64>,
    /// Time of the host's first sample.
    pub from_ms: i64,
    /// Time of the host's last sample.
    pub to_ms: i64,
    /// True if it is known which time belongs to the scope; scope `idle` requires that the owner could be
    /// observed. If false, `periods` is empty, though memory may have been available.
    pub is_told: bool,
    /// Periods in order of time; a period may begin where another ends, none overlap.
    pub periods: Vec<AvailablePeriod>,
    /// Samples in the order of recording; none unless requested.
    pub samples: Vec<AvailableSample>,
}

/// A time in which the region was available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvailablePeriod {
    /// Beginning of the period.
    pub from_ms: i64,
    /// End: the first time at which the region was no longer available.
    pub to_ms: i64,
    /// True if the region became available at `from_ms`; false if it was already available when samples, or
    /// the observation of the owner, began.
    pub is_start_known: bool,
    /// Cause of the period's end; `None` if the period had not ended when observation stopped.
    pub end: Option<EndCause>,
}

/// Figures of one sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AvailableSample {
    /// Time of the sample.
    pub time_ms: i64,
    /// True if nothing is known of the time between the previous sample and this one.
    pub follows_gap: bool,
    /// Physical memory, in bytes.
    pub physical_bytes: i64,
    /// Physical memory less all memory in use.
    pub available_bytes: i64,
    /// MemAvailable less the headroom, where known.
    pub harvestable_bytes: Option<i64>,
    /// True if the idle rule called the host idle at this sample; `None` if unknown.
    pub is_idle: Option<bool>,
    /// True if the sample lies in an idle period; `None` if unknown. An idle period begins at the last
    /// activity, before the idle rule calls the host idle. Whether a sample lies in one is therefore known
    /// only later.
    pub is_in_idle_period: Option<bool>,
    /// Quota of mode `paper` if the host were idle; `None` where the trace lacks the memory categories.
    pub paper_quota_bytes: Option<i64>,
    /// Memory that the gentle mode would have lent at this sample: 0 unless idle.
    pub quota_bytes: Option<i64>,
}
