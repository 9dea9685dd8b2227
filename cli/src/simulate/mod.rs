//! `gleaner simulate`: runs scenarios given as file or name; results as table, JSON, CSV and page.
//!
//! ```text
//! file, arguments ─► scenario ─► gleaner_simulator::sweep: plan, clusters, rows ─► text, result_files, page
//!                                               forecasts: learnt first ─┘
//! ```
//!
//! Scenarios of global memory and of memory servers have no parts: `global_memory` and its page
//! `global_memory_page`, `servers`.
//!
//! With `--part`, only some of the runs are simulated, and their results are written as a part, which
//! `gleaner merge` reads.

pub(crate) mod args;
mod forecasts;
mod global_memory;
mod global_memory_page;
mod page;
mod result_files;
mod scenario;
mod servers;
mod swept_files;
mod text;

use crate::report;
use crate::tables::plain;
use anyhow::{Context, bail};
use args::Simulate;
use gleaner_simulator::gms::ScenarioFile;
use gleaner_simulator::hosts::RecordedDataset;
use gleaner_simulator::servers::ScenarioFile as ServersFile;
use gleaner_simulator::sweep::{self, Cluster, Plan, Row, SweepError, SweepPart, SweepSummary};
use scenario::ScenarioText;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// A scenario that was run, and the rows of its results.
pub(crate) struct Results<'a> {
    pub(crate) summary: &'a SweepSummary,
    pub(crate) rows: &'a [Row],
}

pub(crate) fn run(args: &Simulate, output: &mut dyn Write) -> anyhow::Result<()> {
    // clap guarantees a scenario unless `--list` is given.
    let Some(asked) = &args.scenario else {
        output.write_all(text::shipped()?.as_bytes())?;
        return Ok(());
    };
    let found = scenario::find(asked)?;
    if args.print {
        output.write_all(found.text.as_bytes())?;
        return Ok(());
    }
    if ScenarioFile::is_of_gms(&found.text) {
        return global_memory::run(&found, args, output);
    }
    if ServersFile::is_of_servers(&found.text) {
        return servers::run(&found, args, output);
    }
    refuse_outputs(&args.results)?;
    refuse_folder(args.output.as_deref())?;
    let (file, folders) = scenario::read(&found, &args.instead)?;
    let plan = Plan::new(
        &file,
        folders.iter().map(|(name, _)| name.clone()).collect(),
    )?;
    let from = file.from.as_deref();
    let open = |(name, place): &(String, PathBuf)| {
        open_cluster(
            name,
            place,
            from,
            plan.length_ns,
            has_other_days(&found, args),
        )
    };
    let mut clusters = folders.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let (number, parts_count) = args.part.unwrap_or((1, 1));
    let runs = plan.runs_of_part(number, parts_count);
    forecasts::learn(&plan, &runs, &mut clusters)?;
    let summary = SweepSummary::new(found.name, file.about, plan, &clusters);
    let threads = args.jobs.unwrap_or_else(cpus);
    if let Some(to) = &args.output {
        let part = with_bar(runs.len(), |progress| {
            SweepPart::simulate(summary, &clusters, &runs, parts_count, threads, progress)
        })?;
        return write_part(&part, to, output);
    }
    let rows = with_bar(runs.len(), |progress| {
        sweep::run(&summary.plan, &clusters, threads, progress)
    })?;
    let results = Results {
        summary: &summary,
        rows: &rows,
    };
    write(&results, &args.results, output)
}

/// Returns true if the datasets need not have records of the scenario's days: a shipped scenario's start is a day of
/// its own synthetic datasets, and others are given.
fn has_other_days(found: &ScenarioText, args: &Simulate) -> bool {
    found.is_shipped && args.instead.from.is_none() && !args.instead.dataset.is_empty()
}

/// Opens a dataset for a simulation from `from` on. A dataset with other days is simulated from its first day on.
fn open_cluster(
    name: &str,
    place: &Path,
    from: Option<&str>,
    length_ns: u64,
    has_other_days: bool,
) -> anyhow::Result<Cluster> {
    let dataset = gleaner_objects::open(place).with_context(|| format!("dataset {name}"))?;
    match Cluster::of(name, dataset.clone(), from, length_ns) {
        Err(SweepError::Span { .. }) if has_other_days => {
            let cluster = Cluster::of(name, dataset, None, length_ns)?;
            eprintln!(
                "gleaner: dataset {name} is simulated from its first day on: --from names another"
            );
            Ok(cluster)
        }
        opened => Ok(opened?),
    }
}

