//! Parts of scenario files and of their results that are the same for every system with settings as a table: global
//! memory, and memory servers.

pub(crate) mod file;
mod row;

pub use row::{Spread, SweptRow};
