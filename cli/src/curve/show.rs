//! `gleaner curve show`: a curve as table, JSON and page.

use super::args::Show;
use super::page;
use crate::report;
use crate::simulate::refuse_folder;
use crate::tables::plain;
use gleaner_schemas::curve::{Curve, WorkingSet};
use gleaner_schemas::units::{Bytes, thousands};
use gleaner_simulator::models::ProgramCurve;
use gleaner_simulator::references::read_curve;
use std::io::Write;

/// Shares of the footprint that the tables show, in percent.
pub(super) const SHOWN_PERCENT: [u32; 10] = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];

pub(super) fn run(args: &Show, output: &mut dyn Write) -> anyhow::Result<()> {
    refuse_folder(args.page.as_deref())?;
    let curve = read_curve(&args.curve)?;
    if let Some(to) = &args.page {
        report::write(to, page::html(&curve, &[])?)?;
    }
    let text = match args.json {
        true => format!("{:#}\n", serde_json::to_value(&curve)?),
        false => plain(&text(&curve)),
    };
    Ok(output.write_all(text.as_bytes())?)
}

fn text(curve: &Curve) -> String {
    let mut text = about(curve) + "\n\n";
    let mut table = gleaner_terminal::table(
        &[
            "memory",
            "of footprint",
            "faults",
            "faults/CPU s",
            "write-backs",
        ],
        0,
    );
    for row in rows(curve) {
        table.add_row([
            Bytes::from(row.memory_bytes).to_string(),
            format!("{} %", row.percent),
            thousands(row.reuse.round() as u64),
            thousands(row.reuse_per_s.round() as u64),
            thousands(row.write_backs.round() as u64),
        ]);
    }
    text += &(table.trim_fmt() + "\n\n");
    let mut table = gleaner_terminal::table(&["working set in", "median", "largest"], 1);
    for (name, sizes) in working_sets(curve) {
        let pages = |at: usize| sizes.get(at).map_or(0, |set| set.pages);
        let bytes = |pages: u64| Bytes::from(pages.saturating_mul(curve.page_bytes)).to_string();
        table.add_row([
            name,
            bytes(pages(sizes.len() / 2)),
            bytes(pages(sizes.len().saturating_sub(1))),
        ]);
    }
    text + &table.trim_fmt() + "\n"
}

/// The program and its recording, in sentences.
pub(super) fn about(curve: &Curve) -> String {
    let footprint_bytes = curve.footprint_pages.saturating_mul(curve.page_bytes);
    let counted = match curve.misses_of_bytes {
        Some(bytes) => format!("misses of a {} cache", Bytes::from(bytes)),
        None => "references".to_owned(),
    };
    let mut text = format!(
        "{}: {} in {} pages, {:.2} s of CPU; {counted} recorded by {}.",
        curve.program,
        Bytes::from(footprint_bytes),
        thousands(curve.footprint_pages),
        curve.native_cpu_s,
        curve.recorder.name,
    );
    if curve.sampled_share < 1.0 {
        let percent = curve.sampled_share * 100.0;
        text += &format!(" Faults are estimated from {percent:.2} % of the pages.");
    }
    if let Some(cut) = &curve.cut {
        text += &format!(" The curve is cut: {cut}.");
    }
    text
}

/// Faults at a share of the footprint.
pub(super) struct ShareRow {
    pub(super) percent: u32,
    pub(super) memory_bytes: u64,
    pub(super) reuse: f64,
    pub(super) reuse_per_s: f64,
    pub(super) write_backs: f64,
}

/// Faults at each of [`SHOWN_PERCENT`] that the curve covers.
pub(super) fn rows(curve: &Curve) -> Vec<ShareRow> {
    let program = ProgramCurve(curve);
    let row = |percent: u32| {
        let pages = program.share_pages(f64::from(percent) / 100.0);
        let reuse = program.reuse_faults(pages);
        ShareRow {
            percent,
            memory_bytes: (pages * curve.page_bytes as f64) as u64,
            reuse,
            reuse_per_s: reuse / curve.native_cpu_s.max(1e-9),
            write_backs: program.write_backs(pages),
        }
    };
    let rows = SHOWN_PERCENT.into_iter().map(row);
    let least_bytes = program.least_pages().saturating_mul(curve.page_bytes);
    rows.filter(|row| row.memory_bytes >= least_bytes).collect()
}

/// Working sets in windows of each length, the smallest first, with the name of the length. Those since the begin are
/// left out.
pub(super) fn working_sets(curve: &Curve) -> Vec<(String, Vec<WorkingSet>)> {
    let mut lengths: Vec<u64> = curve
        .windows
        .iter()
        .filter_map(|set| set.window_ms)
        .collect();
    lengths.sort_unstable();
    lengths.dedup();
    let of_length = |window_ms: u64| {
        let sets = curve.windows.iter().copied();
        let mut sets: Vec<WorkingSet> = sets
            .filter(|set| set.window_ms == Some(window_ms))
            .collect();
        sets.sort_by_key(|set| set.pages);
        (length(window_ms), sets)
    };
    lengths.into_iter().map(of_length).collect()
}

/// Name of a window's length: `10 ms`, `1 s`.
pub(super) fn length(window_ms: u64) -> String {
    match window_ms.is_multiple_of(1000) {
        true => format!("{} s", window_ms / 1000),
        false => format!("{window_ms} ms"),
    }
}
