//! Covered share of the requested time for each host, and the reasons for missing time.

use crate::imported::Recorders;
use crate::view::View;
use gleaner_schemas::findings::{Gap, HostSummary};
use std::collections::{BTreeMap, HashMap};

/// Maximum share of the time in gaps, other than sleep and power-off, at which a host's data are trusted.
pub(super) const UNKNOWN_LIMIT: f64 = 0.1;
/// Maximum share of the time before the first and after the last sample at which a host's data are trusted. A
/// host that is off at the weekend, a third of the week, is still trusted.
pub(super) const OUTSIDE_LIMIT: f64 = 0.5;
/// Share of the requested time: a host counts as silent if its last sample is further than this from the end.
const SILENT_SHARE: f64 = 0.02;

/// Division of the requested time for one host, in seconds.
#[derive(Clone, Debug)]
pub(super) struct HostTime<'a> {
    pub host: &'a HostSummary,
    /// Requested time, in seconds.
    pub asked_s: f64,
    pub covered_s: f64,
    /// Time in which the host was asleep or switched off.
    pub off_s: f64,
    /// Time in which the agent did not run, or ran late.
    pub agent_s: f64,
    /// Time in gaps without a known cause.
    pub unknown_s: f64,
    /// Time before the first sample and after the last; its cause is known only once the host sends samples
    /// again.
    pub outside_s: f64,
    /// Time of the last sample, if the host is silent: if that sample was long before the end.
    pub silent_since_ms: Option<i64>,
}

impl HostTime<'_> {
    pub(super) fn covered_share(&self) -> f64 {
        share(self.covered_s, self.asked_s)
    }

    /// A part's share of the requested time.
    pub(super) fn share(&self, part_s: f64) -> f64 {
        share(part_s, self.asked_s)
    }

    pub(super) fn is_trusted(&self) -> bool {
        self.share(self.unknown_s + self.agent_s) <= UNKNOWN_LIMIT
            && self.share(self.outside_s) <= OUTSIDE_LIMIT
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        (part / whole).clamp(0.0, 1.0)
    } else {
        1.0
    }
}

/// Kind of a gap's cause.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Cause {
    Off,
    Agent,
    Unknown,
}

pub(super) fn cause(gap: &Gap) -> Cause {
    match gap.cause.as_str() {
        "sleep" | "boot" => Cause::Off,
        "stopped" | "late" => Cause::Agent,
        _ => Cause::Unknown,
    }
}

/// A cause in words, for hosts recorded by agents or by other programs.
pub(super) fn cause_label(cause: &str, recorders: Recorders) -> String {
    match cause {
        "sleep" => "the host slept".into(),
        "boot" => "the host was off".into(),
        "stopped" => recorders
            .choose(
                "the agent was stopped",
                "the recording was stopped",
                "the agent or the recording was stopped",
            )
            .into(),
        "late" => "the agent took a sample late".into(),
        "clock_step" => "the clock was set".into(),
        "missing" => "not known".into(),
        other => other.replace('_', " "),
    }
}

/// The requested time; if none was requested, from the first to the last sample of any host.
pub(super) fn asked_ms(view: &View) -> Option<(i64, i64)> {
    let asked = view.span.map(|span| (span.from_ms, span.until_ms));
    asked.or(view.span_ms())
}

