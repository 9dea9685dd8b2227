//! Measures of an outcome: first the benefits of lending, then its costs.

use crate::dodo::{ClientOutcome, Counts, Outcome, Owners, Regions, SharedOutcome};

/// Unit of a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number without unit.
    Number,
    /// Part of a whole, where the whole is 1.
    Share,
    /// Number of bytes.
    Bytes,
}

/// A measure of an outcome.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Key in output for programs; it names the unit, if any.
    pub key: &'static str,
    /// Label for people.
    pub label: &'static str,
    /// Unit of the measure.
    pub unit: Unit,
    /// Meaning of the measure.
    pub meaning: &'static str,
    of: fn(&MeasuredOutcome<'_>) -> Option<f64>,
}

/// Figures of one outcome, either of a program's runs or of concurrent clients.
struct MeasuredOutcome<'a> {
    speedup: Option<f64>,
    ideal_speedup: Option<f64>,
    gain_share: Option<f64>,
    counts: &'a Counts,
    regions: &'a Regions,
    owners: &'a Owners,
}

/// All measures, in the order of the columns of result tables.
pub const MEASURES: [Measure; 12] = [
    Measure {
        key: "speedup",
        label: "speedup",
        unit: Unit::Number,
        meaning: "time of a run without remote memory, over its time on the cluster; of several clients the sums over those that ended",
        of: |o| o.speedup,
    },
    Measure {
        key: "ideal_speedup",
        label: "ideal",
        unit: Unit::Number,
        meaning: "the same with infinite remote memory that is never reclaimed, over a network that takes no time",
        of: |o| o.ideal_speedup,
    },
    Measure {
        key: "gain_share",
        label: "share of gain",
        unit: Unit::Share,
        meaning: "share of the possible gain: (speedup − 1) / (ideal − 1)",
        of: |o| o.gain_share,
    },
    Measure {
        key: "hit_share",
        label: "hit ratio",
        unit: Unit::Share,
        meaning: "of the requests that the client's own memory did not answer, those that hosts answered; writes always go to disk",
        of: |o| {
            let asked = o.counts.requests_count - o.counts.local_requests_count;
            (asked > 0).then(|| o.counts.remote_requests_count as f64 / asked as f64)
        },
    },
    Measure {
        key: "saved_from_disk_bytes",
        label: "saved from disk",
        unit: Unit::Bytes,
        meaning: "what hosts answered with in the place of disks",
        of: |o| Some(o.counts.remote_bytes as f64),
    },
    Measure {
        key: "disk_bytes",
        label: "from disk",
        unit: Unit::Bytes,
        meaning: "what disks read and wrote, whole regions that were stored on hosts included",
        of: |o| Some(o.counts.disk_bytes as f64),
    },
    Measure {
        key: "mean_leased_bytes",
        label: "lent",
        unit: Unit::Bytes,
        meaning: "what hosts lent, over time",
        of: |o| Some(o.regions.mean_leased_bytes),
    },
    Measure {
        key: "mean_quota_bytes",
        label: "quota",
        unit: Unit::Bytes,
        meaning: "what they could have lent, over time",
        of: |o| Some(o.regions.mean_quota_bytes),
    },
    Measure {
        key: "reclaims_per_host_day",
        label: "reclaims a host and day",
        unit: Unit::Number,
        meaning: "times that owner or load came back to a host that lent something",
        of: |o| Some(o.owners.reclaims_per_host_day),
    },
    Measure {
        key: "mean_memory_context_bytes",
        label: "memory context",
        unit: Unit::Bytes,
        meaning: "mean over reclaims of what would have to be paged in again; a footprint, not a delay",
        of: |o| o.owners.mean_memory_context_bytes,
    },
    Measure {
        key: "mean_upper_bound_bytes",
        label: "context at most",
        unit: Unit::Bytes,
        meaning: "mean of the memory context's loose upper bound",
        of: |o| o.owners.mean_upper_bound_bytes,
    },
    Measure {
        key: "owner_delay_s_per_host_day",
        label: "owner delay, s a host and day",
        unit: Unit::Number,
        meaning: "estimated, at most: seconds a host and day in which memory contexts are paged in again, piece by piece, each with a seek and half a turn",
        of: |o| o.owners.owner_delay_s_per_host_day,
    },
];

/// Value of each measure for one outcome.
pub(super) fn of(outcome: &Outcome) -> Vec<Option<f64>> {
    each(&MeasuredOutcome {
        speedup: Some(outcome.speedup),
        ideal_speedup: Some(outcome.ideal_speedup),
        gain_share: outcome.gain_share,
        counts: &outcome.counts,
        regions: &outcome.regions,
        owners: &outcome.owners,
    })
}

/// Value of each measure for concurrent clients.
pub(super) fn of_clients(outcome: &SharedOutcome) -> Vec<Option<f64>> {
    let ended = || outcome.clients.iter().filter(|c| c.end_ns.is_some());
    let sum = |ns: fn(&ClientOutcome) -> u64| ended().map(|c| ns(c) as f64).sum::<f64>();
    let baseline_ns = sum(|c| c.baseline_ns);
    let over = |ns: f64| (ns > 0.0).then(|| baseline_ns / ns);
    let speedup = over(sum(|c| c.end_ns.map_or(0, |end_ns| end_ns - c.begin_ns)));
    let ideal_speedup = over(sum(|c| c.ideal_ns));
    let gains = speedup.zip(ideal_speedup);
    let gains = gains.filter(|(_, ideal)| *ideal > 1.0);
    each(&MeasuredOutcome {
        speedup,
        ideal_speedup,
        gain_share: gains.map(|(speedup, ideal)| (speedup - 1.0) / (ideal - 1.0)),
        counts: &outcome.counts,
        regions: &outcome.regions,
        owners: &outcome.owners,
    })
}

fn each(seen: &MeasuredOutcome<'_>) -> Vec<Option<f64>> {
    MEASURES.iter().map(|m| (m.of)(seen)).collect()
}
