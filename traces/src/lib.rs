//! Traces of other programs and for other programs: exports of a dataset as Parquet, CSV and Arrow,
//! imports ([`import`]), synthetic clusters ([`synth`]), and the published figures that those are fitted to
//! ([`published`]).
//!
//! ```text
//! OUT/gleaner-export.json                          says that the folder is an export, and whether whole
//! OUT/samples/date=2026-11-21/samples.parquet      one file per table and UTC date
//! ```

mod error;
mod export;
mod file;
mod folder;
pub mod import;
pub mod published;
pub mod synth;

pub use error::{ExportError, Result};
pub use export::{Export, Exported, Format, Progress, export};
