//! Two clocks: the wall clock for people, and the boot clock, which includes time asleep and cannot be set.

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds since the boot, sleep included (CLOCK_BOOTTIME).
pub(crate) fn boot_ms() -> i64 {
    ms(ClockId::Boottime)
}

/// Milliseconds since 1970-01-01 UTC.
pub(crate) fn wall_ms() -> i64 {
    ms(ClockId::Realtime)
}

/// Converts a time of the wall clock to the clock of [`boot_ms`].
pub(crate) fn on_boot_clock(time_ms: i64) -> i64 {
    boot_ms().saturating_add(time_ms.saturating_sub(wall_ms()))
}

fn ms(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}
