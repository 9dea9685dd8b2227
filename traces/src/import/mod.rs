//! Traces of other programs, taken into a dataset.
//!
//! ```text
//! source's file ──► its parser (`bitbrains`) ──► mend ──► machine ──► write ──► dataset
//!                   rows, or why not             one sample a time    columns that the source has
//! ```
//!
//! A source says which columns it fills and from what ([`Source::fills`]); all else is absent, never 0. What
//! is rough is mended and counted ([`Mended`]); what is hopeless is refused by file and line before anything
//! is written. Ids follow from the names of source and machine, and a record's number from its time: what was
//! imported before is imported again without effect, into whatever dataset.

pub mod bitbrains;
mod error;
mod files;
mod machine;
mod mend;
mod source;
mod write;

pub use error::ImportError;
pub use machine::{Imported, Machine, Outcome, Progress};
pub use mend::{Mended, Observation, Reading, mend};
pub use source::{Filled, Source};
