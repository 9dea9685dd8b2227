//! Programs that the owner opens and closes. They are active while the owner uses them; some are also active
//! while the owner is away.

use super::{Origin, Running, Step, one_of, shared, size};
use crate::synth::dice::Dice;
use crate::synth::fleet;
use crate::synth::spread::{HostPosition, Property};
use std::sync::Arc;

const HOUR_MS: f64 = 3_600_000.0;

#[derive(Debug)]
pub(super) struct Programs {
    model: fleet::Programs,
    names: Vec<Arc<str>>,
    /// Factor by which the class's rate of opened programs is multiplied for this owner.
    rate: f64,
    dice: Dice,
}

impl Programs {
    pub(super) fn new(
        model: &fleet::Programs,
        names: &[String],
        standing: &HostPosition,
        dice: Dice,
    ) -> Self {
        Self {
            rate: standing.rate(Property::Programs, 1.0, model.between_hosts),
            model: model.clone(),
            names: shared(names),
            dice,
        }
    }

    pub(super) fn step(&mut self, step: &Step, running: &mut Vec<Running>, next_number: &mut u64) {
        let Self { model, dice, .. } = self;
        let changes = if step.is_present {
            step.chance(60.0 / model.active_change_minutes.max(0.1))
        } else {
            0.0
        };
        for program in running.iter_mut().filter(|r| r.origin == Origin::Program) {
            if !step.is_present {
                program.is_active = program.is_active_while_away;
            } else if dice.chance(changes) {
                program.is_active = dice.chance(model.active_share);
            }
        }
        if step.is_present && dice.chance(step.chance(model.per_hour * self.rate)) {
            let ends_ms = step.time_ms + dice.wait(model.hours * HOUR_MS) as i64 + 1;
            running.push(Running {
                number: *next_number,
                name: one_of(dice, &self.names),
                origin: Origin::Program,
                started_ms: step.time_ms - dice.between(0, step.interval_ms),
                ends_ms,
                bytes: size(dice, model.mib, model.sigma),
                resident_bytes: 0,
                is_active: true,
                is_active_while_away: dice.chance(model.active_away_share),
                load: 0.0,
            });
            *next_number += 1;
        }
    }
}
