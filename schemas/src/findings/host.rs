//! The hosts, how well each is covered, and what could not be seen or measured.

use super::finding::{Finding, HostFields, ReportUse, TablePlace, printed};
use serde::{Deserialize, Serialize};

/// One host, and its coverage by samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct HostSummary {
    /// Host id.
    pub host: String,
    /// Host name.
    pub host_name: String,
    /// Class by memory size, e.g. `16-32 GiB`.
    pub size_class: String,
    /// Physical memory at the last sample.
    pub physical_bytes: i64,
    /// CPUs.
    pub cpus_count: Option<i64>,
    /// Kernel release.
    pub kernel_release: Option<String>,
    /// Configured time between samples.
    pub sample_interval_s: Option<f64>,
    /// Samples.
    pub samples_count: i64,
    /// First sample.
    pub from_time_ms: i64,
    /// Last sample.
    pub to_time_ms: i64,
    /// Share of the span between them that samples cover (gaps are what is missing).
    pub coverage_share: f64,
    /// Share of the covered time in which the host was idle; absent where activity is unknown.
    pub idle_share: Option<f64>,
    /// Trace that the host comes from, where no agent recorded it.
    #[serde(default)]
    pub source: Option<String>,
}

impl Finding for HostSummary {
    const PRINTED: Option<TablePlace> = printed(10, "Hosts");
    const PLAIN_TEXT: &'static [&'static str] = &["size_class", "kernel_release", "source"];

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields {
            name: Some(&mut self.host_name),
            ..HostFields::id(&mut self.host)
        }
    }
}

/// A trace of another program that hosts were imported from, and what its figures mean there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct TraceSource {
    /// Name of the source, as in [`HostSummary`].
    pub name: String,
    /// Hosts from it.
    pub hosts_count: i64,
    /// Meaning of available memory there: a sentence.
    pub available: String,
    /// Parts of physical memory there; absent where it does not say.
    pub physical: Option<String>,
    /// True where the importer makes sizes up, since the trace has none: shares alone are the trace's.
    #[serde(default)]
    pub sizes_are_made_up: bool,
    /// The columns that it fills; all others are absent.
    pub columns: Vec<TraceColumn>,
}

impl Finding for TraceSource {
    const PLAIN_TEXT: &'static [&'static str] =
        &["name", "available", "physical", "table", "column", "from"];
}

impl TraceSource {
    /// Sentences that say what available and physical memory are there.
    #[must_use]
    pub fn meaning(&self) -> String {
        let physical = self.physical.as_deref();
        let physical = physical.map(|from| format!(" Physical memory is: {from}."));
        format!("{}{}", self.available, physical.unwrap_or_default())
    }

    /// Figure of the trace that a column of `samples` is made of; none where the trace does not fill it.
    #[must_use]
    pub fn figure_of(&self, column: &str) -> Option<&str> {
        let mut columns = self.columns.iter();
        let filled = columns.find(|c| c.table == "samples" && c.column == column);
        filled.map(|c| c.from.as_str())
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
    /// Figure of the trace that it is made of.
    pub from: String,
}

/// A time without samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Gap {
    /// Host id.
    pub host: String,
    /// Last sample before.
    pub from_time_ms: i64,
    /// First sample after.
    pub to_time_ms: i64,
    /// Length.
    pub duration_s: f64,
    /// Cause.
    pub cause: String,
}

impl Finding for Gap {
    const PRINTED: Option<TablePlace> = printed(210, "Gaps");
    const IS_ON_HOST_PAGE: bool = true;
    const PLAIN_TEXT: &'static [&'static str] = &["cause"];

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host)
    }
}

/// Something that could not be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Absence {
    /// Host id.
    pub host: String,
    /// Item that could not be read.
    pub item: String,
    /// Reason, in one word.
    pub reason: String,
    /// Message of the system.
    pub detail: String,
    /// Samples in which it was absent.
    pub samples_count: i64,
}

impl Finding for Absence {
    const PRINTED: Option<TablePlace> = printed(220, "What could not be read");
    const IN_REPORT: ReportUse = ReportUse::Alone;
    const IS_ON_HOST_PAGE: bool = true;
    const PLAIN_TEXT: &'static [&'static str] = &["item", "reason"];

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields {
            text: Some(&mut self.detail),
            ..HostFields::id(&mut self.host)
        }
    }
}

/// A source of the owner's activity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ActivitySource {
    /// Host id.
    pub host: String,
    /// Source.
    pub source: String,
    /// State.
    pub state: String,
    /// Samples in that state.
    pub samples_count: i64,
}

impl Finding for ActivitySource {
    const IN_REPORT: ReportUse = ReportUse::Alone;
    const IS_ON_HOST_PAGE: bool = true;
    const PLAIN_TEXT: &'static [&'static str] = &["source", "state"];

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host)
    }
}

/// Difference of the two ways to count available memory on one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Residual {
    /// Host id.
    pub host: String,
    /// Mean of (what is left over − the sum of the parts).
    pub mean_bytes: f64,
    /// Largest absolute difference.
    pub max_abs_bytes: i64,
    /// The same as a share of physical memory.
    pub max_abs_share: f64,
}

impl Finding for Residual {
    const IS_ON_HOST_PAGE: bool = true;

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host)
    }
}

/// Cost of tracing to one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct AgentCost {
    /// Host id.
    pub host: String,
    /// Mean CPU time a sample.
    pub mean_cpu_ms: f64,
    /// Largest CPU time of a sample.
    pub max_cpu_ms: f64,
    /// Share of one CPU at the configured interval.
    pub cpu_share: Option<f64>,
    /// Most resident memory.
    pub max_rss_bytes: i64,
}

impl Finding for AgentCost {
    const PRINTED: Option<TablePlace> = printed(230, "What tracing cost");
    const IS_ON_HOST_PAGE: bool = true;

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host)
    }
}

/// A measure that the dataset cannot give.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct NotMeasured {
    /// Key of the measure.
    pub measure: String,
    /// Host id, or `all`.
    pub host: String,
    /// Reason why it is missing.
    pub reason: String,
}

impl Finding for NotMeasured {
    const IS_ON_HOST_PAGE: bool = true;
    const PLAIN_TEXT: &'static [&'static str] = &["measure"];

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields {
            text: Some(&mut self.reason),
            ..HostFields::id(&mut self.host)
        }
    }
}
