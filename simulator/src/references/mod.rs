//! Page references of programs: faults and write-backs at every memory size, in one pass over a recording.
//!
//! ```text
//! records (of the recorder) ─► Recording ┐
//! streams (of other programs) ─► trace ──┼─► Profile ─► curve (schemas::curve::Curve)
//!                              └► Shards ┘
//! ```
//!
//! - [`StackDistances`]: exact stack distances (Olken 1981), and write-backs by each page's dirty level (Thompson
//!   and Smith, *Efficient (stack) algorithms for analysis of write-back and sector memories*, ACM Transactions on
//!   Computer Systems 7(1), 1989)
//! - [`Shards`]: the same from a sample of the pages (Waldspurger, Park, Garthwaite and Ahmad, *Efficient MRC
//!   construction with SHARDS*, FAST 2015)
//! - [`WorkingSets`]: distinct pages in windows of time; [`FirstTouches`]: references by the order of first touches
//! - [`Recording`]: analysis of the files that `simulator/recorder/references.c` writes; [`write_order`]: their order of
//!   page references, which [`OrderReader`] reads

mod counts;
mod curve;
mod distances;
mod error;
mod first_touches;
mod order;
mod profile;
mod recency;
mod records;
mod shards;
mod stored;
mod trace;
mod working_sets;

pub use counts::{Faults, MissCounts};
pub use curve::{RunFacts, curve, memory_sizes};
pub use distances::StackDistances;
pub use error::ReferencesError;
pub use first_touches::FirstTouches;
pub use order::{OrderBlock, OrderReader, OrderStep, OrderWriter};
pub use profile::Profile;
pub use records::{Control, LIST_PAGES, PAGE_BYTES, Recording, write_order};
pub use shards::Shards;
pub use stored::{parse_curve, read_curve};
pub use trace::{StreamAnalysis, analyse, estimate};
pub use working_sets::WorkingSets;

#[cfg(test)]
mod tests;
