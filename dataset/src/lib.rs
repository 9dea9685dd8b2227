//! A dataset at rest: Arrow IPC files in hive folders, and a manifest that finds a host's rows.
//!
//! ```text
//! DATASET/manifest.json                               every file, and where in it each host lies
//! DATASET/samples/date=2026-11-21/3f9c….arrow         rows sorted by host and time, zstd
//! DATASET/processes/date=2026-11-21/81d0….arrow       date: the UTC day of the rows' time
//! ```
//!
//! Record batches are cut at host boundaries, so one host is read without the rest: the manifest names
//! its batches, the file is mapped, only the wanted columns are decompressed. Files are never altered
//! once sealed; a seal adds files and then replaces the manifest, so a reader sees the old set or the
//! new one. Tools that read the folders without the manifest (pyarrow, Polars) see the same rows.
//!
//! Invariant: a record, named by host, database and sequence, is held once, however often it is
//! appended.

pub mod batch;
mod error;
mod identity;
mod layout;
mod lock;
mod manifest;
mod mapped;
mod order;
mod reader;
mod rows;
mod seal;
mod staged;
mod writer;

pub use batch::{Batch, BatchError};
pub use error::{DatasetError, Result};
pub use manifest::{DatabaseEntry, FileEntry, HostEntry, Manifest};
pub use reader::Dataset;
pub use rows::{Identity, RowsBuilder};
pub use seal::Summary;
pub use writer::Writer;

/// Version of the layout and of `manifest.json`; what the columns are is
/// [`gleaner_schemas::SCHEMA_VERSION`].
pub const FORMAT_VERSION: u32 = 1;
