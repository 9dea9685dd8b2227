//! Jobs that start at random times and end by themselves; and programs that run while the owner is
//! away.

use super::{Origin, Running, Step, one_of, shared, size};
use crate::synth::MIB;
use crate::synth::dice::Dice;
use crate::synth::fleet::{AbsenceProgram, Class, Job, Names};
use crate::synth::spread::{HostPosition, Property};
use std::sync::Arc;

const MINUTE_MS: f64 = 60_000.0;

#[derive(Debug)]
pub(super) struct Jobs {
    kinds: [Kind; 3],
    away: AbsenceProgram,
    away_names: Vec<Arc<str>>,
    has_away: bool,
    /// End of the latest absence for which a program's start was drawn.
    absence_ms: i64,
    /// Clock time, in ms, at which a program starts during the owner's current absence; `None` if no program is
    /// still to start.
    begins_ms: Option<i64>,
    physical_bytes: i64,
    dice: Dice,
}

#[derive(Debug)]
struct Kind {
    job: Job,
    names: Vec<Arc<str>>,
    /// Factor by which the class's rate is multiplied on this host; 0 if such jobs never run on it.
    rate: f64,
}

impl Jobs {
    pub(super) fn new(class: &Class, names: &Names, standing: &HostPosition, dice: Dice) -> Self {
        let kind = |job: &Job, names: &[String], property| Kind {
            rate: standing.rate(property, job.hosts_share, job.between_hosts),
            job: job.clone(),
            names: shared(names),
        };
        Self {
            kinds: [
                kind(&class.commands, &names.commands, Property::Commands),
                kind(&class.background, &names.background, Property::Background),
                kind(&class.hogs, &names.hogs, Property::Hogs),
            ],
            has_away: standing.of(Property::Away) < class.away.hosts_share,
            away: class.away.clone(),
            away_names: shared(&names.away),
            absence_ms: i64::MIN,
            begins_ms: None,
            physical_bytes: class.memory_mib * MIB,
            dice,
        }
    }

    pub(super) fn step(&mut self, step: &Step, running: &mut Vec<Running>, next_number: &mut u64) {
        let dice = &mut self.dice;
        let mut start = |name, ends_ms, bytes, load| {
            running.push(Running {
                number: *next_number,
                name,
                origin: Origin::Job,
                started_ms: step.time_ms,
                ends_ms,
                bytes,
                resident_bytes: 0,
                is_active: true,
                is_active_while_away: true,
                load,
            });
            *next_number += 1;
        };
        for Kind { job, names, rate } in &self.kinds {
            let per_hour = job.per_hour[usize::from(!step.is_present)] * rate;
            if !dice.chance(step.chance(per_hour)) {
                continue;
            }
            let bytes = if dice.chance(job.all_memory_share) {
                self.physical_bytes
            } else {
                size(dice, job.mib, job.sigma).min(self.physical_bytes)
            };
            let ends_ms = step.time_ms + dice.wait(job.minutes * MINUTE_MS) as i64 + 1;
            start(one_of(dice, names), ends_ms, bytes, job.load);
        }
        let has_left = !step.is_present && self.absence_ms != step.returns_ms;
        if has_left {
            self.absence_ms = step.returns_ms;
            let from_ms = step.left_ms.unwrap_or(step.time_ms);
            let least_ms = (self.away.least_minutes * MINUTE_MS) as i64;
            let is_long = step.returns_ms - from_ms >= least_ms;
            // These numbers are always drawn, so that the owner has no influence on the draws that follow.
            let (has, after) = (dice.chance(self.away.share), 0.5 + dice.share());
            let after_ms = (self.away.after_minutes * MINUTE_MS * after) as i64;
            self.begins_ms = (self.has_away && is_long && has).then_some(from_ms + after_ms);
        }
        if !step.is_present
            && self
                .begins_ms
                .is_some_and(|begins_ms| begins_ms <= step.time_ms)
        {
            self.begins_ms = None;
            let bytes = size(dice, self.away.mib, self.away.sigma);
            let name = one_of(dice, &self.away_names);
            start(name, step.returns_ms, bytes.min(self.physical_bytes), 0.0);
        }
    }
}
