//! The types of Gleaner's domain: units, identities, the rows that a host records, reasons for missing
//! values, and findings. The crate does no I/O and reads no clock.
//!
//! Every stored column is declared once, in [`rows`]. The Arrow schemas ([`arrow`]), the published
//! description (`schemas/SCHEMA.md`) and the statements for SQLite's tables ([`sql`]) are made from those
//! declarations.
//!
//! Rooms, from the top; each uses only those after it: `json_schema`, `availability`, `findings`,
//! `diagnosis`, `cache_replay`, `commons`, `curve`, `live`, `lending`, `markdown`, `arrow`, `sql`, `renames`, `rows`,
//! `column`, `interval`, `units`.

pub mod arrow;
pub mod availability;
pub mod cache_replay;
pub mod column;
pub mod commons;
pub mod curve;
pub mod diagnosis;
pub mod findings;
pub mod interval;
#[cfg(feature = "json-schema")]
pub mod json_schema;
pub mod lending;
pub mod live;
pub mod markdown;
pub mod renames;
pub mod rows;
pub mod sql;
pub mod units;

/// Version of all stored data. It is recorded as SQLite's `user_version`, in the metadata of Arrow files, and
/// in the manifest.
///
/// Each change of a column raises the version, and adds a folder to `schemas/golden/` and a step to
/// [`sql::MIGRATIONS`]. Four rules keep older versions readable:
///
/// - Columns are never removed.
/// - Added columns may be absent.
/// - A column that was always present may become one that can be absent.
/// - A table or column that is renamed gets an entry in [`renames`], from which all readers take the present
///   name.
pub const SCHEMA_VERSION: u32 = 7;
