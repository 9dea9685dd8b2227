//! Scenarios of global memory (`system = "gms"`): programs on the paper's machines, beside idle nodes or the recorded
//! hosts of datasets.

use super::args::{Replacements, Simulate};
use super::global_memory_page;
use super::scenario::{ScenarioText, check_from, folders};
use super::swept_files::SweptResults;
use super::{cpus, has_other_days, open_recorded, refuse_outputs, refuse_part};
use crate::report;
use crate::tables::{or_dash, plain};
use anyhow::{Context, bail};
use gleaner_schemas::units::Bytes;
use gleaner_simulator::gms::{self, MEASURES, ScenarioFile};
use gleaner_simulator::hosts::RecordedDataset;
use gleaner_simulator::swept::SweptRow;
use std::io::Write;

/// Measures that the table on a terminal leaves out. JSON, CSV and page have all measures.
const NOT_PRINTED: [&str; 4] = [
    "cluster_reads",
    "network_bytes_per_s",
    "epoch_bytes_per_s",
    "owner_cpu_share",
];
/// Ends of the keys of whole numbers.
const WHOLE: [&str; 5] = ["_bytes_per_s", "_reads", "_transfers", "_returns", "_pages"];

/// Runs the scenario, and writes its results.
pub(super) fn run(
    found: &ScenarioText,
    args: &Simulate,
    output: &mut dyn Write,
) -> anyhow::Result<()> {
    refuse_outputs(&args.results)?;
    let mut file = ScenarioFile::parse(&found.text).with_context(|| found.origin.clone())?;
    refuse_options(args, !file.datasets.is_empty())?;
    for swept in &args.instead.sweep {
        file.set_sweep(&swept.key, swept.values.clone())?;
    }
    if !args.instead.seed.is_empty() {
        file.seeds.clone_from(&args.instead.seed);
    }
    set_time(&mut file, &args.instead)?;
    let datasets = open(&mut file, found, args)?;
    let runs = gms::runs(&file)?;
    if args.results.page.is_some() {
        global_memory_page::check(&file)?;
    }
    let threads = args.jobs.unwrap_or_else(cpus);
    let bar = gleaner_terminal::bar("simulate", runs as u64);
    let rows = gms::rows(&file, &datasets, threads, &|done| {
        bar.set_position(done as u64);
        bar.set_message(format!("{done} of {runs} runs"));
    });
    bar.finish_and_clear();
    write(&found.name, &file, &rows?, args, output)
}

/// Rejects options of other scenarios: some need a dataset's hosts, and a sweep of global memory has no parts.
fn refuse_options(args: &Simulate, has_datasets: bool) -> anyhow::Result<()> {
    let instead = &args.instead;
    let of_datasets = [
        ("--dataset", !instead.dataset.is_empty()),
        ("--from", instead.from.is_some()),
        ("--days", instead.days.is_some()),
    ];
    let given = of_datasets.iter().find(|(_, is_given)| *is_given);
    if let Some((option, _)) = given.filter(|_| !has_datasets) {
        bail!("{option} is for scenarios with datasets: leave it out, or write a table [datasets]");
    }
    if !instead.program.is_empty() {
        bail!("--program is not for scenarios of global memory: leave it out");
    }
    refuse_part(args, "global memory")
}

/// Replaces begin and length of the recorded time.
fn set_time(file: &mut ScenarioFile, instead: &Replacements) -> anyhow::Result<()> {
    if let Some(from) = &instead.from {
        check_from(from)?;
        file.from = Some(from.clone());
    }
    file.days = instead.days.unwrap_or(file.days);
    Ok(file.check_recorded()?)
}

/// Opens the datasets, which the file then has.
fn open(
    file: &mut ScenarioFile,
    found: &ScenarioText,
    args: &Simulate,
) -> anyhow::Result<Vec<RecordedDataset>> {
    let places = folders(&file.datasets, found, &args.instead)?;
    let (from, has_other_days) = (file.from.as_deref(), has_other_days(found, args));
    let datasets = open_recorded(&places, from, file.length_ns(), has_other_days)?;
    file.datasets = places.into_iter().collect();
    Ok(datasets)
}

fn write(
    name: &str,
    file: &ScenarioFile,
    rows: &[SweptRow],
    args: &Simulate,
    output: &mut dyn Write,
) -> anyhow::Result<()> {
    let swept = SweptResults {
        scenario: name,
        about: &file.about,
        system: "gms",
        seeds: &file.seeds,
        keys: file.keys(),
        measures: MEASURES.iter().map(|m| (m.key, m.meaning)).collect(),
        rows,
    };
    let is_printed = swept.write(args, output)?;
    if let Some(to) = &args.results.page {
        report::write(to, global_memory_page::html(name, file, rows)?)?;
    }
    if !is_printed {
        output.write_all(plain(&table(file, rows)).as_bytes())?;
    }
    Ok(())
}

/// Table of all rows: the medians, and the range of speedups if there are several seeds. Measures that no row has are
/// left out, and those of [`NOT_PRINTED`].
fn table(file: &ScenarioFile, rows: &[SweptRow]) -> String {
    let keys = file.keys();
    let has_range = file.seeds.len() > 1;
    let is_known = |at: usize| {
        let mut values = rows.iter().map(|row| row.values.get(at));
        values.any(|value| matches!(value, Some(Some(_))))
    };
    let mut printed: Vec<(usize, &gms::Measure)> = MEASURES.iter().enumerate().collect();
    printed.retain(|(at, measure)| is_known(*at) && !NOT_PRINTED.contains(&measure.key));
    let mut header: Vec<&str> = keys.iter().map(String::as_str).collect();
    let left = header.len();
    for (_, measure) in &printed {
        header.push(measure.label);
        if has_range && measure.key == "speedup" {
            header.push("of seeds");
        }
    }
    let mut table = gleaner_terminal::table(&header, left);
    for row in rows {
        let mut cells = row.settings.clone();
        for (at, measure) in &printed {
            let value = row.values.get(*at).copied().flatten();
            cells.push(or_dash(value.map(|v| number(measure.key, v.median))));
            if has_range && measure.key == "speedup" {
                cells.push(or_dash(
                    value.map(|v| format!("{:.2}–{:.2}", v.low, v.high)),
                ));
            }
        }
        table.add_row(cells);
    }
    table.trim_fmt() + "\n"
}

fn number(key: &str, value: f64) -> String {
    if key.ends_with("_share") {
        crate::tables::percent(value)
    } else if key.ends_with("_bytes") {
        Bytes(value).to_string()
    } else if WHOLE.iter().any(|end| key.ends_with(end)) {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}
