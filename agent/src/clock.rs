//! Reads the clocks together.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// A moment on three clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Wall clock, since 1970-01-01 UTC.
    pub time_ms: i64,
    /// Time since boot, including suspend (CLOCK_BOOTTIME).
    pub boottime_ms: i64,
    /// Time since boot, excluding suspend (CLOCK_MONOTONIC).
    pub monotonic_ms: i64,
}

impl Moment {
    /// Reads the clocks. If the agent was interrupted between two of them, reads them again: the delay would
    /// look like a sleep or a step of the clock. On a host so busy that every attempt is interrupted, the
    /// last reading counts.
    #[must_use]
    pub fn now() -> Self {
        const ATTEMPTS: usize = 8;
        let read = || Self {
            monotonic_ms: milliseconds(clock_gettime(ClockId::Monotonic)), // first, to time the reading
            boottime_ms: milliseconds(clock_gettime(ClockId::Boottime)),
            time_ms: milliseconds(clock_gettime(ClockId::Realtime)),
        };
        let mut moment = read();
        for _ in 1..ATTEMPTS {
            if milliseconds(clock_gettime(ClockId::Monotonic)) - moment.monotonic_ms <= 1 {
                break;
            }
            moment = read();
        }
        moment
    }

    /// Number of the UTC day, counted from 1970-01-01.
    #[must_use]
    pub const fn utc_day(&self) -> i64 {
        self.time_ms.div_euclid(86_400_000)
    }
}

/// CPU time that this process used so far, in microseconds.
#[must_use]
pub fn own_cpu_us() -> i64 {
    microseconds(clock_gettime(ClockId::ProcessCPUTime))
}

/// Monotonic time for measuring durations, in microseconds.
#[must_use]
pub fn monotonic_us() -> i64 {
    microseconds(clock_gettime(ClockId::Monotonic))
}

const fn milliseconds(time: Timespec) -> i64 {
    time.tv_sec * 1000 + time.tv_nsec / 1_000_000
}

const fn microseconds(time: Timespec) -> i64 {
    time.tv_sec * 1_000_000 + time.tv_nsec / 1000
}
