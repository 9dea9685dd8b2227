//! Conclusions from a host's samples: idle periods, returns, footprints at a return.

mod footprint;
mod idle;
mod returns;

pub use footprint::{Footprint, Process, returned_boottime_ms};
pub use idle::{IdlePeriod, Idleness};
pub use returns::{Return, return_of, returns};
