//! Files in use: always the most popular files of a catalogue. If a host uses more files, it also uses the
//! popular ones: the files needed during a period are therefore the largest set that is in use at any moment of it.

use super::{Step, size};
use crate::synth::dice::Dice;
use crate::synth::fleet;
use crate::synth::spread::{HostPosition, Property};
use crate::synth::{MIB, PAGE_BYTES, whole_pages};

/// Size of the whole catalogue, as a multiple of the mean size of the files in use.
const MOST: f64 = 12.0;

#[derive(Debug)]
pub(crate) struct Files {
    /// Size of each file together with all more popular ones, in bytes.
    sums_bytes: Vec<i64>,
    always: usize,
    in_use: usize,
    was_busy: bool,
    mib: f64,
    sigma: f64,
    changes_per_hour: f64,
    dice: Dice,
}

impl Files {
    pub(super) fn new(model: &fleet::Files, standing: &HostPosition, mut dice: Dice) -> Self {
        let mib = model.mib * standing.factor(Property::Files, model.between_hosts);
        // Popular files are small and rare ones are large, so that the files in use can match any total
        // within a few percent.
        let count = model.count.max(1);
        let growth = 1.0 + 6.0 / count as f64;
        let first = MOST * mib * (growth - 1.0) / (growth.powi(count as i32) - 1.0);
        let mut sum = 0;
        let sums_bytes: Vec<i64> = (0..count)
            .map(|at| {
                let mean_bytes = first * growth.powi(at as i32) * MIB as f64;
                let bytes = whole_pages((mean_bytes * (0.7 + 0.6 * dice.share())) as i64);
                sum += bytes.max(PAGE_BYTES);
                sum
            })
            .collect();
        let mut files = Self {
            always: 0,
            in_use: 0,
            sums_bytes,
            was_busy: false,
            mib,
            sigma: model.sigma,
            changes_per_hour: model.changes_per_hour,
            dice,
        };
        let always_bytes = (model.always_share * mib * MIB as f64) as i64;
        files.always = files.within(always_bytes).max(model.logs_count.min(count));
        files.in_use = files.always;
        files
    }

    pub(super) fn boot(&mut self) {
        self.in_use = self.always;
        self.was_busy = false;
    }

    /// Number of files in use.
    pub(crate) const fn in_use(&self) -> usize {
        self.in_use
    }

    /// Size of each file of the catalogue.
    pub(crate) fn sizes_bytes(&self) -> impl Iterator<Item = i64> + '_ {
        let before = std::iter::once(&0).chain(&self.sums_bytes);
        self.sums_bytes
            .iter()
            .zip(before)
            .map(|(sum, before)| sum - before)
    }

    /// Number of the most popular files whose total size is at most `bytes`.
    fn within(&self, bytes: i64) -> usize {
        self.sums_bytes.partition_point(|sum| *sum <= bytes)
    }

    /// Advances by a step. Returns the bytes of files in use: at most `most_bytes`, the memory left for the page cache.
    pub(super) fn step(&mut self, step: &Step, is_busy: bool, most_bytes: i64) -> i64 {
        let begins = is_busy && !self.was_busy;
        let changes = step.is_present && self.dice.chance(step.chance(self.changes_per_hour));
        if !is_busy {
            self.in_use = self.always;
        } else if begins || changes {
            let bytes = size(&mut self.dice, self.mib, self.sigma);
            self.in_use = self.within(bytes).max(self.always);
        }
        self.was_busy = is_busy;
        self.in_use = self.in_use.min(self.within(most_bytes));
        let last = self.in_use.checked_sub(1);
        last.and_then(|at| self.sums_bytes.get(at))
            .copied()
            .unwrap_or(0)
    }
}
