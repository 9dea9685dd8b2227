//! Scenarios of memory servers (`system = "servers"`): policies of choice and shutdown, without datasets.

use super::args::Simulate;
use super::result_files::line;
use super::scenario::ScenarioText;
use super::{cpus, refuse_outputs};
use crate::report;
use crate::tables::or_dash;
use anyhow::{Context, bail};
use gleaner_simulator::servers::{self, MEASURES, Measure, Row, ScenarioFile};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::Path;

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

/// Rejects options that need a dataset's hosts.
fn refuse_options(args: &Simulate) -> anyhow::Result<()> {
    let instead = &args.instead;
    let given = [
        ("--dataset", !instead.dataset.is_empty()),
        ("--program", !instead.program.is_empty()),
        ("--from", instead.from.is_some()),
        ("--days", instead.days.is_some()),
        ("--part", args.part.is_some()),
        ("--page", args.results.page.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => bail!("{option} is for scenarios with datasets: leave it out"),
        None => Ok(()),
    }
}

fn write(
    name: &str,
    file: &ScenarioFile,
    rows: &[Row],
    args: &Simulate,
    output: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut is_printed = false;
    for (to, text) in [
        (&args.results.json, json(name, file, rows)),
        (&args.results.csv, csv(file, rows)),
    ] {
        match to {
            Some(to) if to == Path::new("-") => {
                output.write_all(text.as_bytes())?;
                is_printed = true;
            }
            Some(to) => report::write(to, text)?,
            None => {}
        }
    }
    if !is_printed {
        output.write_all(table(file, rows).as_bytes())?;
    }
    Ok(())
}

/// All rows as one JSON document.
fn json(name: &str, file: &ScenarioFile, rows: &[Row]) -> String {
    let keys = file.keys();
    let row = |row: &Row| {
        let settings = keys
            .iter()
            .cloned()
            .zip(row.settings.iter().map(|v| json!(v)));
        let mut object = Map::new();
        object.insert("settings".to_owned(), Value::Object(settings.collect()));
        for (measure, value) in MEASURES.iter().zip(&row.values) {
            object.insert(measure.key.to_owned(), json!(value));
        }
        Value::Object(object)
    };
    let measure = |m: &Measure| json!({ "key": m.key, "meaning": m.meaning });
    let document = json!({
        "scenario": name,
        "about": file.about,
        "system": "servers",
        "seeds": file.seeds,
        "keys": keys,
        "measures": MEASURES.iter().map(measure).collect::<Vec<Value>>(),
        "rows": rows.iter().map(row).collect::<Vec<Value>>(),
    });
    format!("{document:#}\n")
}

/// CSV with one line per row: median, minimum and maximum of each measure over the seeds.
fn csv(file: &ScenarioFile, rows: &[Row]) -> String {
    let mut header = file.keys();
    header.push("seeds".to_owned());
    for measure in &MEASURES {
        header.push(measure.key.to_owned());
        header.push(format!("{}_low", measure.key));
        header.push(format!("{}_high", measure.key));
    }
    let mut text = line(&header);
    for row in rows {
        let mut fields = row.settings.clone();
        fields.push(file.seeds.len().to_string());
        for value in &row.values {
            // An unknown value is an empty field.
            let known = value.map(|v| [v.median, v.low, v.high].map(|v| v.to_string()));
            fields.extend(known.unwrap_or_default());
        }
        text += &line(&fields);
    }
    text
}

/// Table of all rows: the medians of the measures that the file selects.
fn table(file: &ScenarioFile, rows: &[Row]) -> String {
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
