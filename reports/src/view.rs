//! View: the findings on which a part of the page is based, of all hosts or of one host.

use crate::clock::Clock;
use crate::names::Names;
use crate::options::{Site, Span};
use crate::page::table::Cell;
use gleaner_schemas::findings::{Category, Findings, HostMemory, HostSummary, MemoryPoint};
use std::collections::HashMap;

/// Findings on all hosts or on one host, and the settings for showing them.
pub(crate) struct View<'a> {
    pub findings: &'a Findings,
    /// Findings of the week before, if known.
    pub before: Option<&'a Findings>,
    pub clock: &'a Clock,
    /// Requested time; absent if all records were requested.
    pub span: Option<&'a Span>,
    /// Prefix of the ids of this part's elements, so that ids are unique on the page.
    pub prefix: String,
    /// Names of the hosts.
    pub names: Names<'a>,
    /// True on the page of a fleet whose hosts have pages in the pages of their sites.
    pub has_sites: bool,
}

/// Mean and minimum memory of one host, or their sums over several hosts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Memory {
    /// Physical memory at the last sample.
    pub physical_bytes: f64,
    /// Mean over samples of the available share of physical memory, for one host; absent if unknown, and for
    /// several hosts.
    pub mean_available_share: Option<f64>,
    /// Mean by category, in the order of [`Category::ALL`]; absent if no sample has the category.
    pub mean_bytes: [Option<f64>; 8],
    pub least_available_bytes: f64,
    /// Maximum memory that was not available at a sample; for several hosts, the sum of the hosts' maxima.
    pub most_used_bytes: f64,
    /// Mean harvestable memory; absent if it is unknown for at least one of the hosts.
    pub harvestable_bytes: Option<f64>,
    pub least_harvestable_bytes: Option<f64>,
}

impl Memory {
    pub(crate) fn available_bytes(&self) -> f64 {
        self.mean_bytes[7].unwrap_or(0.0)
    }

    pub(crate) fn available_share(&self) -> f64 {
        match self.mean_available_share {
            Some(share) => share,
            None if self.physical_bytes > 0.0 => self.available_bytes() / self.physical_bytes,
            None => 0.0,
        }
    }

    /// Mean physical memory, which differs from that at the last sample if memory was added or removed.
    pub(crate) fn mean_physical_bytes(&self) -> f64 {
        match self.mean_available_share {
            Some(share) => self.available_bytes() / share,
            None => self.physical_bytes,
        }
    }

    /// Returns all figures multiplied by `part`.
    pub(crate) fn times(&self, part: f64) -> Self {
        Self {
            physical_bytes: self.physical_bytes * part,
            mean_available_share: self.mean_available_share,
            mean_bytes: self.mean_bytes.map(|b| b.map(|b| b * part)),
            least_available_bytes: self.least_available_bytes * part,
            most_used_bytes: self.most_used_bytes * part,
            harvestable_bytes: self.harvestable_bytes.map(|b| b * part),
            least_harvestable_bytes: self.least_harvestable_bytes.map(|b| b * part),
        }
    }

    pub(crate) fn add(mut self, other: &Self) -> Self {
        self.physical_bytes += other.physical_bytes;
        self.mean_available_share = None;
        for (sum, more) in self.mean_bytes.iter_mut().zip(other.mean_bytes) {
            *sum = match (*sum, more) {
                (Some(a), Some(b)) => Some(a + b),
                (a, b) => a.or(b),
            };
        }
        self.least_available_bytes += other.least_available_bytes;
        self.most_used_bytes += other.most_used_bytes;
        self.harvestable_bytes = both(self.harvestable_bytes, other.harvestable_bytes);
        self.least_harvestable_bytes =
            both(self.least_harvestable_bytes, other.least_harvestable_bytes);
        self
    }
}

fn both(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(a? + b?)
}

/// Bytes of one category at one point.
pub(crate) fn category_bytes(point: &MemoryPoint, category: Category) -> Option<f64> {
    match category {
        Category::StaticKernel => point.static_kernel_bytes,
        Category::Balloon => point.balloon_bytes,
        Category::DynamicKernel => point.dynamic_kernel_bytes,
        Category::Reserve => point.reserve_bytes,
        Category::Process => point.process_bytes,
        Category::FileCache => point.file_cache_bytes,
        Category::Guest => point.guest_bytes,
        Category::Available => Some(point.available_bytes),
    }
}

impl<'a> View<'a> {
    /// View of all hosts.
    pub(crate) fn new(
        findings: &'a Findings,
        before: Option<&'a Findings>,
        clock: &'a Clock,
        span: Option<&'a Span>,
    ) -> Self {
        Self {
            findings,
            before,
            clock,
            span,
            prefix: String::new(),
            names: Names::of(&findings.hosts),
            has_sites: false,
        }
    }

    /// This view of a fleet's hosts, with links to the pages of their sites.
    pub(crate) fn in_sites(self, sites: &[Site]) -> Self {
        Self {
            names: Names::in_sites(&self.findings.hosts, sites),
            has_sites: true,
            ..self
        }
    }

