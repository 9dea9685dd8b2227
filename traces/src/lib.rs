//! Traces of other programs and for other programs: exports ([`export`]), imports ([`import`]), and synthetic
//! clusters ([`synth`]).

mod error;
pub mod export;
pub mod import;
pub mod synth;

pub use error::{ExportError, Result};
pub use export::tables::{Export, Progress, export};
pub use export::{Exported, Format};
