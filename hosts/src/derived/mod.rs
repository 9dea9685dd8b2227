//! Facts derived from a host's samples: categories, idle and busy periods, returns, footprints at a
//! return.

mod busy;
mod figures;
mod footprint;
mod idle;
mod returns;
#[cfg(test)]
mod testing;

pub use busy::{BusyPeriod, busy_periods};
pub use figures::{Figures, mem_available_bytes, unsigned};
pub use footprint::{Footprint, Process, returned_boottime_ms};
pub use idle::{IdlePeriod, Idleness};
pub use returns::{Return, return_of, returns};
