//! The hosts, the coverage of each, and facts that could not be observed or measured.

use super::finding::{Finding, HostFields, ReportUse, TablePlace, printed};
use serde::{Deserialize, Serialize};

/// A host, and its coverage by samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct HostSummary {
    /// Id of the host.
    pub host_id: String,
    /// Name of the host.
    pub host_name: String,
    /// Class by memory size, e.g. `16-32 GiB`.
    pub size_class: String,
    /// Physical memory at the last sample.
    pub physical_bytes: i64,
    /// Number of logical CPUs.
    pub cpus_count: Option<i64>,
    /// Release of the kernel.
    pub kernel_release: Option<String>,
    /// Configured time between samples.
    pub sample_interval_s: Option<f64>,
    /// Number of samples.
    pub samples_count: i64,
    /// Time of the first sample.
    pub from_time_ms: i64,
    /// Time of the last sample.
    pub to_time_ms: i64,
    /// Share of the time from the first to the last sample that samples cover; the rest is gaps.
    pub coverage_share: f64,
    /// Share of the covered time in which the host was idle; absent where activity is unknown.
    pub idle_share: Option<f64>,
    /// Trace from which the host was imported; absent where an agent recorded it.
    #[serde(default)]
    pub source: Option<String>,
}

impl Finding for HostSummary {
    const PRINTED: Option<TablePlace> = printed(10, "Hosts");
    const PLAIN_TEXT: &'static [&'static str] = &["size_class", "kernel_release", "source"];

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields {
            name: Some(&mut self.host_name),
            ..HostFields::id(&mut self.host_id)
        }
    }
}

/// A trace of another program from which hosts were imported, and the meaning of its figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct TraceSource {
    /// Name of the source, as in [`HostSummary`].
    pub name: String,
    /// Number of hosts from this trace.
    pub hosts_count: i64,
    /// Meaning of available memory in this trace, as a sentence.
    pub available_meaning: String,
    /// Meaning of physical memory in this trace; absent where the trace does not state it.
    pub physical_meaning: Option<String>,
    /// True where the importer invents sizes because the trace has none: only shares are the trace's own.
    #[serde(default)]
    pub has_invented_sizes: bool,
    /// Columns that the trace fills; all other columns are absent.
    pub columns: Vec<TraceColumn>,
}

impl Finding for TraceSource {
    const PLAIN_TEXT: &'static [&'static str] = &[
        "name",
        "available_meaning",
        "physical_meaning",
        "table",
        "column",
        "origin",
    ];
}

impl TraceSource {
    /// Sentences that state the meaning of available and physical memory in this trace.
    #[must_use]
    pub fn meaning(&self) -> String {
        let physical = self.physical_meaning.as_deref();
        let physical = physical.map(|meaning| format!(" Physical memory is: {meaning}."));
        format!("{}{}", self.available_meaning, physical.unwrap_or_default())
    }

    /// Figure of the trace that fills a column of `samples`; `None` where the trace does not fill it.
    #[must_use]
    pub fn figure_of(&self, column: &str) -> Option<&str> {
        let mut columns = self.columns.iter();
        let filled = columns.find(|c| c.table == "samples" && c.column == column);
        filled.map(|c| c.origin.as_str())
    }
}

/// A column that a trace of another program fills.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct TraceColumn {
    /// Table of the column.
    pub table: String,
    /// Name of the column.
    pub column: String,
    /// Figure of the trace that fills the column.
    pub origin: String,
}

/// A time without samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Gap {
    /// Id of the host.
    pub host_id: String,
    /// Time of the last sample before the gap.
    pub from_time_ms: i64,
    /// Time of the first sample after the gap.
    pub to_time_ms: i64,
    /// Length of the gap.
    pub duration_s: f64,
    /// Cause of the gap, as in the table `gaps`, or as the analysis found it.
    pub cause: String,
}

impl Finding for Gap {
    const PRINTED: Option<TablePlace> = printed(210, "Gaps");
    const IS_ON_HOST_PAGE: bool = true;
    const PLAIN_TEXT: &'static [&'static str] = &["cause"];

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host_id)
    }
}

/// Item that could not be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct MissingValue {
    /// Id of the host.
    pub host_id: String,
    /// Name of the item that could not be read.
    pub item: String,
    /// Reason, in one word.
    pub reason: String,
    /// Message of the system.
    pub detail: String,
    /// Samples in which the item was absent.
    pub samples_count: i64,
}

impl Finding for MissingValue {
    const PRINTED: Option<TablePlace> = printed(220, "Items that could not be read");
    const IN_REPORT: ReportUse = ReportUse::Alone;
    const IS_ON_HOST_PAGE: bool = true;
    const PLAIN_TEXT: &'static [&'static str] = &["item", "reason"];

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields {
            text: Some(&mut self.detail),
            ..HostFields::id(&mut self.host_id)
        }
    }
}

/// A source of the owner's activity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ActivitySource {
    /// Id of the host.
    pub host_id: String,
    /// Name of the source, as in the table `activity`.
    pub source: String,
    /// State of the source, as in the table `activity`.
    pub state: String,
    /// Samples with the source in that state.
    pub samples_count: i64,
}

impl Finding for ActivitySource {
    const IN_REPORT: ReportUse = ReportUse::Alone;
    const IS_ON_HOST_PAGE: bool = true;
    const PLAIN_TEXT: &'static [&'static str] = &["source", "state"];

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host_id)
    }
}

/// Difference between the two counts of available memory on one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Residual {
    /// Id of the host.
    pub host_id: String,
    /// Mean of (`available_bytes` − the sum of its four parts).
    pub mean_bytes: f64,
    /// Largest absolute difference.
    pub max_abs_bytes: i64,
    /// Largest absolute difference as a share of physical memory.
    pub max_abs_share: f64,
}

impl Finding for Residual {
    const IS_ON_HOST_PAGE: bool = true;

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host_id)
    }
}

/// Cost of tracing on one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct AgentCost {
    /// Id of the host.
    pub host_id: String,
    /// Mean CPU time per sample.
    pub mean_cpu_ms: f64,
    /// Largest CPU time of a sample.
    pub max_cpu_ms: f64,
    /// CPU time of sampling at the configured interval, as a share of one CPU.
    pub cpu_share: Option<f64>,
    /// Maximum resident memory of the agent.
    pub max_rss_bytes: i64,
}

impl Finding for AgentCost {
    const PRINTED: Option<TablePlace> = printed(230, "Cost of tracing");
    const IS_ON_HOST_PAGE: bool = true;

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host_id)
    }
}

/// A measure that the dataset cannot give.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct MissingMeasure {
    /// Key of the measure.
    pub measure: String,
    /// Host id, or `all`.
    pub host_id: String,
    /// Reason why the measure is missing.
    pub reason: String,
}

impl Finding for MissingMeasure {
    const IS_ON_HOST_PAGE: bool = true;
    const PLAIN_TEXT: &'static [&'static str] = &["measure"];

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields {
            text: Some(&mut self.reason),
            ..HostFields::id(&mut self.host_id)
        }
    }
}
