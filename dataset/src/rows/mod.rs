//! Rows of a table in memory: made one by one, named by their identity, ordered.

mod builder;
pub(crate) mod identity;
pub(crate) mod order;
mod projection;

pub use builder::{Identity, RowsBuilder};
pub(crate) use projection::projected;
