//! Figures of a curve that tables and pages show.

use super::args::Local;
use gleaner_schemas::curve::{Curve, WorkingSet};
use gleaner_schemas::units::{Bytes, thousands};
use gleaner_simulator::models::ProgramCurve;

/// Slowdowns over memory with one technology: its name in sentences, and local bytes with slowdown.
pub(super) type SlowdownLine = (String, Vec<(f64, f64)>);

/// Shares of the footprint that the tables show, in percent.
const SHOWN_PERCENT: [u32; 10] = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];

/// Bytes of a size of local memory, for the program of this curve.
pub(super) fn local_bytes(local: Local, curve: &Curve) -> u64 {
    match local {
        Local::Bytes(bytes) => bytes,
        Local::Share(share) => {
            (ProgramCurve(curve).share_pages(share) * curve.page_bytes as f64) as u64
        }
    }
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
