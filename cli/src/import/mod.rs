//! `gleaner import`: one match arm for each source. Everything else is the same for all sources.

pub(crate) mod args;
mod columns;
mod preview;
mod summary;

use args::{BitbrainsTrace, CommonArgs, Import, ImportPrometheus, ImportSource, MaternaTrace};
use gleaner_traces::import::alibaba::Alibaba;
use gleaner_traces::import::bitbrains::{self, FAST_STORAGE, RND};
use gleaner_traces::import::csv::{Csv, Mapping};
use gleaner_traces::import::materna;
use gleaner_traces::import::pcp::{self, Pcp};
use gleaner_traces::import::prometheus::{self, Address, Prometheus, Times};
use gleaner_traces::import::sysstat::{self, Sysstat};
use gleaner_traces::import::{ImportError, Importer, Progress, Source, import_at};
use std::io::Write;
use std::path::Path;

pub(crate) fn run(args: &Import, output: &mut dyn Write) -> anyhow::Result<()> {
    // clap guarantees that a folder (or file) and a dataset are given, unless only the columns are requested.
    match &args.source {
        ImportSource::Alibaba(args) => match (&args.file, args.into.dataset()) {
            (Some(file), Some(dataset)) => take(
                &mut Alibaba::new(file, args.start),
                dataset,
                &args.into,
                output,
            ),
            _ => columns(
                &Alibaba::new(Path::new(""), args.start).source(),
                &args.into,
                output,
            ),
        },
        ImportSource::Bitbrains(args) => {
            let source = match args.trace {
                BitbrainsTrace::Rnd => RND,
                BitbrainsTrace::FastStorage => FAST_STORAGE,
            };
            match (&args.folder, args.into.dataset()) {
                (Some(folder), Some(dataset)) => take(
                    &mut bitbrains::importer(folder, source),
                    dataset,
                    &args.into,
                    output,
                ),
                _ => columns(&source, &args.into, output),
            }
        }
        ImportSource::Csv(args) => {
            let mapping = Mapping::read(&args.mapping)?;
            let mut csv = Csv::new(&mapping, &args.files);
            match args.into.dataset() {
                _ if args.check => preview::print(&csv, args.into.json, output),
                Some(dataset) => take(&mut csv, dataset, &args.into, output),
                None => columns(&csv.source(), &args.into, output),
            }
        }
        ImportSource::Materna(args) => {
            let source = match args.trace {
                MaternaTrace::One => materna::TRACES[0],
                MaternaTrace::Two => materna::TRACES[1],
                MaternaTrace::Three => materna::TRACES[2],
            };
            match (&args.folder, args.into.dataset()) {
                (Some(folder), Some(dataset)) => take(
                    &mut materna::importer(folder, source),
                    dataset,
                    &args.into,
                    output,
                ),
                _ => columns(&source, &args.into, output),
            }
        }
        ImportSource::Prometheus(args) => match (prometheus(args)?, args.into.dataset()) {
            (Some(mut importer), Some(dataset)) => take(&mut importer, dataset, &args.into, output),
            _ => columns(&prometheus::SOURCE, &args.into, output),
        },
        ImportSource::Sysstat(args) => match args.into.dataset() {
            Some(dataset) => {
                let mut importer = Sysstat::new(&args.inputs, args.time_zone.clone());
                take(&mut importer, dataset, &args.into, output)
            }
            None => columns(&sysstat::SOURCE, &args.into, output),
        },
        ImportSource::Pcp(args) => match args.into.dataset() {
            Some(dataset) => take(&mut Pcp::new(&args.inputs), dataset, &args.into, output),
            None => columns(&pcp::SOURCE, &args.into, output),
        },
    }
}

/// Importer of the requested server or folder; `None` if only the columns are requested.
fn prometheus(args: &ImportPrometheus) -> Result<Option<Prometheus>, ImportError> {
    if args.into.dataset().is_none() {
        return Ok(None);
    }
    let selector = args.selector.clone();
    let times = Times {
        from_ms: args.from,
        until_ms: args.until,
    };
    let importer = match (&args.url, &args.folder) {
        (Some(url), _) => {
            let address = Address {
                url: url.clone(),
                bearer_file: args.bearer_file.clone(),
                authority: args.ca.clone(),
            };
            Prometheus::server(&address, selector, times)?
        }
        (None, Some(folder)) => Prometheus::folder(folder, selector, times)?,
        (None, None) => return Ok(None),
    };
    Ok(Some(match &args.name {
        Some(name) => importer.named(name),
        None => importer,
    }))
}

/// Imports, and prints a summary.
fn take(
    importer: &mut impl Importer,
    dataset: &Path,
    args: &CommonArgs,
    output: &mut dyn Write,
) -> anyhow::Result<()> {
    let bar = gleaner_terminal::bar("import", 1);
    let progress = |p: &Progress<'_>| {
        bar.set_length(p.machines_in_all as u64);
        bar.set_position(p.machines as u64);
        bar.set_message(format!("machine {}", p.machine));
    };
    let imported = import_at(importer, dataset, args.interval, progress)?;
    bar.finish_and_clear();
    if args.json {
        let mut summary = serde_json::to_value(&imported)?;
        summary["dataset"] = serde_json::to_value(dataset)?;
        writeln!(output, "{summary:#}")?;
    } else {
        output.write_all(summary::summary_text(&imported, dataset).as_bytes())?;
    }
    // An incomplete import is an error: exit code 0 would tell a script that everything was imported.
    anyhow::ensure!(
        imported.unusable_parts.is_empty(),
        "{} could not be used and was left out: {}; the rest is imported",
        imported.unusable_parts.len(),
        imported.unusable_parts.join("; ")
    );
    Ok(())
}

/// Prints which columns a source fills.
fn columns(source: &Source<'_>, args: &CommonArgs, output: &mut dyn Write) -> anyhow::Result<()> {
    let text = if args.json {
        format!("{:#}\n", columns::json(source))
    } else {
        columns::columns_table(source)
    };
    Ok(output.write_all(text.as_bytes())?)
}
