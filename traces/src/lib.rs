//! Traces in other formats: exports ([`export`]), imports of other programs' traces ([`import`]), synthetic
//! clusters ([`synth`]), and the published figures to which synthetic clusters are fitted ([`published`]).
//!
//! Rooms, from the top; each uses only those after it: `export`, `import`, `synth`, `published`, `error`.

mod error;
pub mod export;
pub mod import;
pub mod published;
pub mod synth;

pub use error::{ExportError, Result};
pub use export::tables::{Export, Progress, export};
pub use export::{ExportSummary, Format};
