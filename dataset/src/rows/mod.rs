//! Rows of a table in memory: collected into batches, identified and sorted.

mod builder;
pub(crate) mod identity;
pub(crate) mod order;
mod projection;

pub use builder::{Identity, RowsBuilder};
pub(crate) use projection::projected;
