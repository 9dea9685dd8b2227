//! Imports other programs' traces into a dataset.
//!
//! ```text
//! source's files ──► its Importer ──► Readings ──► repair ──► write ──► dataset
//!                    (`archive`)      or why not   one sample a time   columns that the source has
//! ```
//!
//! A new source is a module here: an [`Importer`] that lists machines and reads each. [`import`] does the
//! rest in the same way for all sources. A source names the columns that it fills, and their origins
//! ([`Source::fills`]); all other columns are absent, never 0. Faulty rows are repaired and counted
//! ([`Repairs`]). Unusable input is rejected with file and line before anything is written. Ids are derived
//! from the names of source and machine, and a record's number from its time: importing the same trace twice
//! adds nothing to the dataset.

pub mod alibaba;
pub mod archive;
pub mod bitbrains;
pub mod csv;
mod error;
mod files;
mod importer;
pub mod kernel;
mod machine;
mod machine_table;
pub mod materna;
mod nominal;
pub mod pcp;
pub mod prometheus;
mod readings;
mod repair;
mod repairs;
mod source;
pub mod sysstat;
mod tool;
mod write;

pub use error::ImportError;
pub use importer::{Importer, MachineList, import, import_at};
pub use machine::{ImportSummary, Machine, Outcome, Progress};
pub use readings::{Facts, MEMORY_BYTES, Reading, Readings, TIMES_MS, Values};
pub use repair::Observation;
pub use repairs::Repairs;
pub use source::{ColumnOrigin, Source};