    /// The host, if there is exactly one.
    pub(crate) fn only_host(&self) -> Option<&HostSummary> {
        match self.findings.hosts.as_slice() {
            [host] => Some(host),
            _ => None,
        }
    }

    /// Name of a host; its id if the host is not listed.
    pub(crate) fn host_name(&self, id: &str) -> String {
        self.names.get(id).map_or(id, |host| host.name).to_owned()
    }

    /// A cell with a host's name, linked to the host's page.
    pub(crate) fn host_cell(&self, id: &str) -> Cell {
        let Some(host) = self.names.get(id) else {
            return Cell::text(id);
        };
        match &host.address {
            Some(address) => Cell::text(host.name).link(address),
            None => Cell::text(host.name),
        }
    }

    /// The analysis' reason for a missing measure; absent if it gives none.
    pub(crate) fn reason_without(&self, measure: &str) -> Option<&str> {
        self.findings
            .missing_measures
            .iter()
            .find(|n| n.measure == measure)
            .map(|n| n.reason.as_str())
    }

    /// Memory of one host over its whole trace; absent without samples.
    pub(crate) fn memory_of(&self, host: &HostSummary) -> Option<Memory> {
        memories(self.findings, std::slice::from_ref(host)).remove(host.host_id.as_str())
    }

    /// Memory of each host that has samples, by id, computed in one pass over the records.
    pub(crate) fn memories(&self) -> HashMap<&'a str, Memory> {
        memories(self.findings, &self.findings.hosts)
    }

    /// Sum of the memory of all hosts that have samples.
    pub(crate) fn memory(&self) -> Option<Memory> {
        let memories = self.memories();
        self.findings
            .hosts
            .iter()
            .filter_map(|host| memories.get(host.host_id.as_str()).cloned())
            .reduce(|sum, next| sum.add(&next))
    }

    /// View of the week before; absent if that week is unknown or has no samples.
    pub(crate) fn earlier(&self) -> Option<View<'a>> {
        let findings = self.before.filter(|b| !b.hosts.is_empty())?;
        Some(View {
            prefix: self.prefix.clone(),
            ..View::new(findings, None, self.clock, None)
        })
    }

    /// Time zone of the hours of the week, for titles: ` (Europe/Berlin time)`.
    pub(crate) fn hours_zone(&self) -> String {
        match self.findings.parameters.time_zone.as_str() {
            "" => String::new(),
            zone => format!(" ({zone} time)"),
        }
    }

    /// Label of the time before: `the week before`.
    pub(crate) fn before_label(&self) -> &str {
        self.span
            .map_or("the time before", |span| span.before_label.as_str())
    }

    /// Times of the first and the last sample of all hosts.
    pub(crate) fn span_ms(&self) -> Option<(i64, i64)> {
        let hosts = &self.findings.hosts;
        let from = hosts.iter().map(|h| h.from_time_ms).min()?;
        let to = hosts.iter().map(|h| h.to_time_ms).max()?;
        Some((from, to))
    }

    /// Longest traced time of any single host.
    pub(crate) fn longest_trace_s(&self) -> f64 {
        let hosts = &self.findings.hosts;
        let length_ms = |h: &HostSummary| h.to_time_ms.saturating_sub(h.from_time_ms);
        hosts.iter().map(length_ms).max().unwrap_or(0) as f64 / 1000.0
    }
}

/// Memory of hosts by id: from the analysis' summary if present, otherwise from the points over time.
fn memories<'a>(findings: &'a Findings, hosts: &'a [HostSummary]) -> HashMap<&'a str, Memory> {
    let mut tallies: HashMap<&str, Tally> = hosts
        .iter()
        .map(|h| (h.host_id.as_str(), Tally::default()))
        .collect();
    for row in &findings.memory_by_host {
        if let Some(tally) = tallies.get_mut(row.host_id.as_str()) {
            tally.count_summary(row);
        }
    }
    for point in &findings.memory_over_time {
        if let Some(tally) = tallies.get_mut(point.host_id.as_str()) {
            tally.count_point(point);
        }
    }
    let present = hosts.iter().filter_map(|host| {
        let tally = tallies.remove(host.host_id.as_str())?;
        Some((
            host.host_id.as_str(),
            tally.memory(host.physical_bytes as f64)?,
        ))
    });
    present.collect()
}

/// Sums of one host's memory.
#[derive(Default)]
struct Tally {
    /// True if the values come from a summary; points over time are then ignored.
    is_summary: bool,
    mean: [Mean; 8],
    mean_available_share: Option<f64>,
    harvestable: Mean,
    least_available_bytes: Option<i64>,
    most_used_bytes: Option<i64>,
    least_harvestable_bytes: Option<i64>,
}

/// A mean over samples; each value may stand for several samples.
#[derive(Clone, Copy, Default)]
struct Mean {
    samples: f64,
    sum: f64,
}

impl Mean {
    fn count(&mut self, samples: i64, value: Option<f64>) {
        if let Some(value) = value {
            self.samples += samples as f64;
            self.sum += samples as f64 * value;
        }
    }

