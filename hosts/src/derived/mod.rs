//! Conclusions from a host's samples: idle periods, returns.

mod idle;
mod returns;

pub use idle::{IdlePeriod, Idleness};
pub use returns::{Return, return_of, returns};
