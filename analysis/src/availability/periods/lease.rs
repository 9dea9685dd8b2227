//! Availability periods that last as long as a lease of memory would have lasted, with the causes that end
//! them.

use crate::availability::periods::window::{Period, Window};
use crate::statistics::Length;
use crate::statistics::residual::{Residual, Spell};
use gleaner_schemas::findings::EndCause;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Number of causes; a cause's number is its position in the declaration.
pub(crate) const CAUSES: usize = EndCause::ALL.len();

pub(super) const MINUTE_MS: i64 = 60_000;
pub(super) const HOUR_MS: i64 = 60 * MINUTE_MS;
pub(super) const DAY_MS: i64 = 24 * HOUR_MS;

/// Horizons of the probabilities that memory stays available.
const AHEAD_MS: [i64; 10] = [
    10 * MINUTE_MS,
    30 * MINUTE_MS,
    HOUR_MS,
    2 * HOUR_MS,
    4 * HOUR_MS,
    8 * HOUR_MS,
    12 * HOUR_MS,
    DAY_MS,
    3 * DAY_MS,
    7 * DAY_MS,
];

/// An availability period that is long enough to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lease {
    pub(crate) ms: i64,
    pub(crate) start_seen: bool,
    /// Cause of the end; `None`: the end was not seen.
    pub(crate) end: Option<EndCause>,
}

/// Leases of one region size on one host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HostLeases {
    /// Periods not shorter than the minimum, in order.
    pub(crate) kept: Vec<Lease>,
    /// Outcomes at each horizon, over all periods, short ones included.
    pub(crate) ahead: Residual<CAUSES>,
}

/// Leases of one region size by host, in the order of host ids. Classes share the hosts' leases.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Leases {
    pub(crate) hosts: Vec<Arc<HostLeases>>,
}

impl Lease {
    /// Length for estimates by age. If the start was not seen, the age is unknown: the lease is only known to
    /// have lasted longer than was seen.
    pub(crate) fn length(&self) -> Length {
        let end = self.end.filter(|_| self.start_seen);
        Length {
            ms: self.ms,
            cause: end.map(|cause| cause as usize),
        }
    }
}

impl Leases {
    /// Leases of a region of `region_bytes` in one host's windows.
    pub(crate) fn of(
        time_ms: &[i64],
        available_bytes: &[i64],
        windows: &[Window],
        region_bytes: i64,
        minimum_ms: f64,
    ) -> Self {
        let mut kept = Vec::new();
        let mut ahead = Residual::new(&AHEAD_MS);
        for window in windows {
            for period in window.periods(time_ms, available_bytes, region_bytes) {
                ahead.add(&spell(&period));
                if period.is_kept(minimum_ms) {
                    kept.push(Lease {
                        ms: period.length_ms(),
                        start_seen: period.start_seen,
                        end: period.end,
                    });
                }
            }
        }
        Self {
            hosts: vec![Arc::new(HostLeases { kept, ahead })],
        }
    }

    /// Adds the leases of other hosts.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.hosts.extend_from_slice(&other.hosts);
    }
}

pub(super) fn spell(period: &Period) -> Spell {
    Spell {
        from_ms: period.from_ms,
        to_ms: period.to_ms,
        cause: period.end.map(|cause| cause as usize),
        observed_to_ms: period.observed_to_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_numbered_by_their_declaration() {
        for (number, cause) in EndCause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, number);
        }
    }

    #[test]
    fn kept_and_looked_ahead_from() {
        // Three periods: 20 minutes until memory falls; one sample, too short to count; 90 minutes until the
        // host sleeps.
        let minutes = [0, 20, 30, 31, 40, 130];
        let time = minutes.map(|m| m * MINUTE_MS);
        let window = Window {
            samples: 0..6,
            end_ms: time[5],
            start_seen: false,
            end: Some(EndCause::SleepOrPower),
            observed_to_ms: time[5] + DAY_MS,
        };
        let found = Leases::of(&time, &[9, 0, 9, 0, 9, 9], &[window], 9, 5.0 * 60_000.0);
        let lease = |minutes: i64, start_seen, end| Lease {
            ms: minutes * MINUTE_MS,
            start_seen,
            end: Some(end),
        };
        let host = &found.hosts[0];
        let expected = [
            lease(20, false, EndCause::Memory),
            lease(90, true, EndCause::SleepOrPower),
        ];
        assert_eq!(host.kept, expected);
        // The first lease began before the trace, so its age is unknown.
        assert_eq!(host.kept[0].length().cause, None);
        assert_eq!(host.kept[1].length().cause, Some(3));
        // Ten minutes later, memory is still available for 10 of 20, 0 of 1 and 80 of 90 minutes.
        let ten = host.ahead.ahead[0];
        assert_eq!(
            (ten.counted_ms, ten.survived_ms),
            (111 * MINUTE_MS, 90 * MINUTE_MS)
        );
        assert_eq!(ten.ended_ms, [0, 0, 11, 10, 0, 0].map(|m| m * MINUTE_MS));
    }
}
