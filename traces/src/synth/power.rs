//! Times in which a host is not sampled: the host sleeps, is off, or its agent restarts.

use super::dice::Dice;
use super::fleet::{Habit, System};
use super::life::Stretch;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: f64 = 24.0 * HOUR_MS as f64;

/// Cause of a time without samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The host sleeps.
    Sleep,
    /// The host is off, or boots.
    Off,
    /// The agent does not run.
    Stopped,
}

/// A time without samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interruption {
    pub(super) cause: Cause,
    pub(super) from_ms: i64,
    /// Time at which the host is awake again, has booted, or the agent starts.
    pub(super) to_ms: i64,
}

/// Interruption, if any, between the sample at `from_ms` and the one due at `due_ms`. `next` is the owner's
/// present or next stretch at the keyboard; `last_active_ms` is the time of the owner's last activity.
pub(super) fn interruption(
    dice: &mut Dice,
    system: &System,
    habit: Habit,
    (from_ms, due_ms): (i64, i64),
    next: &Stretch,
    last_active_ms: Option<i64>,
) -> Option<Interruption> {
    let is_away = next.from_ms > due_ms;
    let passed_days = (due_ms - from_ms) as f64 / DAY_MS;
    // These numbers are always drawn, so that the owner has no influence on the draws that follow.
    let mut happens = |days: Option<f64>| {
        let share = dice.share();
        days.is_some_and(|days| share < passed_days / days)
    };
    let (reboots, restarts) = (happens(system.reboot_days), happens(system.restart_days));
    if !is_away {
        return None;
    }
    let (cause, patience_ms, least_ms, lead_ms) = match habit {
        Habit::Sleep => (Cause::Sleep, 10 * MINUTE_MS, 20 * MINUTE_MS, 2000),
        Habit::Off => (Cause::Off, 5 * MINUTE_MS, 4 * HOUR_MS, 2 * MINUTE_MS),
        Habit::On => (Cause::Off, 0, i64::MAX, 0),
    };
    if let Some(last_ms) = last_active_ms {
        let down_ms = (last_ms + patience_ms).max(from_ms + 1);
        let up_ms = next.from_ms - lead_ms;
        if down_ms < due_ms && up_ms - down_ms >= least_ms {
            return Some(Interruption {
                cause,
                from_ms: down_ms,
                to_ms: up_ms,
            });
        }
    }
    let (cause, length_ms) = if reboots {
        (Cause::Off, dice.between(MINUTE_MS / 2, 3 * MINUTE_MS))
    } else if restarts {
        (Cause::Stopped, dice.between(1000, 10 * MINUTE_MS))
    } else {
        return None;
    };
    let down_ms = from_ms + (due_ms - from_ms) / 2;
    Some(Interruption {
        cause,
        from_ms: down_ms,
        to_ms: down_ms + length_ms,
    })
}
