//! A dataset in other formats: its tables ([`tables`]), and availability periods for policy simulators
//! ([`availability`], [`fta`], [`simgrid`]). Findings of single hosts are exported as well ([`records`]).
//!
//! Whatever the format, an export of a dataset is a folder of its own:
//!
//! ```text
//! OUT/gleaner-export.json                          identifies the export; whether it is complete; meaning of imported hosts' figures
//! OUT/samples/date=2026-11-21/samples.parquet      tables: one file per table and UTC date
//! OUT/periods.parquet, OUT/samples.parquet         availability
//! OUT/event_trace.tab, OUT/node.tab, …             fta
//! OUT/platform.xml, OUT/profiles/…                 simgrid
//! ```

pub mod availability;
mod file;
mod folder;
pub mod fta;
mod names;
pub mod records;
pub mod simgrid;
pub mod tables;
mod text;
mod unfinished;

use crate::Result;
pub use folder::describe_sources;
use gleaner_schemas::availability::HostAvailability;

/// Counts of the files and rows of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportSummary {
    /// Number of files.
    pub files: usize,
    /// Number of rows, or of lines, in the files.
    pub rows: u64,
    /// Total length of the files, in bytes.
    pub bytes: u64,
}

impl ExportSummary {
    fn add(&mut self, rows: u64, bytes: u64) {
        self.files += 1;
        self.rows += rows;
        self.bytes += bytes;
    }
}

/// Format of a columnar file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Apache Parquet, with types and units of the columns.
    Parquet,
    /// Text with a line of column names; times as RFC 3339 in UTC. Absent values and empty texts are both
    /// empty fields; the other formats distinguish them.
    Csv,
    /// Arrow IPC files, which are Feather files as well, with types and units of the columns.
    Arrow,
}

/// An export that accepts one host after another, in bounded memory.
pub trait ByHost {
    /// Adds the next host. Hosts must come in the order of their ids, so that the same dataset gives the same
    /// files.
    ///
    /// # Errors
    /// Errors of writing: the incomplete export stays, marked as incomplete.
    fn add(&mut self, host: &HostAvailability) -> Result<()>;

    /// Renames the files to their final names, and marks the export as complete.
    ///
    /// # Errors
    /// As [`ByHost::add`].
    fn finish(self: Box<Self>) -> Result<ExportSummary>;
}