/// Times of all hosts, in the order of the hosts.
pub(super) fn times<'a>(view: &View<'a>) -> Vec<HostTime<'a>> {
    let Some((from_ms, until_ms)) = asked_ms(view) else {
        return Vec::new();
    };
    let mut gaps: HashMap<&str, Vec<&Gap>> = HashMap::new();
    for gap in &view.findings.gaps {
        gaps.entry(gap.host_id.as_str()).or_default().push(gap);
    }
    let seconds = |from: i64, until: i64| (until.saturating_sub(from)).max(0) as f64 / 1000.0;
    let asked_s = seconds(from_ms, until_ms);
    let of_host = |host: &'a HostSummary| {
        let seen_s = seconds(host.from_time_ms, host.to_time_ms);
        let missing = |wanted: Cause| -> f64 {
            let gaps = gaps.get(host.host_id.as_str()).into_iter().flatten();
            gaps.filter(|gap| cause(gap) == wanted)
                .fold(0.0, |sum, gap| sum + gap.duration_s)
        };
        // A sample covers the time to the next sample.
        let interval_s = host.sample_interval_s.unwrap_or(0.0);
        let ends = [
            seconds(from_ms, host.from_time_ms),
            seconds(host.to_time_ms, until_ms),
        ];
        let outside_s: f64 = ends.iter().map(|s| (s - interval_s).max(0.0)).sum();
        let silent = ends[1] > interval_s * 3.0 && ends[1] > asked_s * SILENT_SHARE;
        HostTime {
            host,
            asked_s,
            covered_s: (seen_s * host.coverage_share + (asked_s - seen_s - outside_s).max(0.0))
                .min(asked_s),
            off_s: missing(Cause::Off),
            agent_s: missing(Cause::Agent),
            unknown_s: missing(Cause::Unknown),
            outside_s,
            silent_since_ms: silent.then_some(host.to_time_ms),
        }
    };
    view.findings.hosts.iter().map(of_host).collect()
}

/// Counts gaps by cause: (cause, number of gaps, number of hosts with such a gap, total length in s).
pub(super) fn by_cause(gaps: &[Gap]) -> Vec<(&str, usize, usize, f64)> {
    let mut causes: BTreeMap<&str, (usize, BTreeMap<&str, ()>, f64)> = BTreeMap::new();
    for gap in gaps {
        let entry = causes.entry(gap.cause.as_str()).or_default();
        entry.0 += 1;
        entry.1.insert(gap.host_id.as_str(), ());
        entry.2 += gap.duration_s;
    }
    let mut causes: Vec<_> = causes
        .into_iter()
        .map(|(cause, (gaps, hosts, seconds))| (cause, gaps, hosts.len(), seconds))
        .collect();
    causes.sort_by(|a, b| b.3.total_cmp(&a.3));
    causes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::options::Span;
    use gleaner_schemas::findings::Findings;

    #[test]
    fn time_before_the_first_sample_and_after_the_last_counts_as_missing() {
        let host = |id: &str, from_s: i64, to_s: i64, coverage_share: f64| HostSummary {
            host_id: id.into(),
            from_time_ms: from_s * 1000,
            to_time_ms: to_s * 1000,
            coverage_share,
            sample_interval_s: Some(10.0),
            ..HostSummary::default()
        };
        let gap = |cause: &str, duration_s: f64| Gap {
            host_id: "slept".into(),
            from_time_ms: 0,
            to_time_ms: 0,
            duration_s,
            cause: cause.into(),
        };
        let findings = Findings {
            hosts: vec![
                host("whole", 5, 995, 1.0),
                host("slept", 0, 1000, 0.5),
                host("late", 600, 1000, 1.0),
                host("silent", 0, 400, 1.0),
            ],
            gaps: vec![gap("sleep", 450.0), gap("missing", 50.0)],
            ..Findings::default()
        };
        let clock = Clock::new("UTC").unwrap();
        let span = Span {
            label: "a time".into(),
            from_ms: 0,
            until_ms: 1_000_000,
            before_label: "before".into(),
        };
        let view = View::new(&findings, None, &clock, Some(&span));
        let times = times(&view);
        let told: Vec<(f64, f64, bool)> = times
            .iter()
            .map(|t| {
                (
                    t.covered_share(),
                    t.share(t.unknown_s + t.outside_s),
                    t.is_trusted(),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                (1.0, 0.0, true),
                (0.5, 0.05, true),
                (0.41, 0.59, false),
                (0.41, 0.59, false)
            ]
        );
        let silent: Vec<bool> = times.iter().map(|t| t.silent_since_ms.is_some()).collect();
        assert_eq!(silent, [false, false, false, true]);
    }
}