    fn value(self) -> Option<f64> {
        (self.samples > 0.0).then(|| self.sum / self.samples)
    }
}

impl Tally {
    fn count_summary(&mut self, row: &HostMemory) {
        let is = |c: &Category| c.column().strip_suffix("_bytes") == Some(row.category.as_str());
        if let Some(category) = Category::ALL.into_iter().find(is) {
            self.mean[category as usize].count(row.samples_count, Some(row.mean_bytes));
            if category == Category::Available {
                self.is_summary = true;
                self.mean_available_share = Some(row.mean_share).filter(|share| *share > 0.0);
                self.least_available_bytes = Some(row.min_bytes);
            }
        } else if row.category == "used" {
            self.most_used_bytes = Some(row.max_bytes);
        } else if row.category == "harvestable" {
            self.harvestable
                .count(row.samples_count, Some(row.mean_bytes));
            self.least_harvestable_bytes = Some(row.min_bytes);
        }
    }

    fn count_point(&mut self, point: &MemoryPoint) {
        if self.is_summary {
            return;
        }
        for category in Category::ALL {
            let value = category_bytes(point, category);
            self.mean[category as usize].count(point.samples_count, value);
        }
        self.harvestable
            .count(point.samples_count, point.harvestable_bytes);
        let least = |a: Option<i64>, b: Option<i64>| a.into_iter().chain(b).min();
        self.least_available_bytes =
            least(self.least_available_bytes, Some(point.min_available_bytes));
        self.least_harvestable_bytes =
            least(self.least_harvestable_bytes, point.min_harvestable_bytes);
    }

    fn memory(self, physical_bytes: f64) -> Option<Memory> {
        let least_available_bytes = self.least_available_bytes? as f64;
        let used_bytes = self.most_used_bytes.map(|bytes| bytes as f64);
        Some(Memory {
            physical_bytes,
            mean_available_share: self.mean_available_share,
            mean_bytes: self.mean.map(Mean::value),
            least_available_bytes,
            // If the findings lack the maximum in use, this difference is correct unless memory was added or
            // removed.
            most_used_bytes: used_bytes
                .unwrap_or((physical_bytes - least_available_bytes).max(0.0)),
            harvestable_bytes: self.harvestable.value(),
            least_harvestable_bytes: self.least_harvestable_bytes.map(|b| b as f64),
        })
    }
}

/// Calls a function with a view of these findings, in UTC.
#[cfg(test)]
pub(crate) fn ask<T>(
    findings: &Findings,
    before: Option<&Findings>,
    question: impl Fn(&View) -> T,
) -> T {
    let clock = Clock::new("UTC").unwrap();
    question(&View::new(findings, before, &clock, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(host: &str, samples_count: i64, available: i64) -> MemoryPoint {
        MemoryPoint {
            host_id: host.into(),
            samples_count,
            available_bytes: available as f64,
            min_available_bytes: available,
            ..MemoryPoint::default()
        }
    }

    #[test]
    fn a_host_s_summary_comes_before_its_points_and_a_host_without_one_has_its_points() {
        let host = |host: &str| HostSummary {
            host_id: host.into(),
            physical_bytes: 100,
            ..HostSummary::default()
        };
        let findings = Findings {
            hosts: vec![host("a"), host("b"), host("c")],
            memory_by_host: vec![
                HostMemory {
                    host_id: "a".into(),
                    category: "available".into(),
                    samples_count: 10,
                    mean_bytes: 70.0,
                    min_bytes: 5,
                    ..HostMemory::default()
                },
                // The host has 100 bytes now, but had only 30 when 5 were available. It never used more than
                // 40.
                HostMemory {
                    host_id: "a".into(),
                    category: "used".into(),
                    max_bytes: 40,
                    ..HostMemory::default()
                },
            ],
            memory_over_time: vec![point("a", 10, 60), point("b", 3, 40), point("b", 1, 80)],
            ..Findings::default()
        };
        let clock = Clock::new("UTC").unwrap();
        let view = View::new(&findings, None, &clock, None);
        let memories = view.memories();
        let said = |host: &str| {
            let memory = &memories[host];
            (memory.available_bytes(), memory.least_available_bytes)
        };
        assert_eq!((said("a"), said("b")), ((70.0, 5.0), (50.0, 40.0)));
        let used = |host: &str| memories[host].most_used_bytes;
        assert_eq!((used("a"), used("b")), (40.0, 60.0));
        assert!(!memories.contains_key("c"));
        // The share is of the present memory, unless the analysis gives the mean share of the memory at each
        // sample.
        assert_eq!(memories["a"].available_share(), 0.7);
        let mut grown = findings.clone();
        grown.memory_by_host[0].mean_share = 0.875;
        let grown = View::new(&grown, None, &clock, None).memories();
        let memory = &grown["a"];
        assert_eq!(
            (memory.available_share(), memory.mean_physical_bytes()),
            (0.875, 80.0)
        );
        assert_eq!(
            view.memory_of(&findings.hosts[1]),
            memories.get("b").cloned()
        );
        assert_eq!(view.memory().unwrap().available_bytes(), 120.0);
    }
}
