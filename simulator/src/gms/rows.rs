//! Runs all cases of a scenario file on several threads. The number of threads does not change the rows.

use super::error::GmsError;
use super::file::{Case, ScenarioFile};
use super::outcome::{Outcome, OwnersOutcome, Reads};
use super::recorded::RecordedHosts;
use super::scenario::Scenario;
use super::simulation::{simulate, speedups};
use crate::hosts::{RecordedDataset, read_each};
use crate::parallel;
use crate::swept::{Spread, SweptRow};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A figure of an outcome.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Key in JSON and CSV; it has the unit.
    pub key: &'static str,
    /// Heading of the column in the table.
    pub label: &'static str,
    /// Meaning of the figure.
    pub meaning: &'static str,
    value: fn(&Comparison) -> Option<f64>,
}

/// An outcome, and that of the same clients without other nodes' memory.
struct Comparison {
    without: Outcome,
    with: Outcome,
}

/// All figures, in the order of the output.
pub const MEASURES: [Measure; 16] = [
    Measure {
        key: "speedup",
        label: "speedup",
        meaning: "time of the clients without other nodes' memory over their time with it, mean of the clients",
        value: |of| {
            let speedups = speedups(&of.without, &of.with);
            let count = speedups.len();
            (count > 0).then(|| speedups.iter().sum::<f64>() / count as f64)
        },
    },
    Measure {
        key: "cluster_share",
        label: "from cluster",
        meaning: "share of the clients' reads that another node's memory answered",
        value: |of| share(of, |reads| reads.cluster),
    },
    Measure {
        key: "source_share",
        label: "from disk",
        meaning: "share of the clients' reads that disk or server answered",
        value: |of| share(of, |reads| reads.source),
    },
    Measure {
        key: "network_bytes_per_s",
        label: "network, bytes/s",
        meaning: "bytes of all messages per second while all clients count",
        value: |of| {
            let window = of.with.window.as_ref()?;
            Some(window.network_bytes as f64 * 1e9 / window.length_ns.max(1) as f64)
        },
    },
    Measure {
        key: "epoch_bytes_per_s",
        label: "epochs, bytes/s",
        meaning: "bytes of the epochs' messages per second while all clients count",
        value: |of| {
            let window = of.with.window.as_ref()?;
            Some(window.epoch_bytes as f64 * 1e9 / window.length_ns.max(1) as f64)
        },
    },
    Measure {
        key: "idle_cpu_share",
        label: "idle node's CPU",
        meaning: "share of its CPU that the first node with idle memory uses for others",
        value: |of| Some(of.with.window.as_ref()?.idle_cpu_share),
    },
    Measure {
        key: "bystander_slowdown",
        label: "bystanders' slowdown",
        meaning: "time of the bystanders over the time that their computing alone takes",
        value: |of| of.with.window.as_ref()?.bystander_slowdown,
    },
    Measure {
        key: "cluster_reads",
        label: "reads from cluster",
        meaning: "counted reads of the clients that another node's memory answered",
        value: |of| Some(sum(of, |reads| reads.cluster)),
    },
    Measure {
        key: "source_reads",
        label: "reads from disk",
        meaning: "counted reads of the clients that disk or server answered",
        value: |of| Some(sum(of, |reads| reads.source)),
    },
    Measure {
        key: "page_transfers",
        label: "transfers",
        meaning: "messages with a page in the whole run, first passes included",
        value: |of| Some(of.with.traffic.page_transfers as f64),
    },
    Measure {
        key: "network_bytes",
        label: "network",
        meaning: "bytes of all messages in the whole run",
        value: |of| Some(of.with.traffic.network_bytes as f64),
    },
    Measure {
        key: "epoch_bytes",
        label: "epochs",
        meaning: "bytes of the epochs' messages in the whole run",
        value: |of| Some(of.with.traffic.epoch_bytes as f64),
    },
    Measure {
        key: "owner_cpu_share",
        label: "owners' CPU",
        meaning: "share of the CPU that global memory used on recorded hosts in use; owners wait for it",
        value: |of| owners(of)?.cpu_share(),
    },
    Measure {
        key: "owner_cpu_ms_per_hour",
        label: "owners' CPU, ms/h",
        meaning: "CPU time that global memory used on recorded hosts in use, in ms per hour of use",
        value: |of| Some(owners(of)?.cpu_share()? * 3_600_000.0),
    },
    Measure {
        key: "owner_returns",
        label: "returns",
        meaning: "number of times that a recorded host was in use again",
        value: |of| Some(owners(of)?.returns as f64),
    },
    Measure {
        key: "reclaimed_pages",
        label: "reclaimed pages",
        meaning: "pages of global memory that were dropped because a recorded host's frames became fewer",
        value: |of| Some(owners(of)?.reclaimed_pages as f64),
    },
];

fn owners(of: &Comparison) -> Option<&OwnersOutcome> {
    of.with.owners.as_ref()
}

/// Sum of a part of the clients' reads.
fn sum(of: &Comparison, part: fn(&Reads) -> u64) -> f64 {
    let clients = of.with.clients.iter();
    clients.map(|client| part(&client.reads)).sum::<u64>() as f64
}

