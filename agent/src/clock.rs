//! The clocks, read together.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// One moment on three clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Wall clock, since 1970-01-01 UTC.
    pub time_ms: i64,
    /// Since boot, suspend included (CLOCK_BOOTTIME).
    pub boottime_ms: i64,
    /// Since boot, suspend excluded (CLOCK_MONOTONIC).
    pub monotonic_ms: i64,
}

impl Moment {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        Self {
            time_ms: milliseconds(clock_gettime(ClockId::Realtime)),
            boottime_ms: milliseconds(clock_gettime(ClockId::Boottime)),
            monotonic_ms: milliseconds(clock_gettime(ClockId::Monotonic)),
        }
    }

    /// Number of the UTC day.
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

/// Wall time for measuring spans, in microseconds.
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
