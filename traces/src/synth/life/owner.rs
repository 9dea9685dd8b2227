//! The owner's times at the keyboard, by weekday and hour.

use crate::synth::dice::Dice;
use crate::synth::fleet;
use crate::synth::spread::{HostPosition, Property};
use std::collections::VecDeque;

const MINUTE_MS: f64 = 60_000.0;
const HOUR_MS: f64 = 60.0 * MINUTE_MS;
const DAY_MS: i64 = 86_400_000;

/// Longest absence of an owner, in days.
const LONGEST_ABSENCE_DAYS: i64 = 30;

/// A continuous time at the keyboard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    pub(crate) from_ms: i64,
    pub(crate) to_ms: i64,
}

/// Owner of one host.
#[derive(Debug)]
pub(crate) struct Owner {
    model: fleet::Owner,
    /// Usual hour of arrival of this owner; `stays_hours`: hours at work.
    comes_hour: f64,
    stays_hours: f64,
    /// First day that is not planned yet, counted from 1970-01-01.
    next_day: i64,
    /// Planned stretches that have not ended.
    stretches: VecDeque<Stretch>,
    last_active_ms: Option<i64>,
}

impl Owner {
    pub(super) fn new(model: &fleet::Owner, standing: &HostPosition, start_ms: i64) -> Self {
        let away = |property, spread| spread * (standing.of(property) - 0.5) * 12f64.sqrt();
        Self {
            comes_hour: model.arrives_hour + away(Property::Arrival, model.arrives_spread_hours),
            stays_hours: model.stays_hours + away(Property::Stay, model.stays_spread_hours),
            model: model.clone(),
            next_day: start_ms.div_euclid(DAY_MS),
            stretches: VecDeque::new(),
            last_active_ms: None,
        }
    }

    /// The stretch at `time_ms`, or else the next one. Times must not decrease from call to call.
    pub(crate) fn stretch(&mut self, dice: &mut Dice, time_ms: i64) -> Stretch {
        loop {
            match self.stretches.front() {
                Some(stretch) if stretch.to_ms > time_ms => return *stretch,
                Some(stretch) => {
                    self.last_active_ms = Some(stretch.to_ms);
                    self.stretches.pop_front();
                }
                None => self.plan(dice),
            }
        }
    }

    /// Time of the owner's last activity before the `time_ms` of the last call of [`Self::stretch`].
    pub(crate) const fn last_active_ms(&self) -> Option<i64> {
        self.last_active_ms
    }

    /// Plans the stretches of the next day on which the owner comes.
    fn plan(&mut self, dice: &mut Dice) {
        for _ in 0..LONGEST_ABSENCE_DAYS {
            if dice.chance(self.model.presence_shares[kind_of(self.next_day)]) {
                break;
            }
            self.next_day += 1;
        }
        let (comes_hour, stays_hours) = if kind_of(self.next_day) == 0 {
            let comes_hour = self.comes_hour + dice.share() - 0.5;
            (comes_hour, self.stays_hours + dice.share() - 0.5)
        } else {
            (9.0 + 9.0 * dice.share(), 1.0 + 3.0 * dice.share())
        };
        let midnight_ms = self.next_day * DAY_MS;
        let last_ms = self
            .stretches
            .back()
            .map(|s| s.to_ms)
            .or(self.last_active_ms);
        let comes_ms = midnight_ms + (comes_hour.max(0.0) * HOUR_MS) as i64;
        // The previous working day may have lasted beyond midnight.
        let mut from_ms = comes_ms.max(last_ms.map_or(comes_ms, |last| last + HOUR_MS as i64));
        let leaves_ms = comes_ms + (stays_hours.clamp(0.1, 23.0) * HOUR_MS) as i64;
        let lunch_ms = midnight_ms + ((12.0 + dice.share()) * HOUR_MS) as i64;
        let mut had_lunch = lunch_ms < from_ms || !self.model.has_lunch;
        while from_ms < leaves_ms {
            let active_ms = MINUTE_MS + dice.wait(self.model.stretch_minutes * MINUTE_MS);
            let to_ms = (from_ms + active_ms as i64).min(leaves_ms);
            self.stretches.push_back(Stretch { from_ms, to_ms });
            let is_lunch = !had_lunch && to_ms >= lunch_ms;
            had_lunch |= is_lunch;
            let away_ms = if is_lunch {
                30.0 * MINUTE_MS + dice.wait(15.0 * MINUTE_MS)
            } else {
                MINUTE_MS + dice.wait(self.model.pause_minutes * MINUTE_MS)
            };
            from_ms = to_ms + away_ms as i64;
        }
        self.next_day += 1;
    }
}

/// Index in `presence_shares` for the kind of day: weekday, Saturday or Sunday.
fn kind_of(day: i64) -> usize {
    const MONDAY: i64 = 4; // 1970-01-05
    match (day - MONDAY).rem_euclid(7) {
        5 => 1,
        6 => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::Preset;

    #[test]
    fn weekdays_are_worked_and_stretches_never_overlap() {
        const MONDAY_MS: i64 = 1_793_577_600_000; // 2026-11-02
        let (mut weekday_ms, mut weekend_ms) = (0, 0);
        for seed in 0..20 {
            let mut dice = Dice::new(seed, 0);
            let model = Preset::Modern.fleet().unwrap().owner;
            let standing = HostPosition::new(seed, 0);
            let mut owner = Owner::new(&model, &standing, MONDAY_MS);
            let mut time_ms = MONDAY_MS;
            while time_ms < MONDAY_MS + 28 * DAY_MS {
                let stretch = owner.stretch(&mut dice, time_ms);
                assert!(time_ms < stretch.to_ms && stretch.from_ms < stretch.to_ms);
                assert!(stretch.from_ms >= time_ms, "overlaps the one before");
                assert!(owner.last_active_ms().is_none_or(|last| last <= time_ms));
                let worked_ms = stretch.to_ms - stretch.from_ms;
                if (stretch.from_ms - MONDAY_MS).div_euclid(DAY_MS) % 7 < 5 {
                    weekday_ms += worked_ms;
                } else {
                    weekend_ms += worked_ms;
                }
                time_ms = stretch.to_ms;
            }
        }
        let hours = |worked_ms: i64, days: i64| worked_ms / (20 * 4 * days) / 3_600_000;
        assert!((3..9).contains(&hours(weekday_ms, 5)), "{weekday_ms}");
        assert!(hours(weekend_ms, 2) < 1, "{weekend_ms}");
    }
}