/// Share of the clients' reads.
fn share(of: &Comparison, part: fn(&Reads) -> u64) -> Option<f64> {
    let reads = || of.with.clients.iter().map(|client| &client.reads);
    let all: u64 = reads().map(Reads::sum).sum();
    (all > 0).then(|| reads().map(part).sum::<u64>() as f64 / all as f64)
}

/// Number of simulations of a scenario file, for progress: one for each case and seed.
///
/// # Errors
/// Those of [`ScenarioFile::cases`].
pub fn runs(file: &ScenarioFile) -> Result<usize, GmsError> {
    Ok(file.cases()?.len() * file.seeds.len())
}

/// Simulates every case with every seed. `datasets` has the file's datasets, opened, in any order. Calls the progress
/// function with the number of finished runs.
///
/// # Errors
/// Errors of [`simulate`] and [`ScenarioFile::cases`]; [`GmsError::NoDataset`] and [`GmsError::Hosts`].
pub fn rows(
    file: &ScenarioFile,
    datasets: &[RecordedDataset],
    threads: NonZeroUsize,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<SweptRow>, GmsError> {
    file.check_recorded()?;
    let mut cases = file.cases()?;
    add_hosts(file, &mut cases, datasets, threads)?;
    let mut alone: Vec<Scenario> = Vec::new();
    for case in &cases {
        let without = case.scenario.without_cluster();
        if !alone.contains(&without) {
            alone.push(without);
        }
    }
    let baselines = each_with_seeds(&alone, &file.seeds, threads, &|_| {})?;
    let scenarios: Vec<Scenario> = cases.iter().map(|case| case.scenario.clone()).collect();
    let outcomes = each_with_seeds(&scenarios, &file.seeds, threads, progress)?;
    let row = |(case, of_seeds): (&Case, Vec<Outcome>)| {
        let without = case.scenario.without_cluster();
        let at = alone.iter().position(|scenario| *scenario == without);
        let baseline = at
            .and_then(|at| baselines.get(at))
            .map_or(&[][..], Vec::as_slice);
        let pairs = baseline.iter().zip(of_seeds);
        let comparisons: Vec<Comparison> = pairs
            .map(|(without, with)| Comparison {
                without: without.clone(),
                with,
            })
            .collect();
        let value = |measure: &Measure| {
            let values: Option<Vec<f64>> = comparisons.iter().map(measure.value).collect();
            values.and_then(Spread::new)
        };
        SweptRow {
            settings: case.values.clone(),
            values: MEASURES.iter().map(value).collect(),
        }
    };
    Ok(cases.iter().zip(outcomes).map(row).collect())
}

/// Reads the datasets, each once per set of rules for reading, and makes their hosts the nodes of the cases.
fn add_hosts(
    file: &ScenarioFile,
    cases: &mut [Case],
    datasets: &[RecordedDataset],
    threads: NonZeroUsize,
) -> Result<(), GmsError> {
    let mut places = Vec::with_capacity(cases.len());
    let mut wanted = Vec::with_capacity(cases.len());
    for (at, case) in cases.iter().enumerate() {
        let Some(name) = &case.dataset else {
            continue;
        };
        let dataset = datasets.iter().find(|dataset| dataset.name == *name);
        let dataset = dataset.ok_or_else(|| GmsError::NoDataset { name: name.clone() })?;
        places.push(at);
        wanted.push((dataset, case.scenario.recorded.reading(dataset)));
    }
    let hosts =
        read_each(&wanted, threads).map_err(|(name, source)| GmsError::Hosts { name, source })?;
    for ((at, (dataset, _)), timelines) in places.into_iter().zip(&wanted).zip(hosts) {
        let Some(case) = cases.get_mut(at) else {
            continue;
        };
        let scenario = &mut case.scenario;
        let (rules, frame_bytes) = (&scenario.recorded, scenario.frame_bytes);
        let recorded = RecordedHosts::new(&timelines, rules, frame_bytes, dataset.length_ns());
        if scenario.idle_nodes == 0 {
            scenario.idle_nodes = recorded.count() as u32;
        }
        scenario.hosts = Some(Arc::new(recorded));
        file.set_clients(scenario);
        scenario.check()?;
    }
    Ok(())
}

/// Outcomes of every scenario, by seed.
fn each_with_seeds(
    scenarios: &[Scenario],
    seeds: &[u64],
    threads: NonZeroUsize,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Vec<Outcome>>, GmsError> {
    let with_seeds = |scenario| seeds.iter().map(move |seed| (scenario, *seed));
    let runs: Vec<(&Scenario, u64)> = scenarios.iter().flat_map(with_seeds).collect();
    let done = AtomicUsize::new(0);
    progress(0);
    let outcomes = parallel::each(threads, &runs, |(scenario, seed)| {
        let outcome = simulate(scenario, *seed)?;
        progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        Ok::<Outcome, GmsError>(outcome)
    })?;
    let mut outcomes = outcomes.into_iter();
    let of_seeds = scenarios
        .iter()
        .map(|_| outcomes.by_ref().take(seeds.len()).collect());
    Ok(of_seeds.collect())
}
