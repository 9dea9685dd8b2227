//! Origin of one host's figures at one instant: the output of `gleaner explain`.

use super::TraceSource;
use serde::{Deserialize, Serialize};

/// Figures of one host at one sample, explained.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// Id of the host.
    pub host_id: String,
    /// Name of the host.
    pub host_name: String,
    /// Trace from which the host was imported, with the meaning of the trace's figures; absent where an agent
    /// recorded the host.
    #[serde(default)]
    pub source: Option<TraceSource>,
    /// The requested instant.
    pub requested_time_ms: i64,
    /// Time of the explained sample: the last one at or before the requested instant.
    pub time_ms: i64,
    /// Id of the database in which the sample was recorded.
    pub database_id: String,
    /// Sequence number of the sample's record in that database.
    pub sequence: i64,
    /// Physical memory, each of its categories, and harvestable memory.
    pub categories: Vec<ExplainedCategory>,
    /// Verdict of the idle rule.
    pub idle: ExplainedIdle,
    /// Origin of the lease quota; absent where it cannot be computed.
    pub quota: Option<ExplainedQuota>,
    /// Active processes of the sample, largest first.
    pub processes: Vec<ExplainedConsumer>,
    /// Files in use at the sample, those with most cached bytes first.
    pub files: Vec<ExplainedConsumer>,
    /// Items that the host could not read at that time, in words.
    pub missing_values: Vec<String>,
}

/// A category of memory: its figure, and the terms whose sum it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ExplainedCategory {
    /// Name of the category as in `memory_usage`, or `physical` or `harvestable`.
    pub category: String,
    /// Figure as stored; absent if the trace lacks it.
    pub bytes: Option<i64>,
    /// Figure as a share of physical memory.
    pub share: Option<f64>,
    /// Meaning of the category, in words.
    pub meaning: String,
    /// Terms whose sum is the figure; empty for a figure that was read directly.
    pub terms: Vec<Term>,
    /// The figure less the sum of the terms: the part that stored columns do not explain.
    pub unexplained_bytes: Option<i64>,
}

/// A term of a sum.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Term {
    /// Name of the term; the kernel's own name where the kernel has one.
    pub name: String,
    /// Signed value: negative if subtracted. Absent, and counted as 0, where the trace lacks it.
    pub bytes: Option<i64>,
}

/// Verdict of the idle rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ExplainedIdle {
    /// State of the host: `idle`, `waiting`, `loaded` or `unknown`.
    pub verdict: String,
    /// Reason of the verdict, in words.
    pub reason: String,
    /// Time since the owner's last activity, according to the source that saw activity last.
    pub owner_idle_s: Option<f64>,
    /// 5-minute load average without the load of memory servers.
    pub load5: Option<f64>,
    /// Time without activity after which the rule calls a host idle.
    pub idle_after_s: f64,
    /// Load limit of the rule: the load must stay below this limit for `idle_after_s`, too.
    pub load_limit: f64,
    /// Start of the idle period that contains the sample.
    pub from_time_ms: Option<i64>,
    /// End of that idle period.
    pub to_time_ms: Option<i64>,
}

/// Origin of the lease quota.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ExplainedQuota {
    /// Bytes that could be leased at the sample.
    pub quota_bytes: i64,
    /// Quota if the host were idle: the smaller of `paper_quota_bytes` and `harvestable_bytes` plus lent
    /// memory; 0 where `harvestable_bytes` is unknown.
    pub idle_quota_bytes: i64,
    /// The paper's quota: available + lent − headroom.
    pub paper_quota_bytes: i64,
    /// The terms of `paper_quota_bytes`.
    pub paper_quota_terms: Vec<Term>,
    /// Harvestable memory at the sample: MemAvailable − headroom; absent where unknown.
    pub harvestable_bytes: Option<i64>,
}

/// A process or a file, with its memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ExplainedConsumer {
    /// Name of the process. For a file: its path where the owner allows it, else its id.
    pub name: String,
    /// Process id; absent for a file.
    pub pid: Option<i64>,
    /// Proportional memory of a process; cached bytes of a file. Absent where unknown.
    pub bytes: Option<i64>,
}
