//! Quality of the data: the parts that could not be seen or measured, and the cost of tracing.

pub(crate) mod cost;
pub(crate) mod coverage;
pub(crate) mod missing;
pub(crate) mod sight;
