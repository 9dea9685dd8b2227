//! Each host of the report, with observations and advice.

use super::advice::{Advice, Observations, SHORT_SHARE, pairs};
use crate::imported::has_sizes;
use crate::view::{Memory, View};
use crate::wording::{bytes, count, list, seconds, share, size};
use gleaner_schemas::findings::{Dip, DipProcess, HostSummary, WorstDip};
use std::collections::{HashMap, HashSet};

/// Maximum number of hosts that a reason names; further hosts are counted.
const MOST_NAMED: usize = 3;

/// A host with its advice.
pub(crate) struct Host<'a> {
    pub summary: &'a HostSummary,
    /// Memory of the host; absent without samples, like `seen`.
    pub memory: Option<Memory>,
    pub seen: Option<Observations>,
    /// Time of the least available memory, in ms.
    pub least_time_ms: Option<i64>,
    /// Number of sample intervals in which the host was short; absent if they were not counted.
    pub short_intervals: Option<i64>,
    /// Deepest dip in which the host was short.
    pub worst: Option<&'a WorstDip>,
    /// Programs active in that dip, largest first.
    pub ran: Vec<&'a DipProcess>,
    pub advice: Advice,
    /// Index of the host that could give this host memory, or indices of the hosts that could take memory
    /// from this one.
    pub partners: Vec<usize>,
}

/// All hosts, in the order of the findings. Takes time linear in the number of records.
pub(crate) fn hosts<'a>(view: &View<'a>) -> Vec<Host<'a>> {
    let findings = view.findings;
    let mut memories = view.memories();
    let mut dips: HashMap<&str, &Dip> = HashMap::new();
    for dip in &findings.dips {
        let known = dips.entry(dip.host_id.as_str()).or_insert(dip);
        if is_short(dip.threshold_share) {
            *known = dip;
        }
    }
    let worst: HashMap<&str, &WorstDip> = findings
        .worst_dips
        .iter()
        .filter(|d| is_short(d.threshold_share))
        .map(|d| (d.host_id.as_str(), d))
        .collect();
    let mut ran: HashMap<(&str, i64), Vec<&DipProcess>> = HashMap::new();
    for process in &findings.dip_processes {
        let key = (process.host_id.as_str(), process.time_ms);
        ran.entry(key).or_default().push(process);
    }
    let days = days(view);
    let host = |summary: &'a HostSummary| {
        let id = summary.host_id.as_str();
        let memory = memories.remove(id);
        let dip = dips.get(id).copied();
        let counted = dip.filter(|d| is_short(d.threshold_share));
        let worst = worst.get(id).copied();
        let never_short = memory
            .as_ref()
            .is_some_and(|m| m.least_available_bytes >= SHORT_SHARE * m.physical_bytes);
        let seen = memory.as_ref().map(|memory| {
            seen(
                view,
                summary,
                memory,
                counted.map(short_share).or(never_short.then_some(0.0)),
                days.get(id),
            )
        });
        let mut ran = worst
            .and_then(|w| ran.remove(&(id, w.min_time_ms)))
            .unwrap_or_default();
        ran.sort_by_key(|p| p.rank);
        Host {
            summary,
            memory,
            least_time_ms: dip.map(|d| d.min_time_ms),
            short_intervals: counted
                .map(|d| d.intervals_count)
                .or(never_short.then_some(0)),
            worst,
            ran,
            advice: seen.map_or(Advice::Watch, |s| s.advice()),
            seen,
            partners: Vec::new(),
        }
    };
    let mut hosts: Vec<Host> = findings.hosts.iter().map(host).collect();
    share_out(&mut hosts);
    hosts
}

fn is_short(threshold_share: Option<f64>) -> bool {
    threshold_share.is_some_and(|share| (share - SHORT_SHARE).abs() < 1e-9)
}

fn short_share(dip: &Dip) -> f64 {
    dip.intervals_count as f64 / dip.samples_count.max(1) as f64
}

/// Calendar days on which each host has samples.
fn days<'a>(view: &View<'a>) -> HashMap<&'a str, HashSet<String>> {
    let mut days: HashMap<&str, HashSet<String>> = HashMap::new();
    for point in &view.findings.memory_over_time {
        let of_host = days.entry(point.host_id.as_str()).or_default();
        of_host.insert(view.clock.day(point.time_ms));
    }
    days
}

