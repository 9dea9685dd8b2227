//! Estimators: how long something lasts, when some of it was cut off before it ended.
//!
//! Pure: lengths and sums in, estimates out; no I/O, no clock, no tables. What a cause is, is the
//! caller's business: causes are numbered from 0.
//!
//! ```text
//! by age       lengths ─► kaplan_meier (survival, mean)   ─► incidence (which cause, competing risks)
//!              lengths ─► quantile_bound ("at least t in 95 % of cases")
//! by the clock periods ─► residual (available now: still so t later?)
//! over hosts   sums    ─► bootstrap (intervals of ratios)
//! ```

#![allow(dead_code)] // until the measures call it

pub(crate) mod bootstrap;
pub(crate) mod incidence;
pub(crate) mod kaplan_meier;
pub(crate) mod quantile_bound;
pub(crate) mod residual;

/// How long something lasted, and what ended it. Ordered by length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Length {
    /// As seen.
    pub(crate) ms: i64,
    /// The cause's number; `None`: it was cut (censored), and lasted longer than seen.
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
