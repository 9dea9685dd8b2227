//! A dataset on disk: Arrow IPC files in Hive-style folders (`key=value`), and a manifest that lists them.
//!
//! ```text
//! DATASET/manifest.json                               every file, with its hash, rows and times
//! DATASET/samples/date=2026-11-21/3f9c….arrow         rows sorted by host and time, zstd; index in the footer
//! DATASET/processes/date=2026-11-21/81d0….arrow       date: the UTC day of the rows' time
//! DATASET/manifests/<name>.json                       manifests of other writers, if there are several writers
//! DATASET/.retired/samples/date=2026-11-21/….arrow    files that newer files replaced, kept for a while
//! ```
//!
//! A record batch ends with the last row of a host; hosts with few rows share a batch. An index in each file
//! states which rows belong to which host. One host can therefore be read without the rest: the file is
//! mapped, and only the requested columns are decompressed. Files never change once sealed. A seal adds files
//! and then replaces the manifest, so that a reader sees the old set of files or the new one. Tools that read
//! the folders without the manifest (pyarrow, Polars) see the same rows.
//!
//! Invariant: a record is stored once, however often it is appended. Host, database and sequence identify a record.
//!
//! A dataset is also read from a [`Store`], such as a bucket of an object store. It is written in a folder only.
//!
//! Rooms, from the top; each uses only those after it: `upkeep`, `write`, `read`, `file`, `manifest`,
//! `layout`, `store`, `batch`, `rows`, `error`.

pub mod batch;
mod error;
mod file;
mod layout;
mod manifest;
mod read;
mod rows;
mod store;
mod upkeep;
mod write;

pub use batch::{Batch, BatchError};
pub use error::{DatasetError, Result};
pub use manifest::{
    DatabaseEntry, FileEntry, HostEntry, Manifest, SourceColumn, SourceEntry, check_writer_name,
    manifest_paths,
};
pub use read::{Dataset, Selection, Snapshot, instant_ms};
pub use rows::{Identity, RowsBuilder};
pub use store::Store;
pub use upkeep::{
    Compaction, CompactionStep, DETAILS, LostRows, Policy, Problem, ProblemKind, RepairResult,
    RetentionStep, Verification, repair,
};
pub use write::{Summary, Writer};

/// Version of the layout and of `manifest.json`; the columns have their own version,
/// [`gleaner_schemas::SCHEMA_VERSION`].
pub const FORMAT_VERSION: u32 = 2;
