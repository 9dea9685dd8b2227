//! How far the data can be trusted: what could not be seen or measured, and what tracing cost.

pub(crate) mod cost;
pub(crate) mod coverage;
pub(crate) mod missing;
pub(crate) mod sight;
