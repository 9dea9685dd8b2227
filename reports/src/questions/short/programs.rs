//! Programs that use memory, over all hosts.

use crate::page::table::{Cell, Table, numbers, words};
use crate::view::View;
use std::collections::HashMap;

/// Number of programs that the page shows; the CSV and JSON files have all programs.
const ROWS_SHOWN: usize = 15;

/// A program, over all hosts.
#[derive(Default)]
struct Program {
    hosts: i64,
    /// Mean memory over all time, 0 while the program was not active; summed over hosts.
    mean_bytes: f64,
    most_bytes: i64,
    cpu_s: f64,
}

fn programs<'a>(view: &View<'a>) -> HashMap<&'a str, Program> {
    let hosts = view.findings.hosts.iter();
    let samples: HashMap<&str, i64> = hosts
        .map(|h| (h.host_id.as_str(), h.samples_count))
        .collect();
    let mut programs: HashMap<&str, Program> = HashMap::new();
    for process in &view.findings.top_processes {
        let samples = samples.get(process.host_id.as_str()).copied().unwrap_or(0);
        let program = programs.entry(process.name.as_str()).or_default();
        let active_share = process.active_samples_count as f64 / samples.max(1) as f64;
        program.hosts += 1;
        program.mean_bytes += process.mean_bytes * active_share.min(1.0);
        program.most_bytes = program.most_bytes.max(process.max_bytes);
        program.cpu_s += process.cpu_s;
    }
    programs
}

/// Table of programs by their mean memory, the largest first.
pub(super) fn table(view: &View, earlier: Option<&View>) -> Option<Table> {
    let found = programs(view);
    let before = earlier.map(programs).filter(|p| !p.is_empty());
    let mut sorted: Vec<(&str, &Program)> = found.iter().map(|(name, p)| (*name, p)).collect();
    sorted.sort_by(|a, b| b.1.mean_bytes.total_cmp(&a.1.mean_bytes).then(a.0.cmp(b.0)));
    let largest = sorted.first().map_or(1.0, |(_, p)| p.mean_bytes.max(1.0));
    let rows = sorted.iter().map(|(name, program)| {
        let mut cells = vec![
            Cell::text(*name),
            Cell::count(program.hosts),
            Cell::bytes(program.mean_bytes).bar(program.mean_bytes / largest),
        ];
        if let Some(before) = &before {
            let then = before.get(name).map_or(0.0, |p| p.mean_bytes);
            cells.push(Cell::bytes_change(program.mean_bytes - then));
        }
        cells.push(Cell::bytes(program.most_bytes as f64));
        cells.push(Cell::seconds(program.cpu_s));
        cells
    });
    let columns = [
        Some(words("program")),
        Some(numbers("hosts")),
        Some(numbers("mean memory")),
        before.as_ref().map(|_| numbers("change")),
        Some(numbers("most on one host")),
        Some(numbers("CPU time")),
    ];
    let mut table = Table::new(
        format!("{}programs", view.prefix),
        match view.only_host() {
            Some(_) => "Active programs by the memory they held",
            None => "Active programs by the memory they held, on all hosts together",
        },
        columns.into_iter().flatten().collect(),
    )
    .with_note("Mean memory: over all time, 0 while the program was not active. Only the programs with most memory on each host count.");
    table.rows_shown = ROWS_SHOWN;
    table.with_rows(rows.collect())
}
