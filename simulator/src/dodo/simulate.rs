//! Simulates a week of runs, and compares them with runs without remote memory and with unlimited remote
//! memory.

use super::check::Violation;
use super::client::{Geometry, Workstation};
use super::cluster::Cluster;
use super::local::Local;
use super::machine::Machine;
use super::outcome::{Counts, Hour, Outcome, Run};
use super::owners::PageIn;
use super::running::Engine;
use super::scenario::{Network, Overlap, Recruitment, Remote, Scenario};
use crate::applications::Program;
use crate::event::HOUR;
use crate::hosts::Timeline;
use gleaner_policy::forecast::{AHEAD, AHEAD_S};
use std::collections::BTreeMap;

/// Reason why a simulation has no outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulationError {
    /// An invariant was violated.
    #[error("the simulation contradicts itself, which is a fault of Gleaner's: {0}")]
    Violation(#[from] Violation),
    /// No run ended.
    #[error(
        "not one run ended within {length_ns} ns; without remote memory one takes {baseline_run_ns} ns: simulate for longer"
    )]
    TooShort {
        /// Length of the simulated time.
        length_ns: u64,
        /// Time of a run without remote memory.
        baseline_run_ns: u64,
    },
    /// A setting out of range.
    #[error("{key} = {value} cannot be simulated: {wanted}")]
    Setting {
        /// Key of the setting, as in the scenario.
        key: &'static str,
        /// Value of the setting.
        value: String,
        /// Values that are allowed.
        wanted: &'static str,
    },
}

/// Amount of remote memory in a reference run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReferenceMemory {
    Nothing,
    Everything,
}

/// Simulates the scenario's application on `hosts`. The hosts must have been read with the scenario's
/// [`Recruitment::reading`](super::Recruitment::reading), and with its
/// [`Recruitment::foresight`](super::Recruitment::foresight) if the scenario needs a forecast.
///
/// # Errors
/// [`SimulationError`].
pub fn simulate(scenario: &Scenario, hosts: &[Timeline]) -> Result<Outcome, SimulationError> {
    let application = scenario.application;
    let think_ns = scenario.think_ns.unwrap_or(application.think_ns());
    simulate_program(scenario, &application.thinking(think_ns), hosts)
}

/// Simulates any program on `hosts`; the scenario's application is ignored.
///
/// # Errors
/// [`SimulationError`].
pub fn simulate_program<P: Program>(
    scenario: &Scenario,
    program: &P,
    hosts: &[Timeline],
) -> Result<Outcome, SimulationError> {
    check(scenario)?;
    let [baseline_run_ns, ideal_run_ns] = reference(scenario, program)?;
    let geometry = Geometry::new(program.layout(), scenario.remote.region_bytes);
    let cluster = Cluster::new(
        hosts,
        &scenario.recruitment,
        &scenario.remote,
        geometry.region_bytes(),
        scenario.seed,
    );
    let mut engine = engine(
        scenario,
        program,
        geometry,
        Some(cluster),
        &scenario.network,
    );
    let runs = Runs {
        count: u64::MAX,
        until_ns: scenario.length_ns,
        pause_ns: scenario.pause_ns,
    };
    let runs = runs.of(scenario, program, &mut engine)?;
    let Some(run_ns) = mean_ns(&runs) else {
        return Err(SimulationError::TooShort {
            length_ns: scenario.length_ns,
            baseline_run_ns,
        });
    };
    let (counts, cluster) = (engine.client.counts, engine.cluster);
    let page_in = PageIn::of(scenario);
    let (regions, owners) =
        cluster.map_or_else(Default::default, |c| c.finish(scenario.length_ns, page_in));
    let speedup = baseline_run_ns as f64 / run_ns as f64;
    let ideal_speedup = baseline_run_ns as f64 / ideal_run_ns.max(1) as f64;
    Ok(Outcome {
        scenario: scenario.clone(),
        baseline_run_ns,
        ideal_run_ns,
        run_ns,
        speedup,
        ideal_speedup,
        gain_share: (ideal_speedup > 1.0).then(|| (speedup - 1.0) / (ideal_speedup - 1.0)),
        hours: by_hour(&runs, baseline_run_ns),
        runs,
        counts,
        regions,
        owners,
    })
}

