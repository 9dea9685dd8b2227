//! A dataset in other formats: its tables ([`tables`]), and when memory could be had, for policy simulators
//! ([`availability`], [`fta`], [`simgrid`]).
//!
//! Whatever the format, an export is a folder of its own:
//!
//! ```text
//! OUT/gleaner-export.json                          says that the folder is an export, whether whole, and what figures of imported hosts mean
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
pub mod simgrid;
pub mod tables;
mod text;
mod unfinished;

use crate::Result;
pub use folder::describe_sources;
use gleaner_schemas::availability::HostAvailability;

/// What an export wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Files.
    pub files: usize,
    /// Rows, or lines, in them.
    pub rows: u64,
    /// Their length together.
    pub bytes: u64,
}

impl Exported {
    fn add(&mut self, rows: u64, bytes: u64) {
        self.files += 1;
        self.rows += rows;
        self.bytes += bytes;
    }
}

/// Format of files of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Apache Parquet, with types and units of the columns.
    Parquet,
    /// Text with a line of column names; times as RFC 3339 in UTC. An absent value is an empty field, as is an
    /// empty text: the other formats tell them apart.
    Csv,
    /// Arrow IPC files, which are Feather files as well, with types and units of the columns.
    Arrow,
}

/// An export that takes in host after host, in bounded memory.
pub trait ByHost {
    /// Takes in the next host: in the order of their ids, for the same dataset to give the same files.
    ///
    /// # Errors
    /// What could not be written: what was exported until then is left, and marked as not whole.
    fn add(&mut self, host: &HostAvailability) -> Result<()>;

    /// Gives the files their names, and marks the export as whole.
    ///
    /// # Errors
    /// As above.
    fn finish(self: Box<Self>) -> Result<Exported>;
}
