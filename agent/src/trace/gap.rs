//! Gaps between samples. All functions here are pure functions of two moments.

use crate::clock::Moment;

/// Largest step of the wall clock against CLOCK_BOOTTIME that does not make a gap. Times before and after a
/// larger step would not be comparable. Slewed clocks stay far below it between two samples.
pub(crate) const CLOCK_STEP_MS: i64 = 5000;

/// Cause of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The host slept.
    Sleep,
    /// The agent did not run.
    Stopped,
    /// The host was booted.
    Boot,
    /// The wall clock was set.
    ClockStep,
    /// The agent got no CPU.
    Late,
    /// Samples could not be stored.
    Unwritable,
    /// The database was damaged, and a new one begun.
    Damaged,
}

impl Cause {
    /// Name of the cause, as the database stores it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sleep => "sleep",
            Self::Stopped => "stopped",
            Self::Boot => "boot",
            Self::ClockStep => "clock_step",
            Self::Late => "late",
            Self::Unwritable => "unwritable",
            Self::Damaged => "damaged",
        }
    }
}

/// Last sample in the database when an agent starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastSample {
    /// Wall-clock time of the sample.
    pub time_ms: i64,
    /// Time since boot; `None` if a captured tree lacked it.
    pub boottime_ms: Option<i64>,
    /// Hash of the boot's id.
    pub boot_id: Option<String>,
}

/// Cause of the gap between the last sample of an earlier run and the first one of this run. There is always
/// such a gap.
#[must_use]
pub fn at_start(last: &LastSample, now: &Moment, boot_id: Option<&str>) -> Cause {
    let booted = match (last.boot_id.as_deref(), boot_id) {
        (Some(before), Some(now)) => before != now,
        _ => last
            .boottime_ms
            .is_some_and(|before| now.boottime_ms < before),
    };
    if booted { Cause::Boot } else { Cause::Stopped }
}

/// Cause of the gap between two samples of one run; `None` if there is no gap.
///
/// Samples more than two intervals apart have a gap: a sleep if the host was suspended for most of the
/// missing time, otherwise a late agent.
#[must_use]
pub fn between(before: &Moment, now: &Moment, interval_ms: i64) -> Option<Cause> {
    let passed_ms = now.boottime_ms - before.boottime_ms;
    let suspended_ms = passed_ms - (now.monotonic_ms - before.monotonic_ms);
    let stepped_ms = (now.time_ms - before.time_ms) - passed_ms;
    if passed_ms > 2 * interval_ms {
        let missing_ms = passed_ms - interval_ms;
        return Some(if suspended_ms * 2 > missing_ms {
            Cause::Sleep
        } else {
            Cause::Late
        });
    }
    (stepped_ms.abs() > CLOCK_STEP_MS).then_some(Cause::ClockStep)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_two_samples_of_a_run() {
        const INTERVAL_MS: i64 = 90_000;
        let cases = [
            // Each case: time passed on wall, boot and monotonic clock, in ms; expected cause of a gap.
            (90_000, 90_000, 90_000, None),
            (180_000, 180_000, 180_000, None),
            (180_001, 180_001, 180_001, Some(Cause::Late)),
            (3_690_000, 3_690_000, 90_000, Some(Cause::Sleep)),
            (3_690_000, 3_690_000, 2_000_000, Some(Cause::Late)), // of the missing hour, 28 min asleep
            (3_690_000, 3_690_000, 1_800_000, Some(Cause::Sleep)), // 31 min asleep
            (95_000, 90_000, 90_000, None),
            (95_001, 90_000, 90_000, Some(Cause::ClockStep)),
            (-3_600_000, 90_000, 90_000, Some(Cause::ClockStep)),
            (0, 3_690_000, 90_000, Some(Cause::Sleep)), // a sleep explains more than the step
            (90_000, 90_000, 60_000, None),             // a short sleep within one interval
        ];
        let before = Moment {
            time_ms: 1_000_000,
            boottime_ms: 5000,
            monotonic_ms: 4000,
        };
        for (wall, boottime, monotonic, gap) in cases {
            let now = Moment {
                time_ms: before.time_ms + wall,
                boottime_ms: before.boottime_ms + boottime,
                monotonic_ms: before.monotonic_ms + monotonic,
            };
            assert_eq!(
                between(&before, &now, INTERVAL_MS),
                gap,
                "{wall} {boottime} {monotonic}"
            );
        }
    }

    #[test]
    fn at_the_start_of_a_run() {
        let last = |boot_id: Option<&str>| LastSample {
            time_ms: 0,
            boottime_ms: Some(5000),
            boot_id: boot_id.map(str::to_owned),
        };
        let untold = LastSample {
            boottime_ms: None,
            ..last(None)
        };
        let at = |boottime_ms| Moment {
            boottime_ms,
            ..Moment::default()
        };
        let cases = [
            (last(Some("a")), at(9000), Some("a"), Cause::Stopped),
            (last(Some("a")), at(9000), Some("b"), Cause::Boot),
            (last(None), at(9000), Some("b"), Cause::Stopped),
            (last(None), at(4000), None, Cause::Boot),
            (untold, at(4000), None, Cause::Stopped),
        ];
        for (last, now, boot_id, cause) in cases {
            assert_eq!(
                at_start(&last, &now, boot_id),
                cause,
                "{last:?} {now:?} {boot_id:?}"
            );
        }
    }
}
