//! Memory of all hosts together: from the cells of time if the analysis compared the hosts over time,
//! otherwise the sum of the hosts' means.

use crate::view::{Memory, View};
use gleaner_schemas::findings::{ClusterAvailable, ClusterPoint, Findings, HostSummary, Scope};

/// Means over time of the memory of all hosts that were on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fleet {
    pub physical_bytes: f64,
    pub available_bytes: f64,
    pub available_share: f64,
    /// Bytes available in at least 95 of 100 stretches of time; absent if the trace is too short.
    pub dependable_bytes: Option<f64>,
    /// Harvestable bytes; absent if they are unknown on every host.
    pub harvestable_bytes: Option<f64>,
    /// Available bytes on idle hosts; absent if idle times are unknown.
    pub idle_bytes: Option<f64>,
    /// Mean number of hosts on at the same time; absent if the hosts were not compared over time.
    pub hosts_on_count: Option<f64>,
}

impl Fleet {
    /// Returns the means of all hosts; absent without samples.
    pub(crate) fn of(view: &View) -> Option<Self> {
        let memory = while_on(view)?;
        let points = &view.findings.cluster_over_time;
        let together = available(view.findings, Scope::All);
        let (available_bytes, available_share) = match together {
            Some(cells) => (cells.mean_bytes, cells.share_of_physical),
            None => (memory.available_bytes(), memory.available_share()),
        };
        let physical_bytes = match together {
            Some(cells) if cells.share_of_physical > 0.0 => {
                cells.mean_bytes / cells.share_of_physical
            }
            _ => memory.physical_bytes,
        };
        // The means above exclude some stretches for which harvestable memory is known. Therefore the share
        // of harvestable in available memory is used, not the mean of harvestable memory.
        let harvestable_share = mean(points, |p| p.harvestable_bytes)
            .zip(mean(points, |p| Some(p.available_bytes)))
            .or(memory.harvestable_bytes.zip(Some(memory.available_bytes())))
            .map(|(harvestable, available)| harvestable / available.max(1.0));
        Some(Self {
            physical_bytes,
            available_bytes,
            available_share,
            dependable_bytes: together.map(|cells| cells.p5_bytes as f64),
            harvestable_bytes: harvestable_share.map(|share| share * available_bytes),
            idle_bytes: together
                .and_then(|_| available(view.findings, Scope::Idle))
                .map(|cells| cells.mean_bytes.min(available_bytes)),
            hosts_on_count: together.and_then(|_| mean(points, |p| Some(p.hosts_seen_count))),
        })
    }

    /// Available bytes on hosts in use.
    pub(crate) fn in_use_bytes(&self) -> Option<f64> {
        self.idle_bytes.map(|idle| self.available_bytes - idle)
    }
}

/// Distribution of available memory over stretches of time.
pub(crate) fn available(findings: &Findings, scope: Scope) -> Option<&ClusterAvailable> {
    let mut all = findings.cluster_available.iter();
    all.find(|a| a.scope == scope && a.cells_count > 0)
}

/// Minimum share of the usual number of hosts: in a stretch with fewer hosts, data may be missing.
const HOLE_SHARE: f64 = 0.8;

/// The stretch with the least available memory.
pub(crate) struct LeastStretch<'a> {
    pub point: &'a ClusterPoint,
    /// Words for a sentence if stretches with few hosts are excluded, otherwise empty: ` (times with few
    /// hosts excluded)`.
    pub caution: &'static str,
}

/// Returns the stretch with the least available memory, ignoring stretches with fewer hosts than usual, in
/// which data may be missing.
pub(crate) fn least(points: &[ClusterPoint]) -> Option<LeastStretch<'_>> {
    let mut seen: Vec<f64> = points.iter().map(|p| p.hosts_seen_count).collect();
    seen.sort_by(f64::total_cmp);
    let usual = *seen.get(seen.len() / 2)?;
    let is_whole = |p: &&ClusterPoint| p.hosts_seen_count >= HOLE_SHARE * usual;
    let point = points
        .iter()
        .filter(is_whole)
        .min_by_key(|p| p.min_available_bytes)?;
    let less = |p: &ClusterPoint| p.min_available_bytes < point.min_available_bytes;
    Some(LeastStretch {
        point,
        caution: match points.iter().any(less) {
            true => " (times with few hosts excluded)",
            false => "",
        },
    })
}

/// Mean of a value over the points that have it.
pub(crate) fn mean(
    points: &[ClusterPoint],
    value: impl Fn(&ClusterPoint) -> Option<f64>,
) -> Option<f64> {
    let known = points
        .iter()
        .filter_map(|p| Some((p.cells_count as f64, value(p)?)));
    let (cells, sum) = known.fold((0.0, 0.0), |(cells, sum), (n, value)| {
        (cells + n, sum + n * value)
    });
    (cells > 0.0).then(|| sum / cells)
}

/// Mean over time of the memory of all hosts that were on. It is the sum of the hosts' memory, each host
/// weighted by the share of the time in which it was on.
pub(crate) fn while_on(view: &View) -> Option<Memory> {
    let (from, to) = view.span_ms()?;
    let span_s = to.saturating_sub(from) as f64 / 1000.0;
    let memories = view.memories();
    let part = |host: &HostSummary| {
        let seen_s = host.to_time_ms.saturating_sub(host.from_time_ms) as f64 / 1000.0;
        // A sample stands for the interval that follows it.
        let covered_s = seen_s * host.coverage_share + host.sample_interval_s.unwrap_or(0.0);
        if span_s > 0.0 {
            (covered_s / span_s).min(1.0)
        } else {
            1.0
        }
    };
    let hosts = view.findings.hosts.iter();
    let parts = hosts.filter_map(|h| Some(memories.get(h.host_id.as_str())?.times(part(h))));
    let sum = parts.reduce(|sum, next| sum.add(&next))?;
    match sum.physical_bytes > 0.0 {
        true => Some(sum),
        false => view.memory(),
    }
}

/// Splits the stretches into runs without a gap.
pub(crate) fn runs(points: &[ClusterPoint]) -> Vec<&[ClusterPoint]> {
    points.chunk_by(|_, next| !next.is_after_gap).collect()
}

/// Points of the week before, and the time that is added to theirs for drawing, so that the Mondays of both
/// weeks coincide.
pub(crate) fn earlier_points<'a>(view: &View<'a>) -> Option<(&'a [ClusterPoint], i64)> {
    let before = view.before?;
    let points = before.cluster_over_time.as_slice();
    let first = points.first()?;
    let from_ms = |findings: &Findings| findings.parameters.from_time_ms;
    let shift = match (from_ms(view.findings), from_ms(before), view.span) {
        (Some(now), Some(then), _) => now - then,
        (_, _, Some(span)) => span.until_ms - span.from_ms,
        _ => whole_days(view.findings.cluster_over_time.first()?.time_ms - first.time_ms),
    };
    Some((points, shift))
}

/// Rounds a length of time to whole days, since traces may begin at any time of the day.
fn whole_days(ms: i64) -> i64 {
    const DAY_MS: i64 = 86_400_000;
    (ms + DAY_MS / 2).div_euclid(DAY_MS) * DAY_MS
}
