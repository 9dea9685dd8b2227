//! Diagnosis of `gleaner doctor` on one host: one JSON document.

use serde::{Deserialize, Serialize};

/// Version of the form of the diagnosis. Fields and codes may be added at any time; one that is taken away, renamed or given
/// another meaning raises it.
pub const DIAGNOSIS_VERSION: u32 = 1;

/// Results of all checks on one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Diagnosis {
    /// Version of this document's form.
    #[cfg_attr(feature = "json-schema", schemars(extend("const" = DIAGNOSIS_VERSION)))]
    pub diagnosis_version: u32,
    /// Version of the `gleaner` that looked.
    pub gleaner_version: String,
    /// Time of the checks.
    pub time_ms: i64,
    /// Under which user: others may see more, or less.
    pub user: String,
    /// Time that the checks took.
    pub took_ms: u64,
    /// Checks that found all well.
    pub ok_count: u64,
    /// Checks that found something to look at, which keeps nothing from working.
    pub warning_count: u64,
    /// Checks that found something that does not work.
    pub wrong_count: u64,
    /// Checks of what is not used here.
    pub not_used_count: u64,
    /// Checks in the order of the printed text, one a line.
    pub checks: Vec<Check>,
}

/// One check of a diagnosis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// Program that is checked: `host`, `agent`, `ship`, `collector`, `recruiter`, `memoryd` or `clerk`.
    pub daemon: String,
    /// State of the subject.
    pub state: CheckState,
    /// Subject of the check, in a word or two.
    pub subject: String,
    /// Names the message, which docs/doctor.md explains. Absent where all is well.
    pub code: Option<String>,
    /// Finding, for people.
    pub found: String,
    /// The command that mends it, for a shell; words in capitals are to be filled in. Absent where all is well, or where no
    /// command mends it.
    pub mend: Option<String>,
}

/// State of a subject.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// The subject works.
    #[default]
    Ok,
    /// To be looked at; nothing is kept from working.
    Warning,
    /// The subject does not work.
    Wrong,
    /// The subject is not used on this host.
    NotUsed,
}

impl CheckState {
    /// Word for people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Wrong => "wrong",
            Self::NotUsed => "not used",
        }
    }
}
