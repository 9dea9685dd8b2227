//! Users of memory: programs and files, by name if the owner allows names.

pub(crate) mod files;
pub(crate) mod processes;
