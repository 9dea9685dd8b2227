//! Arrow files: index, staging, and reading from a map or from a store; and the cache of open files.

pub(crate) mod arrow_file;
mod batch_cache;
mod hashing;
pub(crate) mod host_order;
pub(crate) mod index;
pub(crate) mod open_files;
mod remote;
pub(crate) mod staged;
