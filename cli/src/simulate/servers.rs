//! Scenarios of memory servers (`system = "servers"`): policies of choice and shutdown, without datasets.

use super::args::Simulate;
use super::scenario::ScenarioText;
use super::swept_files::SweptResults;
use super::{cpus, refuse_outputs, refuse_part};
use crate::tables::or_dash;
use anyhow::{Context, bail};
use gleaner_simulator::servers::{self, MEASURES, Measure, ScenarioFile};
use gleaner_simulator::swept::SweptRow;
use std::io::Write;

/// Runs the scenario, and writes its results.
pub(super) fn run(
    found: &ScenarioText,
    args: &Simulate,
    output: &mut dyn Write,
) -> anyhow::Result<()> {
    refuse_options(args)?;
    refuse_outputs(&args.results)?;
    let mut file = ScenarioFile::parse(&found.text).with_context(|| found.origin.clone())?;
    for swept in &args.instead.sweep {
        file.set_sweep(&swept.key, swept.values.clone())?;
    }
    if !args.instead.seed.is_empty() {
        file.seeds.clone_from(&args.instead.seed);
    }
    let runs = servers::runs(&file)?;
    let threads = args.jobs.unwrap_or_else(cpus);
    let bar = gleaner_terminal::bar("simulate", runs as u64);
    let rows = servers::rows(&file, threads, &|done| {
        bar.set_position(done as u64);
        bar.set_message(format!("{done} of {runs} runs"));
    });
    bar.finish_and_clear();
    write(&found.name, &file, &rows?, args, output)
}

/// Rejects options that need a dataset's hosts, and parts.
fn refuse_options(args: &Simulate) -> anyhow::Result<()> {
    let instead = &args.instead;
    let given = [
        ("--dataset", !instead.dataset.is_empty()),
        ("--program", !instead.program.is_empty()),
        ("--from", instead.from.is_some()),
        ("--days", instead.days.is_some()),
        ("--page", args.results.page.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => bail!("{option} is for scenarios with datasets: leave it out"),
        None => refuse_part(args, "memory servers"),
    }
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
        system: "servers",
        seeds: &file.seeds,
        keys: file.keys(),
        measures: MEASURES.iter().map(|m| (m.key, m.meaning)).collect(),
        rows,
    };
    let is_printed = swept.write(args, output)?;
    if !is_printed {
        output.write_all(table(file, rows).as_bytes())?;
    }
    Ok(())
}

/// Table of all rows: the medians of the measures that the file selects.
fn table(file: &ScenarioFile, rows: &[SweptRow]) -> String {
    let is_shown = |measure: &Measure| {
        file.columns.is_empty() || file.columns.iter().any(|key| key == measure.key)
    };
    let keys = file.keys();
    let mut header: Vec<&str> = keys.iter().map(String::as_str).collect();
    let left = header.len();
    for measure in &MEASURES {
        if is_shown(measure) {
            header.push(measure.label);
        }
    }
    let mut table = gleaner_terminal::table(&header, left);
    for row in rows {
        let mut cells = row.settings.clone();
        for (measure, value) in MEASURES.iter().zip(&row.values) {
            if is_shown(measure) {
                cells.push(or_dash(value.map(|v| number(measure.key, v.median))));
            }
        }
        table.add_row(cells);
    }
    table.trim_fmt() + "\n"
}

fn number(key: &str, value: f64) -> String {
    if key.ends_with("_share") {
        crate::tables::percent(value)
    } else if key.ends_with("_bytes") || key.ends_with("_pages") || key.ends_with("_us") {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}
