//! The owners: when away, what could be leased, and what leasing would cost them (Acharya & Setia, sections 2, 3.4
//! and Table 6).

use serde::{Deserialize, Serialize};

/// A time in which one host's owner was away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdlePeriod {
    /// Host id.
    pub host: String,
    /// Its start, backdated to the last activity seen.
    pub from_time_ms: i64,
    /// Its end.
    pub to_time_ms: i64,
    /// Length.
    pub duration_s: f64,
    /// Whether its start was cut by a gap or the trace's start.
    pub start_censored: bool,
    /// Whether its end was cut by a gap or the trace's end.
    pub end_censored: bool,
}

/// What one host could lease at its last sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quota {
    /// Host id.
    pub host: String,
    /// The sample.
    pub time_ms: i64,
    /// What could be leased now: the smaller of the two below when idle, else 0.
    pub quota_bytes: i64,
    /// The paper's recruited memory, were the host idle: total − in use − reserve − headroom.
    pub recruitable_bytes: i64,
    /// What could be taken without pushing the owner's pages out.
    pub harvestable_bytes: Option<i64>,
    /// Why the quota is what it is, in words.
    pub reason: String,
}

/// Whether the owner was away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnerState {
    /// Away: no activity, and a low load, for five minutes or more; from the last activity on.
    Idle,
    /// Between two absences.
    Busy,
}

/// How long owners are away, and how long there, over the hosts of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AbsenceLengths {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Away or there.
    pub state: OwnerState,
    /// Periods seen. A visit between two samples is one of no length.
    pub periods: i64,
    /// Of those, cut by a gap, an end of the trace or the loss of sight: in no figure but the last.
    pub censored: i64,
    /// Mean length of those seen from start to end; absent without any, as all below.
    pub mean_s: Option<f64>,
    /// Median.
    pub median_s: Option<f64>,
    /// A tenth lasts longer.
    pub p90_s: Option<f64>,
    /// One in a hundred lasts longer.
    pub p99_s: Option<f64>,
    /// Longest.
    pub max_s: Option<f64>,
    /// Kaplan-Meier mean, restricted to the longest length seen: counts what the cut periods at least lasted.
    pub restricted_mean_s: Option<f64>,
}

/// How often what was lent would be taken back: absences of at least the rule's five minutes that the owner or the
/// load ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reclaims {
    /// Host id; absent where hosts are pooled.
    pub host: Option<String>,
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Hosts that can tell.
    pub hosts_count: i64,
    /// Reclaims.
    pub reclaims: i64,
    /// Time in which it could be told whether the owner was away, of all hosts together.
    pub observed_days: f64,
    /// Reclaims per host and day of that time.
    pub reclaims_per_day: f64,
}

/// Page cache of files that are used again soon, by lookahead, over the hosts of one class: in a busy period the files
/// accessed anywhere in it, in an idle one those accessed in it or in the busy period that follows. The paper found its
/// mean and one deviation to be within 15 % of memory, which is its headroom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveFileCache {
    /// Class by memory size, or `all`.
    pub size_class: String,
    /// Hosts that have it.
    pub hosts_count: i64,
    /// Samples that have it.
    pub samples_count: i64,
    /// Of those, with less to look at than their whole period and the next: a gap, an end of the trace or a loss of
    /// sight cut it, and the figure is a lower bound.
    pub cut_samples_count: i64,
    /// Mean over samples.
    pub mean_bytes: f64,
    /// Standard deviation over samples (n − 1); absent with one sample.
    pub sd_bytes: Option<f64>,
    /// Median.
    pub median_bytes: f64,
    /// Largest.
    pub max_bytes: i64,
    /// Mean share of physical memory.
    pub mean_share: f64,
    /// Standard deviation of the shares.
    pub sd_share: Option<f64>,
    /// Both together: the paper's check.
    pub mean_plus_sd_share: Option<f64>,
    /// One sample in a hundred has a larger share.
    pub p99_share: f64,
    /// Share of the samples in which it was within the headroom.
    pub within_headroom_share: f64,
}
