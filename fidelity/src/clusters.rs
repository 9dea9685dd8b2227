//! Both clusters of the paper, generated from a seed; analysed, separately and together, and used for
//! simulations.

use super::error::{FidelityError, Result};
use super::name::Name;
use super::simulation::{self, Job, Simulation};
use gleaner_analysis::{Progress, analyze, analyze_together};
use gleaner_dataset::Dataset;
use gleaner_schemas::findings::{Findings, Parameters};
use gleaner_simulator::dodo::Recruitment;
use gleaner_simulator::event::HOUR;
use gleaner_simulator::hosts;
use gleaner_terminal::ProgressBar;
use gleaner_traces::synth::{self, Cluster, Preset};
use std::path::Path;
use std::thread;

const MIB: i64 = 1 << 20;

/// Work to do for each seed.
#[derive(Clone, Debug, Default)]
pub(super) struct SeedWork {
    /// True to analyse both clusters.
    pub(super) analysis: bool,
    /// Simulations to run on the clusters' last week.
    pub(super) jobs: Vec<Job>,
    /// Simulated time from the begin of the last week, in hours; at most a week counts.
    pub(super) simulated_hours: u64,
}

/// Results of analysis and simulations for one seed.
#[derive(Debug, Default)]
pub(super) struct SeedResults {
    pub(super) a: Findings,
    pub(super) b: Findings,
    /// Findings of both clusters' hosts: Tables 2 to 4.
    pub(super) pooled: Findings,
    /// Results of simulations, if any were run.
    pub(super) simulation: Option<Simulation>,
}

impl SeedResults {
    pub(super) const fn of(&self, name: Name) -> &Findings {
        match name {
            Name::A => &self.a,
            Name::B => &self.b,
        }
    }
}

/// Makes both clusters in a folder under `work`, which is removed afterwards, then analyses and simulates
/// them. The bar advances by one step per day of each host, and by the steps of each simulation.
pub(super) fn observe(
    clusters: &[Cluster; 2],
    wanted: &SeedWork,
    work: &Path,
    bar: &ProgressBar,
) -> Result<SeedResults> {
    let folder = tempfile::Builder::new()
        .prefix("gleaner-fidelity-")
        .tempdir_in(work);
    let folder = folder.map_err(|source| FidelityError::Folder {
        work: work.to_owned(),
        source,
    })?;
    let [a, b] = [folder.path().join("a"), folder.path().join("b")];
    let write = |cluster, folder: &Path| synth::write(cluster, folder, |_| bar.inc(1));
    let [in_a, in_b] = clusters;
    // Making the clusters takes nearly all of the time.
    let (first, second) = thread::scope(|scope| {
        let other = scope.spawn(|| write(in_b, &b));
        (write(in_a, &a), other.join())
    });
    first?;
    second.map_err(|_| FidelityError::Thread("the thread that made cluster B"))??;
    let (a, b) = (Dataset::open(&a)?, Dataset::open(&b)?);
    let quiet = &mut |_: Progress<'_>| ();
    let mut observed = SeedResults::default();
    if wanted.analysis {
        observed.pooled = analyze_together(&[&a, &b], &parameters(&POOLED), quiet)?;
        observed.a = analyze(&a, &parameters(&SEPARATE), quiet)?;
        observed.b = analyze(&b, &parameters(&SEPARATE), quiet)?;
    }
    if !wanted.jobs.is_empty() {
        let simulation = simulated(in_a.parameters(), [&a, &b], wanted, bar)?;
        observed.simulation = Some(simulation);
    }
    Ok(observed)
}

/// Simulates the last week, or the whole trace if it is shorter. Of two weeks this is the study's week, from
/// 14 September 1998 on. Programs and placement use the clusters' seed.
fn simulated(
    made: &synth::Parameters,
    datasets: [&Dataset; 2],
    wanted: &SeedWork,
    bar: &ProgressBar,
) -> Result<Simulation> {
    const HOUR_MS: i64 = 3_600_000;
    let hours = wanted.simulated_hours.min(24 * u64::from(made.days.min(7)));
    let from_ms = made.start_ms + 24 * HOUR_MS * i64::from(made.days.saturating_sub(7));
    let until_ms = from_ms + hours.cast_signed() * HOUR_MS;
    let reading = Recruitment::default().reading(from_ms, until_ms);
    let [a, b] = datasets.map(|dataset| hosts::read(dataset, &reading));
    let (a, b) = (a?, b?);
    simulation::run(&wanted.jobs, [&a, &b], made.seed, hours * HOUR, bar)
}

/// Names of the findings behind Tables 2 to 4.
const POOLED: [&str; 6] = [
    "memory_usage",
    "dip_hosts",
    "availability_periods",
    "notions",
    "owner_period_lengths",
    "live_file_cache",
];
/// Names of the findings behind Table 1, Figures 6 and 7 and the reclaims.
const SEPARATE: [&str; 3] = ["hosts", "notions", "reclaims"];

/// The paper's limits, classes of hosts, regions and thresholds.
fn parameters(measures: &[&str]) -> Parameters {
    let powers_mib = |from: i64, to: i64| {
        let doubled = std::iter::successors(Some(from), |mib| Some(mib * 2));
        doubled
            .take_while(|mib| *mib <= to)
            .map(|mib| mib * MIB)
            .collect()
    };
    Parameters {
        size_class_bytes: powers_mib(32, 1024),
        region_bytes: powers_mib(4, 512),
        dip_threshold_bytes: [4, 6, 8].map(|mib| mib * MIB).to_vec(),
        dip_threshold_shares: Vec::new(),
        bootstrap_count: 0,
        measures: measures.iter().map(|m| (*m).to_owned()).collect(),
        ..Parameters::default()
    }
}

/// A cluster of the paper, as synthetic hosts.
pub(super) fn cluster(name: Name, seed: u64, days: u32) -> Result<Cluster> {
    let preset = match name {
        Name::A => Preset::AcharyaSetiaA,
        Name::B => Preset::AcharyaSetiaB,
    };
    Ok(Cluster::new(&synth::Parameters {
        days,
        ..synth::Parameters::of_preset(preset, seed)?
    })?)
}
