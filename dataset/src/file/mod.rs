//! Arrow files: index, staging, mapping and reading; and the cache of open files.

mod batch_cache;
mod hashing;
pub(crate) mod index;
pub(crate) mod mapped;
pub(crate) mod open_files;
pub(crate) mod staged;
