//! The host's deepest dips, and the processes active in them.

use crate::page::table::{Cell, Table, numbers, words};
use crate::view::View;
use crate::wording::{bytes, list, stored_bytes};
use gleaner_schemas::findings::{DipProcess, WorstDip};

/// Maximum number of process names in a cell.
const NAMES: usize = 3;

/// Table of the deepest dip below each threshold; absent if there are none.
pub(super) fn worst(view: &View) -> Option<Table> {
    let mut dips: Vec<&WorstDip> = view.findings.worst_dips.iter().collect();
    dips.sort_by_key(|d| (d.min_available_bytes, d.threshold_bytes, d.from_time_ms));
    // A fall below several thresholds is recorded as a dip for each of them. Only the dip of the lowest
    // threshold, the shortest, is kept.
    dips.dedup_by_key(|d| d.min_time_ms);
    dips.sort_by_key(|d| d.from_time_ms);
    let rows = dips.iter().map(|dip| {
        vec![
            Cell::moment(view.clock.moment(dip.min_time_ms), dip.min_time_ms),
            Cell::bytes(dip.min_available_bytes as f64),
            Cell::size(dip.threshold_bytes),
            Cell::seconds(dip.duration_s),
            Cell::or_absent(grown(dip), Cell::text),
            ran(view, dip),
        ]
    });
    Table::new(
        format!("{}worst-dips", view.prefix),
        "The deepest dips, and the processes at their lowest point",
        vec![
            words("time"),
            numbers("least available"),
            numbers("threshold"),
            numbers("duration"),
            words("change from the median"),
            words("largest processes"),
        ],
    )
    .with_rows(rows.collect())
}

/// Text on the category that grew most; absent if none is known.
fn grown(dip: &WorstDip) -> Option<String> {
    let parts = [
        ("processes", dip.process_bytes, dip.usual_process_bytes),
        (
            "files in use",
            dip.file_cache_bytes,
            dip.usual_file_cache_bytes,
        ),
        (
            "kernel",
            dip.dynamic_kernel_bytes,
            dip.usual_dynamic_kernel_bytes,
        ),
    ];
    let more = parts
        .into_iter()
        .filter_map(|(label, then, usual)| Some((label, then? as f64 - usual?)));
    let (label, more) = more.max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(match more >= 1_048_576.0 {
        true => format!("{label}: {} more", bytes(more)),
        false => "no category was larger than usual".into(),
    })
}

fn ran(view: &View, dip: &WorstDip) -> Cell {
    let mut then: Vec<&DipProcess> = view
        .findings
        .dip_processes
        .iter()
        .filter(|p| p.time_ms == dip.min_time_ms)
        .collect();
    then.sort_by_key(|p| p.rank);
    if then.is_empty() {
        return Cell::absent();
    }
    let told = then.iter().take(NAMES).map(|p| {
        let usual = p.mean_bytes.max(1.0);
        let much = p.bytes as f64 >= 1.5 * usual;
        let usually = if much {
            format!(", usually {}", bytes(usual))
        } else {
            String::new()
        };
        format!("{} ({}{usually})", p.name, stored_bytes(p.bytes))
    });
    Cell::text(list(&told.collect::<Vec<_>>()))
}

/// Table of how often available memory was below each threshold.
pub(super) fn counted(view: &View) -> Option<Table> {
    let rows = view.findings.absolute_dips().map(|dip| {
        vec![
            Cell::size(dip.threshold_bytes),
            Cell::count(dip.intervals_count),
            Cell::share(dip.intervals_count as f64 / dip.samples_count.max(1) as f64),
        ]
    });
    let mut table = Table::new(
        format!("{}dips", view.prefix),
        "Sample intervals with less memory available than a threshold",
        vec![
            numbers("threshold"),
            numbers("sample intervals"),
            numbers("share of all"),
        ],
    );
    table.in_order = true;
    table.with_rows(rows.collect())
}
