//! What a part of the page is about: all hosts together, or one of them.

use crate::clock::Clock;
use crate::names::Names;
use crate::options::Span;
use crate::page::table::Cell;
use gleaner_schemas::findings::{Category, Findings, HostSummary, MemoryPoint};

/// Findings of all hosts or of one, and how to show them.
pub(crate) struct View<'a> {
    pub findings: &'a Findings,
    /// What was found in the week before, where that is known.
    pub before: Option<&'a Findings>,
    pub clock: &'a Clock,
    /// The time that was asked for; absent: all there is.
    pub span: Option<&'a Span>,
    /// Begins the ids of this part's elements: two parts of a page share none.
    pub prefix: String,
    /// What the hosts are called.
    pub names: Names<'a>,
}

/// Mean and least memory of one host, or their sums over several.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Memory {
    pub physical_bytes: f64,
    /// Mean by category, in the order of [`Category::ALL`]; absent where no sample has it.
    pub mean_bytes: [Option<f64>; 8],
    pub least_available_bytes: f64,
    /// Absent where one host or more does not know it.
    pub harvestable_bytes: Option<f64>,
    pub least_harvestable_bytes: Option<f64>,
}

impl Memory {
    pub(crate) fn available_bytes(&self) -> f64 {
        self.mean_bytes[7].unwrap_or(0.0)
    }

    pub(crate) fn available_share(&self) -> f64 {
        if self.physical_bytes > 0.0 {
            self.available_bytes() / self.physical_bytes
        } else {
            0.0
        }
    }

    fn add(mut self, other: &Self) -> Self {
        self.physical_bytes += other.physical_bytes;
        for (sum, more) in self.mean_bytes.iter_mut().zip(other.mean_bytes) {
            *sum = match (*sum, more) {
                (Some(a), Some(b)) => Some(a + b),
                (a, b) => a.or(b),
            };
        }
        self.least_available_bytes += other.least_available_bytes;
        self.harvestable_bytes = both(self.harvestable_bytes, other.harvestable_bytes);
        self.least_harvestable_bytes =
            both(self.least_harvestable_bytes, other.least_harvestable_bytes);
        self
    }
}

fn both(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(a? + b?)
}

/// One category of one point.
pub(crate) fn category_bytes(point: &MemoryPoint, category: Category) -> Option<f64> {
    match category {
        Category::StaticKernel => point.static_kernel_bytes,
        Category::Balloon => point.balloon_bytes,
        Category::DynamicKernel => point.dynamic_kernel_bytes,
        Category::Lotsfree => point.lotsfree_bytes,
        Category::Process => point.process_bytes,
        Category::FileCache => point.file_cache_bytes,
        Category::Guest => point.guest_bytes,
        Category::Available => Some(point.available_bytes),
    }
}

impl<'a> View<'a> {
    /// All hosts.
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
        }
    }

    /// The host, when there is exactly one.
    pub(crate) fn only_host(&self) -> Option<&HostSummary> {
        match self.findings.hosts.as_slice() {
            [host] => Some(host),
            _ => None,
        }
    }

    /// The name of a host; its id where the hosts do not list it.
    pub(crate) fn host_name(&self, id: &str) -> String {
        self.names.get(id).map_or(id, |host| host.name).to_owned()
    }

    /// A cell with a host's name that leads to its page.
    pub(crate) fn host_cell(&self, id: &str) -> Cell {
        match self.names.get(id) {
            Some(host) => Cell::text(host.name).link(&host.page),
            None => Cell::text(id),
        }
    }

    /// Why a measure is not there, where the analysis says.
    pub(crate) fn reason_without(&self, measure: &str) -> Option<&str> {
        self.findings
            .not_measured
            .iter()
            .find(|n| n.measure == measure)
            .map(|n| n.reason.as_str())
    }

    /// Memory of one host over its whole trace; absent without samples.
    pub(crate) fn memory_of(&self, host: &HostSummary) -> Option<Memory> {
        let points: Vec<&MemoryPoint> = self
            .findings
            .memory_over_time
            .iter()
            .filter(|p| p.host == host.host)
            .collect();
        let least_available = points.iter().map(|p| p.available_min_bytes).min()?;
        let mean_bytes = Category::ALL.map(|c| {
            weighted_mean(
                points
                    .iter()
                    .map(|p| (p.samples_count, category_bytes(p, c))),
            )
        });
        Some(Memory {
            physical_bytes: host.physical_bytes as f64,
            mean_bytes,
            least_available_bytes: least_available as f64,
            harvestable_bytes: weighted_mean(
                points
                    .iter()
                    .map(|p| (p.samples_count, p.harvestable_bytes)),
            ),
            least_harvestable_bytes: points
                .iter()
                .filter_map(|p| p.harvestable_min_bytes)
                .min()
                .map(|least| least as f64),
        })
    }

    /// Memory of all hosts that have samples, summed.
    pub(crate) fn memory(&self) -> Option<Memory> {
        self.findings
            .hosts
            .iter()
            .filter_map(|host| self.memory_of(host))
            .reduce(|sum, next| sum.add(&next))
    }

    /// What the time before is called: `the week before`.
    pub(crate) fn before_label(&self) -> &str {
        self.span
            .map_or("the time before", |span| span.before_label.as_str())
    }

    /// First and last sample of all hosts.
    pub(crate) fn span_ms(&self) -> Option<(i64, i64)> {
        let hosts = &self.findings.hosts;
        let from = hosts.iter().map(|h| h.from_time_ms).min()?;
        let to = hosts.iter().map(|h| h.to_time_ms).max()?;
        Some((from, to))
    }

    /// The longest time that any one host was traced.
    pub(crate) fn longest_trace_s(&self) -> f64 {
        let hosts = &self.findings.hosts;
        let length_ms = |h: &HostSummary| h.to_time_ms.saturating_sub(h.from_time_ms);
        hosts.iter().map(length_ms).max().unwrap_or(0) as f64 / 1000.0
    }
}

/// Mean over samples where each value stands for several; absent when none has one.
fn weighted_mean(values: impl Iterator<Item = (i64, Option<f64>)>) -> Option<f64> {
    let mut samples = 0.0;
    let mut sum = 0.0;
    for (count, value) in values {
        if let Some(value) = value {
            samples += count as f64;
            sum += count as f64 * value;
        }
    }
    (samples > 0.0).then(|| sum / samples)
}