/// Opens datasets whose hosts are simulated from `from` on.
fn open_recorded(
    places: &[(String, PathBuf)],
    from: Option<&str>,
    length_ns: u64,
    has_other_days: bool,
) -> anyhow::Result<Vec<RecordedDataset>> {
    let open = |(name, place): &(String, PathBuf)| {
        let cluster = open_cluster(name, place, from, length_ns, has_other_days)?;
        anyhow::Ok(RecordedDataset {
            name: cluster.name,
            dataset: cluster.dataset,
            from_ms: cluster.from_ms,
            until_ms: cluster.until_ms,
        })
    };
    places.iter().map(open).collect()
}

/// Writes a part into a file, or to standard output (`-`).
pub(crate) fn write_part(
    part: &SweepPart,
    to: &Path,
    output: &mut dyn Write,
) -> anyhow::Result<()> {
    let text = part.to_text()?;
    match to == Path::new("-") {
        true => Ok(output.write_all(text.as_bytes())?),
        false => report::write(to, text),
    }
}

/// Writes results into the files that `to` names, and as a table unless a file is standard output.
pub(crate) fn write(
    results: &Results<'_>,
    to: &args::Results,
    output: &mut dyn Write,
) -> anyhow::Result<()> {
    let (json, csv) = (&to.json, &to.csv);
    let mut is_told = false;
    for (to, written) in [
        (json, json.as_ref().map(|_| result_files::json(results))),
        (csv, csv.as_ref().map(|_| result_files::csv(results))),
    ] {
        if let (Some(to), Some(written)) = (to, written) {
            if to == Path::new("-") {
                output.write_all(written.as_bytes())?;
                is_told = true;
            } else {
                report::write(to, written)?;
            }
        }
    }
    if let Some(to) = &to.page {
        report::write(to, page::html(results)?)?;
    }
    if !is_told {
        output.write_all(plain(&text::table(results)).as_bytes())?;
    }
    Ok(())
}

/// Checks that all outputs can be written. This comes before the runs, which may take hours.
pub(crate) fn refuse_outputs(results: &args::Results) -> anyhow::Result<()> {
    let is_stdout = |to: &Option<PathBuf>| to.as_deref() == Some(Path::new("-"));
    if is_stdout(&results.json) && is_stdout(&results.csv) {
        bail!("--json - and --csv - would be mixed: write one of them to a file");
    }
    for to in [&results.json, &results.csv, &results.page] {
        refuse_folder(to.as_deref())?;
    }
    Ok(())
}

/// Rejects `--part` for systems whose sweeps are divided by their values.
fn refuse_part(args: &Simulate, system: &str) -> anyhow::Result<()> {
    match args.part {
        Some(_) => bail!(
            "--part is not for scenarios of {system}: give each machine some values by --sweep KEY=VALUE, and join the rows of the CSV files"
        ),
        None => Ok(()),
    }
}

/// Checks that the folder of an output exists.
pub(crate) fn refuse_folder(to: Option<&Path>) -> anyhow::Result<()> {
    let folder = to.and_then(Path::parent);
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        bail!(
            "cannot write in {}: there is no such folder",
            folder.display()
        );
    }
    Ok(())
}

fn cpus() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Calls `simulate` with a function that shows its progress.
fn with_bar<T>(
    runs_count: usize,
    simulate: impl FnOnce(&(dyn Fn(usize) + Sync)) -> Result<T, SweepError>,
) -> anyhow::Result<T> {
    let bar = gleaner_terminal::bar("simulate", runs_count as u64);
    bar.set_message("reading hosts");
    let told = |done: usize| {
        bar.set_position(done as u64);
        bar.set_message(format!("{done} of {runs_count} runs"));
    };
    let simulated = simulate(&told);
    bar.finish_and_clear();
    Ok(simulated?)
}
