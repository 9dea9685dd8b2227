//! Results of a simulation as an aligned table.

use super::Results;
use crate::tables::{or_dash, percent};
use gleaner_schemas::units::Bytes;
use gleaner_simulator::gms;
use gleaner_simulator::servers;
use gleaner_simulator::sweep::{MEASURES, SHIPPED, ScenarioFile, Unit};
use gleaner_simulator::swept::Spread;

/// Measures that the table on a terminal shows. JSON, CSV and page have all measures.
const PRINTED: [&str; 9] = [
    "speedup",
    "ideal_speedup",
    "gain_share",
    "hit_share",
    "saved_from_disk_bytes",
    "reclaims_per_host_day",
    "mean_memory_context_bytes",
    "mean_upper_bound_bytes",
    "owner_delay_s_per_host_day",
];

/// List of the scenarios shipped with Gleaner.
pub(super) fn shipped() -> anyhow::Result<String> {
    let mut table = gleaner_terminal::table(&["scenario", "what for"], 2);
    for shipped in SHIPPED {
        let file = ScenarioFile::parse(shipped.text)?;
        table.add_row(vec![shipped.name.to_owned(), file.about]);
    }
    for (name, text) in gms::SHIPPED {
        let file = gms::ScenarioFile::parse(text)?;
        table.add_row(vec![name.to_owned(), file.about]);
    }
    for (name, text) in servers::SHIPPED {
        let file = servers::ScenarioFile::parse(text)?;
        table.add_row(vec![name.to_owned(), file.about]);
    }
    Ok(table.trim_fmt() + "\n")
}

/// Table of all rows. If there are several seeds, it shows the range of speedups.
pub(super) fn table(results: &Results<'_>) -> String {
    let plan = &results.summary.plan;
    let printed = || {
        let all = MEASURES.iter().enumerate();
        all.filter(|(_, measure)| PRINTED.contains(&measure.key))
    };
    let has_range = plan.seeds.len() > 1;
    let short = plan.keys.iter().map(|key| short(key));
    let mut header: Vec<&str> = ["program", "dataset"].into_iter().chain(short).collect();
    let left = header.len();
    for (_, measure) in printed() {
        header.push(measure.label);
        if has_range && measure.key == "speedup" {
            header.push("of seeds");
        }
    }
    let mut table = gleaner_terminal::table(&header, left);
    for row in results.rows {
        let name = plan.datasets.get(row.dataset).cloned().unwrap_or_default();
        let mut cells = vec![row.program.to_string(), name];
        cells.extend(row.settings.iter().cloned());
        for (at, measure) in printed() {
            let value = row.values.get(at).copied().flatten();
            cells.push(or_dash(value.map(|v| words(measure.unit, v.median))));
            if has_range && measure.key == "speedup" {
                cells.push(or_dash(value.map(range)));
            }
        }
        table.add_row(cells);
    }
    let mut text = table.trim_fmt() + "\n";
    if results
        .rows
        .iter()
        .any(|row| row.values.iter().all(Option::is_none))
    {
        text += "Where no figure is given, no run ended in the simulated time.\n";
    }
    let mut clients = results
        .rows
        .iter()
        .flat_map(|row| row.clients.iter().flatten());
    if clients.any(|client| client.end_ns.is_none()) {
        text += "Not every client has ended: speedup and gain are of those that have (each of them: --json).\n";
    }
    text
}

/// Last part of a setting's key: `placement` for `remote.placement`.
fn short(key: &str) -> &str {
    key.rsplit_once('.').map_or(key, |(_, last)| last)
}

fn range(spread: Spread) -> String {
    format!("{:.2}–{:.2}", spread.low, spread.high)
}

fn words(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Number => format!("{value:.2}"),
        Unit::Share => percent(value),
        Unit::Bytes => Bytes(value).to_string(),
    }
}
