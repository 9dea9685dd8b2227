//! Publishes a dataset's tables as Apache Iceberg tables (format version 2) with Parquet files, for query engines.
//!
//! ```text
//! OUT/gleaner-tables.json                              identifies the folder; lists each table's newest metadata
//! OUT/samples/data/date=2026-11-21/3f9c…-81d05c2a.parquet    rows of one Arrow file of the dataset
//! OUT/samples/metadata/v17.metadata.json               version 17 of the table: its schema and its snapshots
//! OUT/samples/metadata/version-hint.text               the newest version's number, for readers without a catalog
//! OUT/samples/metadata/snap-17.avro                    manifest list of snapshot 17
//! OUT/samples/metadata/manifest-17.avro                manifest of snapshot 17: the Parquet files, with bounds
//! ```
//!
//! A table is a function of the dataset's manifest: each Arrow file that the manifest names has one Parquet file,
//! partitioned by UTC day and sorted by host and time. Publishing compares the manifest's files with those of the
//! table's newest snapshot, and commits the difference as one snapshot. The creation of `vN.metadata.json` is the
//! commit. All files that it names are on disk before, so that readers see the table either before a step of the
//! dataset (seal, merge, retention, repair) or after it. Replaced snapshots stay for a grace time.
//!
//! Rooms, from the top; each uses only those after it: `publish`, `folder`, `convert`, `commit`, `iceberg`, `error`.

mod commit;
mod convert;
mod error;
mod folder;
mod iceberg;
mod publish;

pub use error::{Result, TableError};
pub use folder::check_location;
pub use publish::{Options, Progress, PublishSummary, publish};

/// Default time for which replaced snapshots and their files stay.
pub const GRACE: std::time::Duration = std::time::Duration::from_secs(3600);
