//! Adds rows to a dataset, and seals them.

mod marks;
mod pending;
mod seal;
mod writer;

pub use seal::Summary;
pub use writer::Writer;
