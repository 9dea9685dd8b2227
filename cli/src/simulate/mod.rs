//! `gleaner simulate`: runs scenarios given as file or name; results as table, JSON, CSV and page.
//!
//! ```text
//! file, arguments ─► scenario ─► gleaner_simulator::sweep: plan, clusters, rows ─► text, result_files, page
//!                                               forecasts: learnt first ─┘
//! ```

pub(crate) mod args;
mod forecasts;
mod page;
mod result_files;
mod scenario;
mod text;

use crate::report;
use crate::tables::plain;
use anyhow::bail;
use args::Simulate;
use gleaner_simulator::sweep::{self, Cluster, Plan, Row, ScenarioFile, SweepError};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// A scenario that was run, and the rows of its results.
pub(crate) struct Results<'a> {
    /// Name of the scenario.
    name: &'a str,
    file: &'a ScenarioFile,
    plan: &'a Plan,
    clusters: &'a [Cluster],
    rows: &'a [Row],
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
    refuse_outputs(&args.results)?;
    let (file, folders) = scenario::read(&found, &args.instead)?;
    let plan = Plan::new(
        &file,
        folders.iter().map(|(name, _)| name.clone()).collect(),
    )?;
    // A shipped scenario's start is a day of its own synthetic datasets. Another dataset need not have
    // records of that day.
    let is_other =
        found.is_shipped && args.instead.from.is_none() && !args.instead.dataset.is_empty();
    let open = |(name, folder): &(String, PathBuf)| match Cluster::open(
        name,
        folder,
        file.from.as_deref(),
        plan.length_ns,
    ) {
        Err(SweepError::Span { .. }) if is_other => {
            let cluster = Cluster::open(name, folder, None, plan.length_ns)?;
            eprintln!(
                "gleaner: dataset {name} is simulated from its first day on: --from names another"
            );
            Ok(cluster)
        }
        opened => opened,
    };
    let mut clusters = folders.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    forecasts::learn(&plan, &mut clusters)?;
    let rows = rows(args, &plan, &clusters)?;
    let results = Results {
        name: &found.name,
        file: &file,
        plan: &plan,
        clusters: &clusters,
        rows: &rows,
    };
    let (json, csv) = (&args.results.json, &args.results.csv);
    let mut is_told = false;
    for (to, written) in [
        (json, json.as_ref().map(|_| result_files::json(&results))),
        (csv, csv.as_ref().map(|_| result_files::csv(&results))),
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
    if let Some(to) = &args.results.page {
        report::write(to, page::html(&results)?)?;
    }
    if !is_told {
        output.write_all(plain(&text::table(&results)).as_bytes())?;
    }
    Ok(())
}

/// Checks that all outputs can be written. This comes before the runs, which may take hours.
fn refuse_outputs(results: &args::Results) -> anyhow::Result<()> {
    let is_stdout = |to: &Option<PathBuf>| to.as_deref() == Some(Path::new("-"));
    if is_stdout(&results.json) && is_stdout(&results.csv) {
        bail!("--json - and --csv - would be mixed: write one of them to a file");
    }
    for to in [&results.json, &results.csv, &results.page] {
        let folder = to.as_deref().and_then(Path::parent);
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            bail!(
                "cannot write in {}: there is no such folder",
                folder.display()
            );
        }
    }
    Ok(())
}

fn rows(args: &Simulate, plan: &Plan, clusters: &[Cluster]) -> anyhow::Result<Vec<Row>> {
    let one = NonZeroUsize::MIN;
    let cpus = || std::thread::available_parallelism().unwrap_or(one);
    let bar = gleaner_terminal::bar("simulate", plan.runs() as u64);
    bar.set_message("reading hosts");
    let told = |done: usize| {
        bar.set_position(done as u64);
        bar.set_message(format!("{done} of {} runs", plan.runs()));
    };
    let rows = sweep::run(plan, clusters, args.jobs.unwrap_or_else(cpus), &told);
    bar.finish_and_clear();
    Ok(rows?)
}
