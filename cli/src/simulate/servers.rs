//! Scenarios of memory servers (`system = "servers"`): policies of choice and shutdown, for servers and clients of the
//! scenario, or for the hosts of datasets and the curves of programs.

use super::args::Simulate;
use super::scenario::{ScenarioText, check_from, folders};
use super::swept_files::SweptResults;
use super::{cpus, has_other_days, open_recorded, refuse_outputs, refuse_part};
use crate::tables::or_dash;
use anyhow::{Context, bail};
use gleaner_simulator::event::MS;
use gleaner_simulator::references::read_curve;
use gleaner_simulator::servers::{self, Inputs, MEASURES, Measure, ScenarioFile};
use gleaner_simulator::swept::SweptRow;
use std::io::Write;

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
    if let Some(from) = &args.instead.from {
        check_from(from)?;
        file.from = Some(from.clone());
    }
    file.check_inputs()?;
    let inputs = open(&mut file, found, args)?;
    let runs = servers::runs(&file)?;
    let threads = args.jobs.unwrap_or_else(cpus);
    let bar = gleaner_terminal::bar("simulate", runs as u64);
    let rows = servers::rows(&file, &inputs, threads, &|done| {
        bar.set_position(done as u64);
        bar.set_message(format!("{done} of {runs} runs"));
    });
    bar.finish_and_clear();
    write(&found.name, &file, &rows?, args, output)
}

/// Rejects options of other scenarios: some need a dataset's hosts, and a sweep of servers has no parts.
fn refuse_options(args: &Simulate, has_datasets: bool) -> anyhow::Result<()> {
    let instead = &args.instead;
    let of_datasets = [
        ("--dataset", !instead.dataset.is_empty()),
        ("--from", instead.from.is_some()),
    ];
    let given = of_datasets.iter().find(|(_, is_given)| *is_given);
    if let Some((option, _)) = given.filter(|_| !has_datasets) {
        bail!("{option} is for scenarios with datasets: leave it out, or write a table [datasets]");
    }
    let of_others = [
        ("--program", !instead.program.is_empty()),
        ("--page", args.results.page.is_some()),
    ];
    if let Some((option, _)) = of_others.iter().find(|(_, is_given)| *is_given) {
        bail!("{option} is not for scenarios of memory servers: leave it out");
    }
    if instead.days.is_some() {
        bail!(
            "--days: scenarios of memory servers, also with datasets, have the setting length_ms: write --sweep length_ms=MS"
        );
    }
    refuse_part(args, "memory servers")
}

/// Opens the datasets, which the file then has, and reads the curves.
fn open(file: &mut ScenarioFile, found: &ScenarioText, args: &Simulate) -> anyhow::Result<Inputs> {
    let mut inputs = Inputs::default();
    for (name, place) in &file.curves {
        let curve = read_curve(&found.place(place)).with_context(|| format!("curve {name}"))?;
        inputs.curves.insert(name.clone(), curve);
    }
    if file.datasets.is_empty() {
        return Ok(inputs);
    }
    let places = folders(&file.datasets, found, &args.instead)?;
    let length_ns = u64::from(file.longest_ms()?) * MS;
    let (from, has_other_days) = (file.from.as_deref(), has_other_days(found, args));
    inputs.datasets = open_recorded(&places, from, length_ns, has_other_days)?;
    file.datasets = places.into_iter().collect();
    Ok(inputs)
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