/// Mean run times of reference runs (section 4): first without remote memory, then with infinite remote
/// memory that is never reclaimed, over a network that takes no time. The first run of each kind is not
/// counted.
///
/// # Errors
/// [`SimulationError`].
pub fn reference<P: Program>(
    scenario: &Scenario,
    program: &P,
) -> Result<[u64; 2], SimulationError> {
    check(scenario)?;
    let mut means = [0; 2];
    for (mean, lent) in means
        .iter_mut()
        .zip([ReferenceMemory::Nothing, ReferenceMemory::Everything])
    {
        // The only host has room for every region of any program.
        let everything = [Timeline::always_idle("infinite", u64::MAX / 4)];
        let geometry = Geometry::new(program.layout(), scenario.remote.region_bytes);
        let cluster = (lent == ReferenceMemory::Everything).then(|| {
            let remote = Remote::default();
            let regions = geometry.region_bytes();
            let recruitment = Recruitment::default();
            Cluster::new(&everything, &recruitment, &remote, regions, scenario.seed)
        });
        let mut engine = engine(scenario, program, geometry, cluster, &Network::INFINITE);
        let runs = Runs {
            count: u64::from(scenario.reference_runs) + 1,
            until_ns: u64::MAX / 4,
            pause_ns: 0,
        };
        let runs = runs.of(scenario, program, &mut engine)?;
        *mean = mean_ns(runs.get(1..).unwrap_or_default()).unwrap_or(0);
    }
    Ok(means)
}

pub(super) fn engine<'a, P: Program>(
    scenario: &Scenario,
    program: &P,
    geometry: Geometry,
    cluster: Option<Cluster<'a>>,
    network: &Network,
) -> Engine<'a> {
    Engine {
        client: workstation(scenario, program, geometry, network, scenario.seed),
        cluster,
    }
}

pub(super) fn workstation<P: Program>(
    scenario: &Scenario,
    program: &P,
    geometry: Geometry,
    network: &Network,
    seed: u64,
) -> Workstation {
    let layout = program.layout();
    let room = scenario.client.local_cache_bytes / u64::from(layout.block_bytes.max(1));
    let room = u32::try_from(room).unwrap_or(u32::MAX);
    Workstation {
        geometry,
        machine: Machine::new(&scenario.client.disks, network, seed),
        local: Local::new(layout.blocks(), room),
        counts: Counts::default(),
    }
}

/// Number of the program's processes that run concurrently.
pub(super) fn processes<P: Program>(scenario: &Scenario, program: &P) -> u32 {
    match scenario.client.overlap {
        Overlap::Processes => program.processes().min(scenario.client.cpus).max(1),
        Overlap::Serial => 1,
    }
}

/// Consecutive runs of a program.
pub(super) struct Runs {
    pub(super) count: u64,
    pub(super) until_ns: u64,
    pub(super) pause_ns: u64,
}

impl Runs {
    pub(super) fn of<P: Program>(
        &self,
        scenario: &Scenario,
        program: &P,
        engine: &mut Engine<'_>,
    ) -> Result<Vec<Run>, Violation> {
        let processes = processes(scenario, program);
        let (mut runs, mut begin_ns) = (Vec::new(), 0);
        for number in 0..self.count {
            let requests = program.run(scenario.seed, number);
            let run = engine.run(number, requests, processes, begin_ns, self.until_ns)?;
            let Some(run) = run else { break };
            runs.push(run);
            if !program.keeps_regions() {
                engine.client.local.clear();
                if let Some(cluster) = &mut engine.cluster {
                    cluster.delete_all(run.end_ns)?;
                }
            }
            begin_ns = run.end_ns + self.pause_ns;
            // A program without requests, or one that takes no time, would run for ever.
            if begin_ns >= self.until_ns || run.ns() == 0 {
                break;
            }
        }
        // Advance the hosts to the end of the simulation.
        if let Some(cluster) = &mut engine.cluster
            && self.count == u64::MAX
        {
            cluster.advance(self.until_ns)?;
        }
        Ok(runs)
    }
}

fn mean_ns(runs: &[Run]) -> Option<u64> {
    let sum: u128 = runs.iter().map(|run| u128::from(run.ns())).sum();
    let mean = sum.checked_div(runs.len() as u128)?;
    u64::try_from(mean).ok()
}

