//! A dataset at rest: Arrow IPC files in hive folders, and a manifest that names them.
//!
//! ```text
//! DATASET/manifest.json                               every file, with its hash, rows and times
//! DATASET/samples/date=2026-11-21/3f9c….arrow         rows sorted by host and time, zstd; index in the footer
//! DATASET/processes/date=2026-11-21/81d0….arrow       date: the UTC day of the rows' time
//! DATASET/manifests/<name>.json                       the same of other writers, where there are several
//! DATASET/.retired/samples/date=2026-11-21/….arrow    what a newer file replaced, for a while
//! ```
//!
//! Record batches end with a host, hosts with few rows share one, and a file's own index says which rows
//! are whose: one host is read without the rest, the file is mapped, and only the wanted columns are
//! decompressed. Files are never altered once sealed; a seal adds files and then replaces the manifest, so
//! a reader sees the old set or the new one. Tools that read the folders without the manifest (pyarrow,
//! Polars) see the same rows.
//!
//! Invariant: a record, named by host, database and sequence, is held once, however often it is
//! appended.
//!
//! Rooms, from the top; each uses only those after it: `upkeep`, `write`, `read`, `file`, `manifest`,
//! `layout`, `batch`, `rows`, `error`.

pub mod batch;
mod error;
mod file;
mod layout;
mod manifest;
mod read;
mod rows;
mod upkeep;
mod write;

pub use batch::{Batch, BatchError};
pub use error::{DatasetError, Result};
pub use manifest::{DatabaseEntry, FileEntry, HostEntry, Manifest, SourceColumn, SourceEntry};
pub use read::{Dataset, Selection, Snapshot, instant_ms};
pub use rows::{Identity, RowsBuilder};
pub use upkeep::{
    Compaction, CompactionStep, DETAILS, LostRows, Policy, Problem, ProblemKind, RepairResult,
    RetentionStep, Verification, repair,
};
pub use write::{Summary, Writer};

/// Version of the layout and of `manifest.json`; what the columns are is
/// [`gleaner_schemas::SCHEMA_VERSION`].
pub const FORMAT_VERSION: u32 = 2;
