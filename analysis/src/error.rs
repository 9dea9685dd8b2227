//! Errors of an analysis; each names a reason, a place and a remedy.

use gleaner_dataset::DatasetError;
use polars::error::PolarsError;
use std::ops::Range;

/// Reason why a dataset could not be analysed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// No host of the dataset has a sample.
    #[error(
        "the dataset holds no samples ({hosts_count} hosts named): let `gleaner-agent run` take some, \
         export again with `gleaner-agent export`, then repeat the analysis"
    )]
    NoSamples {
        /// Hosts that the dataset names.
        hosts_count: usize,
    },
    /// The requested time does not begin before it ends.
    #[error("no time lies from {} to before {}: let it end after it begins", utc_text(*.from_ms), utc_text(*.until_ms))]
    EmptySpan {
        /// Begin of the requested time.
        from_ms: i64,
        /// End of the requested time.
        until_ms: i64,
    },
    /// No host of the dataset has a sample in the requested time.
    #[error("no host has a sample {}: the dataset's samples go from {} to {}", span(*.from_ms, *.until_ms), utc_text(*.first_ms), utc_text(*.last_ms))]
    NoSamplesInSpan {
        /// Begin of the requested time, if it has one.
        from_ms: Option<i64>,
        /// End of the requested time, if it has one.
        until_ms: Option<i64>,
        /// Time of the first sample of any host.
        first_ms: i64,
        /// Time of the last sample of any host.
        last_ms: i64,
    },
    /// A parameter outside its allowed range.
    #[error("parameter {name} is {value}, and must be {allowed}")]
    Parameter {
        /// Name of the parameter, as in `Parameters`.
        name: &'static str,
        /// Value as given.
        value: String,
        /// Values that it may have.
        allowed: &'static str,
    },
    /// A time zone that is not in this system's time zone database.
    #[error(
        "unknown time zone {name:?}: give an IANA name such as Europe/Berlin, or UTC ({source})"
    )]
    TimeZone {
        /// Name as given.
        name: String,
        /// Error of the time zone library.
        source: jiff::Error,
    },
    /// No host has the requested id, and not exactly one host has it as its name.
    #[error("no host {host:?} {}", found(.named))]
    UnknownHost {
        /// Host as requested.
        host: String,
        /// Ids of the hosts of that name.
        named: Vec<String>,
    },
    /// The host was not sampled at that time.
    #[error("host {host} has no sample then: {why}; its trace goes from {} to {}", utc_text(*.from_ms), utc_text(*.to_ms))]
    NoSampleThen {
        /// Id of the host.
        host: String,
        /// Reason in words.
        why: String,
        /// Time of the host's first sample.
        from_ms: i64,
        /// Time of the host's last sample.
        to_ms: i64,
    },
    /// A measure that is no key of the findings.
    #[error("there is no measure {measure:?}: there are {known}")]
    UnknownMeasure {
        /// Measure as requested.
        measure: String,
        /// Keys of all measures.
        known: String,
    },
    /// The dataset's hosts could not be listed.
    #[error("cannot list the hosts: {0}")]
    Hosts(#[source] DatasetError),
    /// The dataset could not be read.
    #[error("cannot read table {table} of host {host}: {source}")]
    Dataset {
        /// Name of the table.
        table: &'static str,
        /// Id of the host.
        host: String,
        /// Error of the dataset's reader.
        source: DatasetError,
    },
    /// A column's type differs from the schema's.
    #[error(
        "column {column} of table {table}, host {host}, is not what schemas/SCHEMA.md says ({found}): \
         the file was altered or is of another version; export the dataset again"
    )]
    Column {
        /// Name of the table.
        table: &'static str,
        /// Id of the host.
        host: String,
        /// Name of the column.
        column: String,
        /// Contents that were found instead.
        found: String,
    },
    /// Polars refused to arrange rows.
    #[error("cannot arrange rows of table {table}, host {host}: {source}")]
    Rows {
        /// Name of the table.
        table: &'static str,
        /// Id of the host.
        host: String,
        /// Error of Polars.
        source: PolarsError,
    },
    /// The caller cancelled the analysis.
    #[error("the analysis was cancelled")]
    Cancelled,
    /// A part of an analysis cannot be used.
    #[error("{origin}: {source}")]
    Part {
        /// File or other origin of the part.
        origin: String,
        /// Reason for the refusal.
        source: PartError,
    },
}

/// Reason for which a part of an analysis cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartError {
    /// The bytes are not a part.
    #[error(
        "this is no part of an analysis: give files that `gleaner analyze --part` or `gleaner merge -o` wrote"
    )]
    NotAPart,
    /// Another version of Gleaner wrote the part.
    #[error(
        "the part has version {found}, and this program reads version {known}: analyse it again"
    )]
    Version {
        /// Version of the part.
        found: u32,
        /// Version that this program reads.
        known: u32,
    },
    /// The part's contents are damaged.
    #[error("the part is damaged ({reason}): copy it again, or analyse it again")]
    Damaged {
        /// Error of the decoder.
        reason: String,
    },
    /// The file could not be read or written.
    #[error("{0}")]
    File(#[from] std::io::Error),
    /// The part belongs to another analysis.
    #[error(
        "the part belongs to another analysis than the parts before it: {difference}. Parts must have been made \
         with the same options and of the same dataset"
    )]
    OtherAnalysis {
        /// First difference, in words.
        difference: &'static str,
    },
    /// Two parts share hosts, but not the same range of hosts.
    #[error(
        "the parts with hosts {}..{} and {}..{} overlap: give each host in one part only",
        .first.start, .first.end, .second.start, .second.end
    )]
    Overlap {
        /// Positions of the first part's hosts.
        first: Range<usize>,
        /// Positions of the second part's hosts.
        second: Range<usize>,
    },
    /// Hosts are missing.
    #[error(
        "hosts {}..{} of {hosts_count} are in no part: analyse them with `gleaner analyze --hosts {}..{}` and \
         merge again",
        .missing.start, .missing.end, .missing.start, .missing.end
    )]
    Incomplete {
        /// Positions of the first missing hosts.
        missing: Range<usize>,
        /// Number of hosts in the analysis.
        hosts_count: usize,
    },
}

fn found(named: &[String]) -> String {
    if named.is_empty() {
        "is in the dataset: `gleaner analyze` lists its hosts".to_owned()
    } else {
        format!(
            "by its id, and several by that name: give one of {}",
            named.join(", ")
        )
    }
}

fn span(from_ms: Option<i64>, until_ms: Option<i64>) -> String {
    match (from_ms, until_ms) {
        (Some(from), Some(until)) => {
            format!("from {} to before {}", utc_text(from), utc_text(until))
        }
        (Some(from), None) => format!("from {} on", utc_text(from)),
        (None, Some(until)) => format!("before {}", utc_text(until)),
        (None, None) => "at any time".to_owned(),
    }
}

fn utc_text(time_ms: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(time_ms);
    time.map_or_else(|_| format!("{time_ms} ms"), |time| time.to_string())
}

/// Result with an [`AnalysisError`].
pub type Result<T, E = AnalysisError> = std::result::Result<T, E>;
