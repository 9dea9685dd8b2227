//! Users of the memory: programs and files, by name where the owner allows it.

pub(crate) mod files;
pub(crate) mod processes;
