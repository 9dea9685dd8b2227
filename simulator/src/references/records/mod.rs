//! Files of the recorder (`simulator/recorder/references.c`), and their analysis.

mod control;
mod files;
mod left;
mod lists;
mod merge;
mod ordered;
mod record;
mod recording;

pub use control::Control;
pub use ordered::write_order;
pub use recording::Recording;

/// Pages in the recorder's list of each thread: `PLACES`. Distances up to this one are not recorded, so curves
/// begin at this memory size.
pub const LIST_PAGES: u64 = 32;
/// Bytes of the recorder's pages: 2 to the power of `PAGE_SHIFT`.
pub const PAGE_BYTES: u64 = 4096;
/// Instructions of a window: `WINDOW_INSTRUCTIONS`.
const WINDOW_INSTRUCTIONS: u64 = 1 << 20;
/// First bytes of every file of the recorder.
const MAGIC: &[u8; 8] = b"GLNRREC2";

#[cfg(test)]
mod tests;
