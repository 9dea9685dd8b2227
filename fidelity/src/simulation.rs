//! The study's programs simulated on both clusters of a seed, for Tables 5 and 6 and Figures 8 to 10.

use super::error::{FidelityError, Result};
use super::name::Name;
use gleaner_simulator::applications::Application;
use gleaner_simulator::dodo::{Network, Outcome, Scenario, simulate};
use gleaner_simulator::event::DAY;
use gleaner_simulator::hosts::Timeline;
use gleaner_terminal::ProgressBar;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::Mutex;
use std::thread;

/// Items of the paper that need a simulation.
pub(super) const ITEMS: [&str; 5] = ["Table 5", "Table 6", "Figure 8", "Figure 9", "Figure 10"];

/// Steps of the progress bar for each simulation; a day of a host is one step.
pub(super) const STEPS: u64 = 40;

/// A simulation to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Job {
    pub(super) cluster: Name,
    pub(super) application: Application,
    pub(super) variant: Variant,
}

/// Difference from the study's settings of Table 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Variant {
    /// No difference: Tables 5 and 6, Figure 8.
    None,
    /// A latency of 30 µs (Figure 9).
    Latency,
    /// A latency of 30 µs and 10 MB/s (Figure 9).
    Bandwidth,
    /// A day between runs (Figure 10).
    Pause,
}

impl Job {
    /// A simulation on cluster A, like all of Figures 9 and 10.
    pub(super) const fn on_a(application: Application, variant: Variant) -> Self {
        Self {
            cluster: Name::A,
            application,
            variant,
        }
    }

    fn scenario(self, seed: u64, length_ns: u64) -> Scenario {
        let network = match self.variant {
            Variant::None | Variant::Pause => Network::default(),
            Variant::Latency => Network {
                latency_ns: 30_000,
                ..Network::default()
            },
            Variant::Bandwidth => Network {
                latency_ns: 30_000,
                bytes_per_s: Some(10_000_000),
            },
        };
        Scenario {
            seed,
            application: self.application,
            length_ns,
            pause_ns: if self.variant == Variant::Pause {
                DAY
            } else {
                0
            },
            network,
            ..Scenario::default()
        }
    }
}

/// Simulations for `items` of the paper; all if `items` is empty.
pub(super) fn jobs(items: &[String]) -> Vec<Job> {
    use Application::{Db2, Dmine, Random};
    let is_asked = |item: &str| items.is_empty() || items.iter().any(|asked| asked == item);
    let on = |cluster| {
        Application::STUDY.map(|application| Job {
            cluster,
            application,
            variant: Variant::None,
        })
    };
    let a = |of: &[(Application, Variant)]| -> Vec<Job> {
        of.iter().map(|(who, how)| Job::on_a(*who, *how)).collect()
    };
    let both = [on(Name::A), on(Name::B)].concat();
    let mut jobs = Vec::new();
    for item in ITEMS.into_iter().filter(|item| is_asked(item)) {
        jobs.extend(match item {
            "Figure 9" => a(&[
                (Dmine, Variant::None),
                (Dmine, Variant::Latency),
                (Dmine, Variant::Bandwidth),
                (Random, Variant::None),
                (Random, Variant::Latency),
                (Random, Variant::Bandwidth),
            ]),
            "Figure 10" => a(&[
                (Dmine, Variant::None),
                (Dmine, Variant::Pause),
                (Db2, Variant::None),
                (Db2, Variant::Pause),
            ]),
            _ => both.clone(),
        });
    }
    jobs.sort_unstable();
    jobs.dedup();
    jobs
}

/// Result of one simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct SimulationResult {
    pub(super) speedup: f64,
    pub(super) ideal_speedup: f64,
    pub(super) reclaims_per_host_day: f64,
    pub(super) mean_context_bytes: Option<f64>,
    pub(super) median_context_bytes: Option<f64>,
    pub(super) upper_bound_bytes: Option<f64>,
    /// 5th and 95th percentile of the speedups by hour.
    pub(super) hours: [f64; 2],
}

