//! `gleaner import csv --check`: what a mapping makes of the first rows.

use gleaner_schemas::column::Value;
use gleaner_traces::import::csv::{Csv, Preview, PreviewRow};
use serde_json::json;
use std::io::Write;

/// Number of rows shown.
const ROWS: usize = 10;

pub(crate) fn print(csv: &Csv<'_>, as_json: bool, output: &mut dyn Write) -> anyhow::Result<()> {
    let rows = csv.preview(ROWS)?;
    let text = if as_json {
        let rows: Vec<_> = rows.iter().map(to_json).collect();
        format!("{:#}\n", json!(rows))
    } else {
        preview_blocks(&rows)
    };
    Ok(output.write_all(text.as_bytes())?)
}

/// The columns that a row fills, with their values.
fn values(row: &PreviewRow) -> Vec<(String, Value)> {
    let r = row.reading;
    let mut values = vec![
        (
            "physical_bytes".to_owned(),
            Value::Integer(r.physical_bytes),
        ),
        (
            "available_bytes".to_owned(),
            Value::Integer(r.available_bytes),
        ),
    ];
    let further = row.further.iter();
    let further = further.map(|(name, value)| ((*name).to_owned(), value.clone()));
    values.extend(further);
    if r.cpus_count > 0 {
        values.push(("hosts.cpus_count".to_owned(), Value::Integer(r.cpus_count)));
    }
    values.extend(
        row.facts
            .iter()
            .map(|(name, fact)| (format!("hosts.{name}"), fact.clone())),
    );
    values
}

fn time(row: &PreviewRow) -> String {
    // This conversion does not fail: the mapping accepts only times that a timestamp can represent.
    jiff::Timestamp::from_millisecond(row.reading.time_ms)
        .map_or_else(|e| e.to_string(), |time| time.to_string())
}

/// A block of lines for each row of the file, since all values of a row in one line would be wider than a
/// terminal.
fn preview_blocks(rows: &[Preview]) -> String {
    let mut table = gleaner_terminal::table(&["line", "column", "value"], 3);
    for preview in rows {
        let line = preview.line.to_string();
        let (machine, row) = (preview.machine.as_ref(), preview.row.as_ref());
        if let Some(why) = machine.err().or(row.err()) {
            table.add_row([line.as_str(), "-", &format!("no reading: {why}")]);
            continue;
        }
        let (Ok(machine), Ok(row)) = (machine, row) else {
            continue;
        };
        table.add_row([line.as_str(), "machine", machine.as_str()]);
        table.add_row(["", "time", &time(row)]);
        for (name, value) in values(row) {
            let value = match value {
                Value::Text(text) => text,
                Value::Integer(n) => n.to_string(),
                Value::Real(n) => n.to_string(),
                Value::Flag(_) | Value::Null => continue,
            };
            table.add_row(["", &name, &value]);
        }
    }
    format!("{}\n", table.trim_fmt())
}

fn to_json(preview: &Preview) -> serde_json::Value {
    match (&preview.machine, &preview.row) {
        (Ok(machine), Ok(row)) => {
            let columns: serde_json::Map<String, serde_json::Value> = values(row)
                .into_iter()
                .map(|(name, value)| (name, json!(value)))
                .collect();
            json!({"line": preview.line, "machine": machine, "time": time(row), "columns": columns})
        }
        (Err(why), _) | (_, Err(why)) => json!({"line": preview.line, "unreadable": why}),
    }
}
