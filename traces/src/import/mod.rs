//! Traces of other programs, taken into a dataset.
//!
//! ```text
//! source's files ──► its Importer ──► Readings ──► mend ──► write ──► dataset
//!                    (`archive`)      or why not   one sample a time   columns that the source has
//! ```
//!
//! A new source is a file here: an [`Importer`], which lists machines and reads each; [`import`] does the rest, alike
//! for all of them. A source says which columns it fills and from what ([`Source::fills`]); all else is absent, never 0. What
//! is rough is mended and counted ([`Mended`]); what is hopeless is refused by file and line before anything
//! is written. Ids follow from the names of source and machine, and a record's number from its time: what was
//! imported before is imported again without effect, into whatever dataset.

pub mod alibaba;
pub mod archive;
pub mod bitbrains;
pub mod csv;
mod error;
mod files;
mod grouped;
mod importer;
pub mod kernel;
mod machine;
pub mod materna;
mod mend;
mod mended;
mod nominal;
pub mod pcp;
pub mod prometheus;
mod readings;
mod source;
pub mod sysstat;
mod tool;
mod write;

pub use error::ImportError;
pub use importer::{Importer, Listed, import, import_at};
pub use machine::{Imported, Machine, Outcome, Progress};
pub use mend::Observation;
pub use mended::Mended;
pub use readings::{Facts, MEMORY_BYTES, Reading, Readings, TIMES_MS, Values};
pub use source::{Filled, Source};
