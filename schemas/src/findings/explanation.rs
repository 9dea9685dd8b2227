//! Origin of the figures of one host at one instant: the output of `gleaner explain`.

use super::TraceSource;
use serde::{Deserialize, Serialize};

/// Figures of one host at one sample, explained.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// Host id.
    pub host: String,
    /// Host name.
    pub host_name: String,
    /// Trace that the host was imported from, and what its figures mean there; absent where an agent recorded it.
    #[serde(default)]
    pub source: Option<TraceSource>,
    /// The instant that was asked for.
    pub asked_time_ms: i64,
    /// The sample that holds at it: the last one taken before.
    pub time_ms: i64,
    /// The database that the sample was recorded in, and its number there.
    pub database_id: String,
    /// Sequence number of the sample's record in that database.
    pub sequence: i64,
    /// Physical memory, every category of it, and what could be harvested.
    pub categories: Vec<ExplainedCategory>,
    /// The idle rule.
    pub idle: ExplainedIdle,
    /// The lease quota.
    pub quota: Option<ExplainedQuota>,
    /// Active processes of the sample, largest first.
    pub processes: Vec<ExplainedConsumer>,
    /// Files in use at the sample, most cached first.
    pub files: Vec<ExplainedConsumer>,
    /// Items that the host could not read then, in words.
    pub absences: Vec<String>,
}

/// One category: its figure, and the terms of its sum.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ExplainedCategory {
    /// Name as in `memory_usage`; `physical` and `harvestable` beside the categories.
    pub category: String,
    /// Figure as stored; absent if the trace does not have it.
    pub bytes: Option<i64>,
    /// Share of physical memory.
    pub share: Option<f64>,
    /// Meaning, in words.
    pub meaning: String,
    /// Terms that it is the sum of; empty for a figure that was read as it is.
    pub terms: Vec<Term>,
    /// The figure less the sum of the terms: what the stored columns do not explain.
    pub unexplained_bytes: Option<i64>,
}

/// One term of a sum.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Term {
    /// Name of the term, in the kernel's words where it is the kernel's.
    pub name: String,
    /// Signed: what is subtracted is negative. Absent where the trace does not have it: it counts 0.
    pub bytes: Option<i64>,
}

/// Verdict of the idle rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ExplainedIdle {
    /// `idle`, `waiting`, `loaded` or `unknown`.
    pub verdict: String,
    /// Reason, in words.
    pub reason: String,
    /// Time since the owner was last active, by the least idle source.
    pub owner_idle_s: Option<f64>,
    /// 5-minute load average without the part of memory servers.
    pub load5: Option<f64>,
    /// The rule: no activity for so long,
    pub idle_after_s: f64,
    /// and a load below this for as long.
    pub load_limit: f64,
    /// The idle period that the sample lies in.
    pub from_time_ms: Option<i64>,
    /// End of the idle period.
    pub to_time_ms: Option<i64>,
}

/// Origin of the lease quota.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ExplainedQuota {
    /// Memory that could be leased at the sample.
    pub quota_bytes: i64,
    /// Memory that could be leased, were the host idle: the smaller of the two below.
    pub once_idle_bytes: i64,
    /// The paper's: available + lent − headroom.
    pub recruitable_bytes: i64,
    /// The terms of `recruitable_bytes`.
    pub recruitable_terms: Vec<Term>,
    /// Without pushing the owner's pages out: MemAvailable − headroom, and what is lent; absent where unknown.
    pub harvestable_bytes: Option<i64>,
}

/// A process or a file and what it held.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ExplainedConsumer {
    /// Name of the process; of a file its path where the owner allows it, else its id.
    pub name: String,
    /// Process id; absent for a file.
    pub pid: Option<i64>,
    /// Proportional memory of a process; cached bytes of a file. Absent where unknown.
    pub bytes: Option<i64>,
}