impl SimulationResult {
    fn of(outcome: &Outcome) -> Self {
        let mut hours: Vec<f64> = outcome.hours.iter().map(|hour| hour.speedup).collect();
        hours.sort_unstable_by(f64::total_cmp);
        let of_hours = |share: f64| {
            let at = hours.len().saturating_sub(1) as f64 * share;
            hours.get(at as usize).copied().unwrap_or(outcome.speedup)
        };
        let owners = &outcome.owners;
        Self {
            speedup: outcome.speedup,
            ideal_speedup: outcome.ideal_speedup,
            reclaims_per_host_day: owners.reclaims_per_host_day,
            mean_context_bytes: owners.mean_memory_context_bytes,
            median_context_bytes: owners.median_memory_context_bytes.map(|b| b as f64),
            upper_bound_bytes: owners.mean_upper_bound_bytes,
            hours: [of_hours(0.05), of_hours(0.95)],
        }
    }
}

/// Results of one seed.
pub(super) type Simulation = BTreeMap<Job, SimulationResult>;

/// Simulates `jobs` on the hosts of both clusters, on as many threads as there are CPUs. The bar advances by
/// [`STEPS`] for each.
pub(super) fn run(
    jobs: &[Job],
    hosts: [&[Timeline]; 2],
    seed: u64,
    length_ns: u64,
    bar: &ProgressBar,
) -> Result<Simulation> {
    // The longest jobs are last in the list, and are taken first.
    let waiting = Mutex::new(jobs.to_vec());
    let next = || waiting.lock().ok().and_then(|mut jobs| jobs.pop());
    let worker = || -> Result<Vec<(Job, SimulationResult)>> {
        let mut done = Vec::new();
        while let Some(job) = next() {
            let outcome = simulate(&job.scenario(seed, length_ns), hosts[job.cluster as usize]);
            let outcome = outcome.map_err(|source| FidelityError::Simulation {
                application: job.application.to_string(),
                cluster: job.cluster.row(),
                source,
            })?;
            done.push((job, SimulationResult::of(&outcome)));
            bar.inc(STEPS);
        }
        Ok(done)
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let mut simulation = Simulation::new();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        for worker in workers {
            let done = worker
                .join()
                .map_err(|_| FidelityError::Thread("a simulation's thread"))?;
            simulation.extend(done?);
        }
        Ok(simulation)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_simulator::event::HOUR;

    #[test]
    fn what_is_asked_for_is_simulated_and_nothing_twice() {
        let asked = |items: &[&str]| {
            let items: Vec<String> = items.iter().map(|i| (*i).to_owned()).collect();
            jobs(&items).len()
        };
        assert_eq!(asked(&[]), 10 + 4 + 2);
        assert_eq!(asked(&["Table 5", "Table 6", "Figure 8"]), 10);
        assert_eq!((asked(&["Figure 9"]), asked(&["Figure 10"])), (6, 4));
        assert_eq!(asked(&["Figure 9", "Figure 10"]), 9);
        assert_eq!(asked(&["Table 4"]), 0);
    }

    #[test]
    fn lu_on_a_host_that_is_always_idle_has_nearly_its_ideal_speedup_and_a_slow_network_costs_some()
    {
        let hosts = [Timeline::always_idle("h", 1 << 30)];
        let jobs = [Variant::None, Variant::Bandwidth].map(|v| Job::on_a(Application::Lu, v));
        let bar = ProgressBar::hidden();
        let found = run(&jobs, [&hosts, &hosts], 1, 8 * HOUR, &bar).unwrap();
        let [fast, slow] = jobs.map(|job| found[&job]);
        assert!(
            fast.speedup > 1.15 && fast.speedup < fast.ideal_speedup,
            "{fast:?}"
        );
        assert!(slow.speedup < fast.speedup, "{slow:?}");
        assert!(
            (fast.hours[1] / fast.hours[0] - 1.0).abs() < 1e-3,
            "{fast:?}"
        );
        assert_eq!(
            (fast.reclaims_per_host_day, fast.mean_context_bytes),
            (0.0, None)
        );
        assert_eq!(bar.position(), 2 * STEPS);
        let short = run(&jobs, [&hosts, &hosts], 1, HOUR / 60, &bar).unwrap_err();
        let FidelityError::Simulation { source, .. } = &short else {
            panic!("{short:?}");
        };
        assert_eq!(short.to_string(), "lu on cluster A");
        assert!(source.to_string().starts_with("not one run ended"));
    }
}