/// Mean speedup of the runs in each hour, weighted by their time in the hour.
fn by_hour(runs: &[Run], baseline_run_ns: u64) -> Vec<Hour> {
    let mut hours: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.ns() > 0) {
        let speedup = baseline_run_ns as f64 / run.ns() as f64;
        for hour in run.begin_ns / HOUR..=(run.end_ns - 1) / HOUR {
            let from_ns = run.begin_ns.max(hour * HOUR);
            let to_ns = run.end_ns.min((hour + 1) * HOUR);
            let sums = hours.entry(hour).or_default();
            let ns = to_ns.saturating_sub(from_ns) as f64;
            *sums = (sums.0 + speedup * ns, sums.1 + ns);
        }
    }
    hours
        .into_iter()
        .map(|(hour, (sum, ns))| Hour {
            hour,
            speedup: sum / ns,
        })
        .collect()
}

/// Checks that every setting can be simulated.
pub(crate) fn check(scenario: &Scenario) -> Result<(), SimulationError> {
    let disks = &scenario.client.disks;
    let checks: [(&'static str, u64, u64, &'static str); 9] = [
        ("length_ns", scenario.length_ns, u64::MAX / 8, "more than 0"),
        (
            "reference_runs",
            scenario.reference_runs.into(),
            1000,
            "from 1 to 1000",
        ),
        (
            "client.cpus",
            scenario.client.cpus.into(),
            4096,
            "from 1 to 4096",
        ),
        (
            "client.disks.count",
            disks.count.into(),
            4096,
            "from 1 to 4096",
        ),
        (
            "client.disks.media_bytes_per_s",
            disks.media_bytes_per_s,
            u64::MAX,
            "more than 0",
        ),
        (
            "client.disks.string_bytes_per_s",
            disks.string_bytes_per_s,
            u64::MAX,
            "more than 0",
        ),
        (
            "recruitment.shrink_step_bytes",
            scenario.recruitment.shrink_step_bytes.unwrap_or(1),
            u64::MAX,
            "more than 0, or left out",
        ),
        (
            "recruitment.page_in_bytes",
            scenario.recruitment.page_in_bytes,
            u64::MAX,
            "more than 0",
        ),
        (
            "network.bytes_per_s",
            scenario.network.bytes_per_s.unwrap_or(1),
            u64::MAX,
            "more than 0, or left out",
        ),
    ];
    let wrong = (checks.into_iter()).find(|(_, value, most, _)| *value == 0 || value > most);
    if let Some((key, value, _, wanted)) = wrong {
        let value = value.to_string();
        return Err(SimulationError::Setting { key, value, wanted });
    }
    check_recruitment(&scenario.recruitment)
}

fn check_recruitment(recruitment: &Recruitment) -> Result<(), SimulationError> {
    const SHARE: &str = "from 0 to 1";
    const FROM_0: &str = "0 or more";
    const FARTHEST_S: f64 = AHEAD_S[AHEAD - 1] as f64;
    let checks = [
        (
            "recruitment.idle_after_s",
            recruitment.idle_after_s,
            1e9,
            FROM_0,
        ),
        (
            "recruitment.load_limit",
            recruitment.load_limit,
            f64::MAX,
            FROM_0,
        ),
        (
            "recruitment.headroom_share",
            recruitment.headroom_share,
            1.0,
            SHARE,
        ),
        (
            "recruitment.spare_headroom_share",
            recruitment.spare_headroom_share,
            1.0,
            SHARE,
        ),
        (
            "recruitment.rise_after_s",
            recruitment.rise_after_s,
            1e9,
            FROM_0,
        ),
        (
            "recruitment.shrink_every_s",
            recruitment.shrink_every_s,
            1e9,
            FROM_0,
        ),
    ];
    let forecasts = [
        (
            "recruitment.expected_for_s",
            recruitment.expected_for_s,
            FARTHEST_S,
            "from 0 to 86400 s, as far as forecasts look",
        ),
        ("recruitment.confidence", recruitment.confidence, 1.0, SHARE),
    ];
    // NaN is in no range, so it is rejected as well.
    let wrong = (checks.into_iter().chain(forecasts))
        .find(|(_, value, most, _)| !(0.0..=*most).contains(value));
    wrong.map_or(Ok(()), |(key, value, _, wanted)| {
        let value = value.to_string();
        Err(SimulationError::Setting { key, value, wanted })
    })
}
