//! Outcomes of importing the machines of a source.

use super::Repairs;
use serde::Serialize;

/// Progress of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Number of machines done.
    pub machines: usize,
    /// Total number of machines.
    pub machines_in_all: usize,
    /// Name of the last machine done.
    pub machine: &'a str,
}

/// A machine of the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Name of the machine at the source.
    pub machine: String,
    /// Name of the machine's host in the dataset.
    pub host_name: String,
    /// Id of the machine's host in the dataset.
    pub host_id: String,
    /// Outcome of the import.
    pub outcome: Outcome,
    /// Repairs in the machine's rows.
    #[serde(flatten)]
    pub repairs: Repairs,
}

impl Machine {
    /// Description of the outcome, with the first unreadable row if there is one.
    #[must_use]
    pub fn reason(&self) -> String {
        let outcome = self.outcome.describe();
        match &self.repairs.first_unreadable {
            Some(first) => format!("{outcome} ({first})"),
            None => outcome.to_owned(),
        }
    }
}

/// Outcome of importing a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The machine is in the dataset.
    Imported,
    /// Dropped: it has no rows.
    Empty,
    /// Dropped: none of its rows could be read.
    Unreadable,
    /// Dropped: the machine never had memory.
    WithoutMemory,
}

impl Outcome {
    pub(super) fn of(repairs: &Repairs) -> Self {
        if repairs.samples_count > 0 {
            Self::Imported
        } else if repairs.rows_count == 0 {
            Self::Empty
        } else if repairs.unreadable_count == repairs.rows_count {
            Self::Unreadable
        } else {
            Self::WithoutMemory
        }
    }

    /// Description for messages.
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

/// Summary of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportSummary {
    /// The source's name.
    pub source: String,
    /// Meaning of available memory in this source.
    pub available_meaning: String,
    /// Every machine of the source, in the order of import.
    pub machines: Vec<Machine>,
    /// Repairs in all rows, including the rows whose machine is unknown.
    pub total: Repairs,
    /// Repairs in the rows whose machine is unknown.
    pub without_machine: Repairs,
    /// Names of other entries of the source's folder, which were skipped.
    pub skipped_entries: Vec<String>,
    /// Unusable parts of the source, each with its reason.
    pub unusable_parts: Vec<String>,
    /// Number of new rows in the dataset, inventories included.
    pub new_rows_count: u64,
    /// Number of rows that the dataset already had.
    pub existing_rows_count: u64,
    /// Number of rows whose values differ from those of the same record in the dataset; the dataset keeps its own row.
    pub contradicting_rows_count: u64,
    /// Number of new files in the dataset, after its small files were merged.
    pub files_count: usize,
    /// Total length of the files, in bytes.
    pub files_bytes: u64,
}
