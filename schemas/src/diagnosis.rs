//! Diagnosis of `gleaner doctor` on one host: one JSON document.

use serde::{Deserialize, Serialize};

/// Version of the form of the diagnosis. Fields and codes may be added at any time; the version rises if one
/// is removed, renamed or given another meaning.
pub const DIAGNOSIS_VERSION: u32 = 1;

/// Results of all checks on one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Diagnosis {
    /// Version of this document's form.
    #[cfg_attr(feature = "json-schema", schemars(extend("const" = DIAGNOSIS_VERSION)))]
    pub diagnosis_version: u32,
    /// Version of the `gleaner` that ran the checks.
    pub gleaner_version: String,
    /// Time of the checks.
    pub time_ms: i64,
    /// User who ran the checks: other users may be able to read more, or less.
    pub user: String,
    /// Duration of the checks.
    pub duration_ms: u64,
    /// Number of checks that found no problem.
    pub ok_count: u64,
    /// Number of checks that found something to look at, but nothing that prevents operation.
    pub warning_count: u64,
    /// Number of checks that found something that does not work.
    pub fault_count: u64,
    /// Number of checks of subjects that are not used on this host.
    pub not_used_count: u64,
    /// Checks in the order of the printed text, one per line.
    pub checks: Vec<Check>,
}

/// A check of a diagnosis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// Part that is checked: `host` (the machine itself), or a program: `agent`, `ship`, `collector`,
    /// `recruiter`, `memoryd`, `clerk` or `commons`.
    pub daemon: String,
    /// State of the subject.
    pub state: CheckState,
    /// Subject of the check, in one or two words.
    pub subject: String,
    /// Name of the message, which docs/doctor.md explains; absent where no problem was found.
    pub code: Option<String>,
    /// Finding of the check, for people.
    pub finding: String,
    /// Shell command that fixes the problem; words in capitals are placeholders. Absent where no problem was
    /// found, or where no command fixes it.
    pub remedy: Option<String>,
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
    /// The subject needs attention, but works.
    Warning,
    /// The subject does not work.
    Fault,
    /// The subject is not used on this host.
    NotUsed,
}

impl CheckState {
    /// Returns the state as a word for people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Fault => "fault",
            Self::NotUsed => "not used",
        }
    }
}
