//! Adding and sealing of rows.

mod marks;
mod pending;
mod seal;
mod writer;

pub use seal::Summary;
pub use writer::Writer;
