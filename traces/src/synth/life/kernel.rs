//! Kernel memory of a host: it grows from boot on, and varies from hour to hour.

use super::Step;
use crate::synth::dice::Dice;
use crate::synth::fleet;
use crate::synth::spread::{HostPosition, Property};
use crate::synth::{MIB, whole_pages};

const DAY_MS: f64 = 86_400_000.0;
/// Changes of the kernel's memory per hour: slabs are allocated and freed together.
const CHANGES_PER_HOUR: f64 = 1.0;

#[derive(Debug)]
pub(super) struct Kernel {
    static_bytes: i64,
    mean_bytes: f64,
    least_bytes: f64,
    most_bytes: f64,
    within: f64,
    growth_per_day: f64,
    up_ms: i64,
    factor: f64,
    dice: Dice,
}

impl Kernel {
    pub(super) fn new(
        model: &fleet::Kernel,
        standing: &HostPosition,
        physical_bytes: i64,
        dice: Dice,
    ) -> Self {
        let mean_bytes =
            model.mib * MIB as f64 * standing.factor(Property::Kernel, model.between_hosts);
        Self {
            static_bytes: whole_pages((mean_bytes * model.static_share) as i64),
            mean_bytes,
            // Minimum of kernel memory. Static memory and lotsfree are constant, and dynamic memory stays above 0.
            least_bytes: mean_bytes * (model.static_share + 1.0) / 2.0,
            most_bytes: 0.95 * physical_bytes as f64,
            within: model.within_host,
            growth_per_day: model.growth_per_day,
            up_ms: 0,
            factor: 1.0,
            dice,
        }
    }

    pub(super) const fn static_bytes(&self) -> i64 {
        self.static_bytes
    }

    pub(super) fn boot(&mut self) {
        self.up_ms = 0;
    }

    pub(super) fn step(&mut self, step: &Step) -> i64 {
        self.up_ms += step.interval_ms;
        if self.dice.chance(step.chance(CHANGES_PER_HOUR)) {
            self.factor = 1.0 + self.within * (self.dice.share() - 0.5) * 12f64.sqrt();
        }
        let grown = self.growth_per_day * self.up_ms as f64 / DAY_MS;
        let bytes = self.mean_bytes * (self.factor + grown);
        whole_pages(bytes.clamp(self.least_bytes, self.most_bytes.max(self.least_bytes)) as i64)
    }
}
