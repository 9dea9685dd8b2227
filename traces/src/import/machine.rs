//! What became of the machines of a source.

use super::Mended;
use serde::Serialize;

/// How far an import is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Machines done.
    pub machines: usize,
    /// Machines in all.
    pub machines_in_all: usize,
    /// The one done last.
    pub machine: &'a str,
}

/// One machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Its name at the source.
    pub machine: String,
    /// Its name in the dataset.
    pub host_name: String,
    /// Its id in the dataset.
    pub host_id: String,
    /// What became of it.
    pub outcome: Outcome,
    /// What was found in its rows.
    #[serde(flatten)]
    pub mended: Mended,
}

impl Machine {
    /// What became of it, in words.
    #[must_use]
    pub fn reason(&self) -> String {
        let outcome = self.outcome.describe();
        match &self.mended.first_unreadable {
            Some(first) => format!("{outcome} ({first})"),
            None => outcome.to_owned(),
        }
    }
}

/// What became of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is in the dataset.
    Imported,
    /// Dropped: it has no rows.
    Empty,
    /// Dropped: none of its rows could be read.
    Unreadable,
    /// Dropped: it never had memory.
    WithoutMemory,
}

impl Outcome {
    pub(super) fn of(mended: &Mended) -> Self {
        if mended.samples_count > 0 {
            Self::Imported
        } else if mended.rows_count == 0 {
            Self::Empty
        } else if mended.unreadable_count == mended.rows_count {
            Self::Unreadable
        } else {
            Self::WithoutMemory
        }
    }

    /// In words.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Imported => "imported",
            Self::Empty => "dropped: it has no rows",
            Self::Unreadable => "dropped: no row could be read",
            Self::WithoutMemory => "dropped: no row says that it had memory",
        }
    }
}

/// What an import did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// The source's name.
    pub source: String,
    /// What available memory means there.
    pub available: String,
    /// Every machine, in order.
    pub machines: Vec<Machine>,
    /// All of them together, and rows that are no machine's.
    pub total: Mended,
    /// What was found in rows that are no machine's.
    pub of_no_machine: Mended,
    /// What else lies there, and was not looked at.
    pub passed_over: Vec<String>,
    /// What is of the source and could not be used, each with its reason.
    pub set_aside: Vec<String>,
    /// Rows that are new in the dataset, inventories among them.
    pub new_rows_count: u64,
    /// Rows that it held already.
    pub known_rows_count: u64,
    /// Those of them that say otherwise of the same record than what the dataset holds, which stays.
    pub contradicting_rows_count: u64,
    /// Files that are new in the dataset, once its small ones were merged.
    pub files_count: usize,
    /// Their length together.
    pub files_bytes: u64,
}
