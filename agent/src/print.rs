//! Output of commands: a sample as text, and results as JSON.

use crate::sample::Sample;
use gleaner_schemas::column::{Row, Value};
use gleaner_schemas::findings::Category;
use gleaner_schemas::rows::{FileRow, ProcessRow, SampleRow};
use gleaner_schemas::units::{Bytes, Seconds};
use serde_json::{Map, Value as Json, json};
use std::fmt::Write;

/// Number of processes and files listed in the text.
const LISTED: usize = 10;

/// Result of a command as JSON.
#[must_use]
pub fn document(found: &impl serde::Serialize) -> String {
    let json = serde_json::to_value(found).unwrap_or_default(); // plain structs always serialise
    format!("{json:#}\n")
}

/// The sample as JSON: each field with its unit, then the absent values.
#[must_use]
pub fn json(sample: &Sample) -> String {
    let mut fields = Map::new();
    fields.insert(
        "time_ms".to_owned(),
        json!({ "value": sample.moment.time_ms, "unit": "ms since 1970-01-01 UTC" }),
    );
    fields.extend(fields_of(&sample.row));
    let document = json!({
        "sample": fields,
        "processes": table(&sample.processes),
        "files": table(&sample.files),
        "activity": table(&sample.activity),
        "numa_nodes": table(&sample.numa_nodes),
        "cgroups": table(&sample.cgroups),
        "missing_values": table(&sample.missing_values.rows()),
    });
    format!("{document:#}\n")
}

fn table<R: Row>(rows: &[R]) -> Vec<Json> {
    rows.iter()
        .map(|row| Json::Object(fields_of(row)))
        .collect()
}

fn fields_of<R: Row>(row: &R) -> Map<String, Json> {
    R::TABLE
        .columns
        .iter()
        .zip(row.to_values())
        .map(|(column, value)| {
            (
                column.name.to_owned(),
                json!({ "value": value, "unit": column.unit() }),
            )
        })
        .collect()
}

/// Renders the sample as text.
#[must_use]
pub fn text(sample: &Sample) -> String {
    let mut text = categories(&sample.row);
    let _ = write_lists(&mut text, sample); // writing to a String cannot fail
    text
}

fn categories(row: &SampleRow) -> String {
    let values = row.to_values();
    let value_of = |name: &str| {
        let at = SampleRow::TABLE.columns.iter().position(|c| c.name == name);
        match at.map(|at| &values[at]) {
            Some(Value::Integer(bytes)) => Some(*bytes),
            _ => None,
        }
    };
    let mut lines = vec![("physical memory".to_owned(), Some(row.physical_bytes))];
    lines.extend(Category::ALL.map(|category| {
        let column = category.column();
        let name = column.trim_end_matches("_bytes").replace('_', " ");
        (format!("  {name}"), value_of(column))
    }));
    if row.category_correction_bytes != 0 {
        lines.push((
            "  contradicted by the kernel".to_owned(),
            Some(row.category_correction_bytes),
        ));
    }
    lines.push(("harvestable now".to_owned(), row.harvestable_bytes));
    let mut text = String::new();
    for (name, bytes) in lines {
        let share = bytes.map(|b| b as f64 * 100.0 / row.physical_bytes.max(1) as f64);
        let _ = match (bytes, share) {
            (Some(bytes), Some(share)) => {
                writeln!(text, "{name:<28}{:>12}{share:>8.1} %", Bytes::from(bytes))
            }
            _ => writeln!(text, "{name:<28}{:>12}", "unknown"),
        };
    }
    text
}

fn write_lists(text: &mut String, sample: &Sample) -> std::fmt::Result {
    let row = &sample.row;
    writeln!(
        text,
        "\nload {}, owner idle {}; {} processes, {} active; this sample took {:.1} ms of CPU",
        row.load5
            .map_or_else(|| "unknown".to_owned(), |l| format!("{l:.2} over 5 min")),
        time(row.owner_idle_ms),
        row.processes_count,
        row.active_processes_count,
        row.agent_cpu_us as f64 / 1000.0,
    )?;
    let mut processes: Vec<&ProcessRow> = sample.processes.iter().collect();
    processes.sort_by_key(|p| {
        std::cmp::Reverse(p.anon_bytes.max(Some(0)).unwrap_or(0) + p.shmem_bytes.unwrap_or(0))
    });
    writeln!(
        text,
        "\n{:<28}{:>12}{:>12}{:>12}{:>10}",
        "active processes", "anonymous", "file", "shared", "pid"
    )?;
    for p in processes.iter().take(LISTED) {
        let (anon, file, shmem) = (size(p.anon_bytes), size(p.file_bytes), size(p.shmem_bytes));
        writeln!(
            text,
            "  {:<26}{anon:>12}{file:>12}{shmem:>12}{:>10}",
            printable(&p.name),
            p.pid
        )?;
    }
    let mut files: Vec<&FileRow> = sample.files.iter().collect();
    files.sort_by_key(|f| std::cmp::Reverse(f.cached_bytes));
    writeln!(
        text,
        "\n{:<52}{:>12}{:>10}",
        "files in use", "cached", "mapped"
    )?;
    for f in files.iter().take(LISTED) {
        let (cached, mapped) = (size(f.cached_bytes), size(f.mapped_cached_bytes));
        writeln!(
            text,
            "  {:<50}{cached:>12}{mapped:>10}",
            f.path.as_deref().map_or_else(|| "?".to_owned(), printable)
        )?;
    }
    writeln!(
        text,
        "\n{:<28}{:>12}{:>12}{:>10}",
        "owner's activity", "state", "idle", "devices"
    )?;
    for source in &sample.activity {
        writeln!(
            text,
            "  {:<26}{:>12}{:>12}{:>10}",
            source.source,
            source.state,
            time(source.idle_ms),
            source.devices_count
        )?;
    }
    let missing_values = sample.missing_values.rows();
    if !missing_values.is_empty() {
        writeln!(
            text,
            "\n{:<28}{:>12}{:>12}  detail",
            "could not be read", "reason", "times"
        )?;
    }
    for a in &missing_values {
        writeln!(
            text,
            "  {:<26}{:>12}{:>12}  {}",
            a.item, a.reason, a.missing_count, a.detail
        )?;
    }
    Ok(())
}

fn size(bytes: Option<i64>) -> String {
    bytes.map_or_else(|| "unknown".to_owned(), |b| Bytes::from(b).to_string())
}

fn time(ms: Option<i64>) -> String {
    ms.map_or_else(
        || "unknown".to_owned(),
        |ms| Seconds::from_ms(ms).to_string(),
    )
}

/// Replaces control characters in a name: a name is chosen by the user who runs the process or creates the
/// file, and must not control the terminal.
pub(crate) fn printable(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}