fn seen(
    view: &View,
    host: &HostSummary,
    memory: &Memory,
    short_samples_share: Option<f64>,
    days: Option<&HashSet<String>>,
) -> Observations {
    let all_day = || {
        view.clock
            .day_parts(host.from_time_ms, host.to_time_ms)
            .len()
    };
    Observations {
        physical_bytes: memory.physical_bytes,
        least_available_bytes: memory.least_available_bytes,
        most_used_bytes: memory.most_used_bytes,
        short_samples_share,
        has_sizes: has_sizes(view, host),
        days: days.map_or_else(all_day, HashSet::len) as i64,
        traced_s: host.to_time_ms.saturating_sub(host.from_time_ms) as f64 / 1000.0
            * host.coverage_share,
    }
}

/// Pairs hosts that can spare memory with hosts that need it.
fn share_out(hosts: &mut [Host]) {
    let advices: Vec<Advice> = hosts.iter().map(|h| h.advice).collect();
    for (needs, gives) in pairs(&advices).into_iter().enumerate() {
        let Some(gives) = gives else { continue };
        hosts[needs].partners.push(gives);
        hosts[gives].partners.push(needs);
        if let Advice::Spare { bytes } = hosts[gives].advice {
            hosts[gives].advice = Advice::Move { bytes };
        }
    }
}

impl Host<'_> {
    /// Basis of the advice, in words.
    pub(crate) fn reason(&self, view: &View, hosts: &[Host]) -> String {
        let Some(seen) = &self.seen else {
            return "no samples".into();
        };
        let traced = seconds(seen.traced_s);
        let never = || {
            format!(
                "never used more than {} of its {} in {traced} of trace",
                share(seen.most_used_share()),
                size(self.summary.physical_bytes)
            )
        };
        let names: Vec<String> = self
            .partners
            .iter()
            .filter_map(|p| Some(hosts.get(*p)?.summary.host_name.clone()))
            .collect();
        match self.advice {
            Advice::Add { bytes: more } => {
                let from = match names.first() {
                    Some(name) => format!(", which {name} could spare"),
                    None => String::new(),
                };
                format!(
                    "{}; {} more would have been enough{from}",
                    self.short_words(view, seen),
                    bytes(more)
                )
            }
            Advice::Move { bytes: spare } => format!(
                "{}; up to {} could go to {}",
                never(),
                size(spare as i64),
                named(names)
            ),
            Advice::Spare { bytes: spare } => {
                format!("{}; {} could be lent", never(), size(spare as i64))
            }
            Advice::Keep if seen.short_samples_share.is_some_and(|s| s > 0.0) => format!(
                "less than {} available in only {} of samples",
                share(SHORT_SHARE),
                share(seen.short_samples_share.unwrap_or(0.0))
            ),
            Advice::Keep => format!(
                "used at most {} of its memory",
                share(seen.most_used_share())
            ),
            Advice::Watch if !seen.has_sizes => {
                "the trace has no sizes, so advice would have no basis".into()
            }
            Advice::Watch if seen.short_samples_share.is_none() => {
                "shortages were not counted".into()
            }
            Advice::Watch => format!(
                "traced for {traced} on {}: too short for advice",
                count(seen.days, "day")
            ),
        }
    }

    /// Words for a shortage: `less than 10 % of its memory available in 3.2 % of samples, at worst 0.4 GiB on
    /// Tue 17 Nov, 14:10 while code held 11 GiB`.
    fn short_words(&self, view: &View, seen: &Observations) -> String {
        // If several samples had the minimum, the words name the time of the worst dip, whose programs are
        // known.
        let worst = self.worst.map(|w| w.min_time_ms).or(self.least_time_ms);
        // The moment gets ordinary spaces, at which lines can break: cells are narrow.
        let moment = |t| view.clock.moment_to_minute(t).replace('\u{a0}', " ");
        let when = worst.map(|t| format!(" on {}", moment(t)));
        let program = self.ran.first().map(|p| {
            let held = bytes(p.bytes as f64);
            format!(" while {} held {held}", p.name)
        });
        format!(
            "less than {} of its memory available in {} of samples, at worst {}{}{}",
            share(SHORT_SHARE),
            share(seen.short_samples_share.unwrap_or(0.0)),
            bytes(seen.least_available_bytes),
            when.unwrap_or_default(),
            program.unwrap_or_default()
        )
    }
}

/// Names in words: `otter, heron and wren`, `otter, heron, wren and 4 others`.
pub(super) fn named(mut names: Vec<String>) -> String {
    let others = names.len().saturating_sub(MOST_NAMED) as i64;
    if others > 1 {
        names.truncate(MOST_NAMED);
        names.push(count(others, "other"));
    }
    list(&names)
}
