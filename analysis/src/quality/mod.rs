//! Quality of the data: what could not be observed or measured, and the cost of tracing.

pub(crate) mod cost;
pub(crate) mod coverage;
pub(crate) mod missing;
pub(crate) mod sight;
