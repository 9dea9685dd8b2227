//! The simulations of one seed: which ones the requested figures need, and their outcomes.

use crate::error::{FidelityError, Result};
use gleaner_simulator::gms::experiments::{
    FIGURE_7_PROGRAMS, SKEWS, Skew, figure_6, figure_7, figure_8, figure_9, figure_10, figure_12,
};
use gleaner_simulator::gms::{MemoryPolicy, Outcome, Program, Scenario, simulate};
use gleaner_simulator::parallel;
use gleaner_terminal::ProgressBar;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// Idle memory of Figure 6, in MB: 0, 25 … 250.
pub(super) const STEPS_OF_25_MB: std::ops::RangeInclusive<u32> = 0..=10;
/// Groups of five nodes in Figure 7.
pub(super) const GROUPS_OF_FIVE: std::ops::RangeInclusive<u32> = 1..=4;
/// Intervals between changes in Figure 8, in s; 0: never.
pub(super) const EXCHANGES_S: [u32; 7] = [1, 2, 5, 10, 20, 30, 0];
/// Idle memory under N-chance in Figures 9 to 11, in % of the need.
pub(super) const IDLE_PERCENT: [u32; 3] = [100, 150, 200];
/// Clients of Figures 12 and 13.
pub(super) const CLIENTS: std::ops::RangeInclusive<u32> = 1..=7;

/// Rule of a cluster in Figures 9 to 11.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rule {
    /// GMS, with the memory that is needed.
    Gms,
    /// N-chance, with the idle memory in % of the need.
    NChance(u32),
}

/// A simulation of the paper's experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Experiment {
    /// A program without other nodes' memory.
    Alone(Program),
    /// Figure 6: a program, and idle memory in units of 25 MB.
    Idle(Program, u32),
    /// Figure 7: groups of five nodes.
    Groups(u32),
    /// Figure 8: seconds between changes.
    Exchange(u32),
    /// Figure 9: place of the distribution in [`SKEWS`].
    Skew(usize, Rule),
    /// Figures 10 and 11: the same with bystanders.
    Bystanders(usize, Rule),
    /// Figures 12 and 13: number of clients.
    Clients(u32),
}

impl Experiment {
    fn scenario(self) -> Scenario {
        let skewed = |at: usize, rule, figure: fn(MemoryPolicy, Skew, u32) -> Scenario| {
            let skew = SKEWS.get(at).copied().unwrap_or(SKEWS[0]);
            match rule {
                Rule::Gms => figure(MemoryPolicy::Gms, skew, 100),
                Rule::NChance(percent) => figure(MemoryPolicy::NChance, skew, percent),
            }
        };
        match self {
            Self::Alone(program) => figure_6(program, 0).without_cluster(),
            Self::Idle(program, steps) => figure_6(program, steps * 25),
            Self::Groups(groups) => figure_7(groups),
            Self::Exchange(seconds) => figure_8(seconds),
            Self::Skew(at, rule) => skewed(at, rule, figure_9),
            Self::Bystanders(at, rule) => skewed(at, rule, figure_10),
            Self::Clients(clients) => figure_12(clients),
        }
    }
}

/// Experiments that a table, figure or section needs. All figures of one item share them.
pub(super) fn experiments(item: &str) -> Vec<Experiment> {
    use Experiment::{Alone, Bystanders, Clients, Exchange, Groups, Idle};
    let rules = || {
        let n_chance = IDLE_PERCENT.map(Rule::NChance);
        std::iter::once(Rule::Gms).chain(n_chance)
    };
    let skewed = |of: fn(usize, Rule) -> Experiment| -> Vec<Experiment> {
        let places = 0..SKEWS.len();
        places
            .flat_map(|at| rules().map(move |rule| of(at, rule)))
            .collect()
    };
    match item {
        "Figure 6" => {
            let alone = Program::ALL.into_iter().map(Alone);
            let steps = |program| STEPS_OF_25_MB.map(move |steps| Idle(program, steps));
            let idle = Program::ALL.into_iter().flat_map(steps);
            alone.chain(idle).collect()
        }
        "Figure 7" => {
            let alone = FIGURE_7_PROGRAMS.into_iter().map(Alone);
            alone.chain(GROUPS_OF_FIVE.map(Groups)).collect()
        }
        "Figure 8" => {
            let alone = std::iter::once(Alone(Program::Oo7));
            alone.chain(EXCHANGES_S.map(Exchange)).collect()
        }
        "Text 3.2" => vec![Idle(Program::Oo7, *STEPS_OF_25_MB.end())],
        "Figure 9" => {
            let alone = std::iter::once(Alone(Program::Oo7));
            alone.chain(skewed(Experiment::Skew)).collect()
        }
        "Figure 10" | "Figure 11" => skewed(Bystanders),
        "Figure 12" | "Figure 13" => CLIENTS.map(Clients).collect(),
        _ => Vec::new(),
    }
}

/// Outcomes of one seed.
#[derive(Debug, Default)]
pub(super) struct Observations(BTreeMap<Experiment, Outcome>);

impl Observations {
    /// Runs experiments on all CPUs. The bar advances by one for each.
    pub(super) fn new(wanted: &[Experiment], seed: u64, bar: &ProgressBar) -> Result<Self> {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let outcomes = parallel::each(threads, wanted, |experiment| {
            let outcome = simulate(&experiment.scenario(), seed);
            bar.inc(1);
            outcome.map_err(|source| (*experiment, source))
        });
        let outcomes = outcomes.map_err(|(experiment, source)| FidelityError::GlobalMemory {
            experiment: format!("{experiment:?}"),
            seed,
            source,
        })?;
        Ok(Self(wanted.iter().copied().zip(outcomes).collect()))
    }

    /// Outcome of an experiment, if it was run.
    pub(super) fn get(&self, experiment: Experiment) -> Option<&Outcome> {
        self.0.get(&experiment)
    }

    /// Mean speedup of the clients that run `program`.
    pub(super) fn speedup(&self, experiment: Experiment, program: Program) -> Option<f64> {
        let alone = self.get(Experiment::Alone(program))?;
        let alone_ns = alone.clients.first()?.elapsed_ns as f64;
        let clients = self.get(experiment)?.clients.iter();
        let of_program = clients.filter(|client| client.program == program);
        let speedups: Vec<f64> = of_program
            .map(|client| alone_ns / client.elapsed_ns.max(1) as f64)
            .collect();
        (!speedups.is_empty()).then(|| speedups.iter().sum::<f64>() / speedups.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_is_a_valid_scenario() {
        let items = ["Text 3.2".to_owned()].into_iter();
        let items = items.chain((6..=13).map(|number| format!("Figure {number}")));
        let mut count = 0;
        for item in items {
            for experiment in experiments(&item) {
                experiment.scenario().check().unwrap();
                count += 1;
            }
        }
        let expected = 1 + (6 + 66) + (3 + 4) + (1 + 7) + (1 + 12) + 2 * 12 + 2 * 7;
        assert_eq!(count, expected);
        assert!(experiments("Table 1").is_empty());
    }
}
