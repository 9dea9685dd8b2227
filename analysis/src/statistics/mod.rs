//! Statistics that know nothing about memory: pure, mergeable, exact where possible. Causes are numbers from
//! 0, whose meaning only the caller knows.
//!
//! ```text
//! sizes         distribution     mean, deviation, median of very many
//!               mean             mean alone
//! lengths       kaplan_meier     share that lasts longer than t, mean, when some were cut
//!               incidence        and what ends them (competing risks)
//!               quantile_bound   "at least t in 95 % of cases"
//! spells        residual         available now: still so t later?
//! sums by host  bootstrap        intervals of their ratios
//! ```

use serde::{Deserialize, Serialize};

pub(crate) mod bootstrap;
#[cfg(test)]
mod cut_starts;
pub(crate) mod distribution;
pub(crate) mod incidence;
pub(crate) mod kaplan_meier;
pub(crate) mod mean;
pub(crate) mod quantile_bound;
pub(crate) mod residual;

/// Length of a period, and the cause of its end. Ordered by length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Length {
    /// Length as seen, in ms.
    pub(crate) ms: i64,
    /// Number of the cause; `None`: the length is censored, and longer than seen.
    pub(crate) cause: Option<usize>,
}

/// Limits of a 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// The normal distribution's 97.5 % quantile: half the width of a 95 % interval, in deviations.
const Z_95: f64 = 1.959_963_984_540_054;
