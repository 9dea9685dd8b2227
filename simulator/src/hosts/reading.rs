//! Selects the part of a dataset to read, and the limits of lending.

use super::Foresight;
use gleaner_policy::forecast::LOW_WATER_S;
use gleaner_policy::idle::IdleRule;
use gleaner_policy::quota::Limits;

/// Time after a return in which processes count as the owner's (Acharya & Setia, section 3.4: 200 s).
const RETURN_WINDOW_MS: i64 = 200_000;

/// The part of a dataset to read, with the limits of lending.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The simulation's begin, ms since 1970-01-01 UTC.
    pub from_ms: i64,
    /// The simulation's end, ms since 1970-01-01 UTC.
    pub until_ms: i64,
    /// Idle rule of the hosts.
    pub idle: IdleRule,
    /// Headrooms and cap; the mode is ignored, since timelines contain all modes.
    pub limits: Limits,
    /// Time after a return in which active processes count as the owner's.
    pub return_window_ms: i64,
    /// True if hosts have no owners (servers): available memory may be lent at any time, and no owner ever
    /// returns.
    pub is_always_idle: bool,
    /// Forecasts that reduce the quotas; `None`: hosts lend their whole quota.
    pub foresight: Option<Foresight>,
}

impl Reading {
    /// Reading of a span of time with the paper's limits.
    #[must_use]
    pub fn between(from_ms: i64, until_ms: i64) -> Self {
        Self {
            from_ms,
            until_ms,
            idle: IdleRule::default(),
            limits: Limits::default(),
            return_window_ms: RETURN_WINDOW_MS,
            is_always_idle: false,
            foresight: None,
        }
    }

    /// Converts a time to ns since the simulation's begin; times before the begin give 0.
    #[must_use]
    pub const fn ns(&self, time_ms: i64) -> u64 {
        let since_ms = time_ms.saturating_sub(self.from_ms);
        if since_ms <= 0 {
            0
        } else {
            (since_ms as u64).saturating_mul(crate::event::MS)
        }
    }

    /// Begin of the samples that are read: early enough for the idle rule to know the host's state at the
    /// simulation's begin.
    pub(super) const fn lead_ms(&self) -> i64 {
        // Twice the rule's time, and ten minutes more, which usual sample intervals do not exceed.
        let lead_ms = self
            .from_ms
            .saturating_sub(self.idle.idle_after_ms.saturating_mul(2))
            .saturating_sub(600_000);
        // Forecasts use the low water of the last day.
        match self.foresight {
            Some(_) => lead_ms.saturating_sub(LOW_WATER_S * 1000),
            None => lead_ms,
        }
    }
}
