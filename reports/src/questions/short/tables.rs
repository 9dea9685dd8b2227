//! Tables of every host with its advice, and of each host's worst shortage.

use super::advice::Advice;
use super::hosts::Host;
use crate::imported::Recorders;
use crate::page::table::{Cell, Table, numbers, words};
use crate::view::{Memory, View};
use crate::wording::bytes;
use gleaner_schemas::findings::{DipProcess, WorstDip};
use std::collections::HashMap;

/// Table of the hosts, short ones first; all rows are shown, since readers look up hosts in it.
pub(super) fn overview(view: &View, hosts: &[Host], before: Option<&[Host]>) -> Option<Table> {
    let then: HashMap<&str, &Memory> = before
        .unwrap_or_default()
        .iter()
        .filter_map(|h| Some((h.summary.host_id.as_str(), h.memory.as_ref()?)))
        .collect();
    let mut order: Vec<&Host> = hosts.iter().collect();
    // Among hosts with the same advice, those to which the advice applies most come first.
    let place = |host: &Host| {
        let short = host.seen.and_then(|s| s.short_samples_share).unwrap_or(0.0);
        match host.advice {
            Advice::Add { .. } => (0, short),
            Advice::Move { bytes } => (1, bytes),
            Advice::Keep if short > 0.0 => (2, short),
            Advice::Spare { bytes } => (3, bytes),
            Advice::Keep => (4, 0.0),
            Advice::Watch => (5, 0.0),
        }
    };
    order.sort_by(|a, b| {
        let (a, b) = (place(a), place(b));
        a.0.cmp(&b.0).then(b.1.total_cmp(&a.1))
    });
    let recorders = Recorders::of(view);
    let rows = order.into_iter().map(|host| {
        let memory = host.memory.as_ref();
        let seen = host.seen.as_ref();
        let change = memory.zip(then.get(host.summary.host_id.as_str()));
        let cells = [
            Some(view.host_cell(&host.summary.host_id)),
            recorders.cell(view, host.summary),
            Some(Cell::text(host.advice.word())),
            Some(Cell::text(host.reason(view, hosts))),
            Some(Cell::bytes(host.summary.physical_bytes as f64)),
            Some(Cell::or_absent(memory, |m| {
                Cell::bytes(m.available_bytes())
            })),
            Some(Cell::or_absent(memory, |m| {
                Cell::share(m.available_share())
            })),
            before.map(|_| {
                Cell::or_absent(change, |(now, then)| {
                    Cell::bytes_change(now.available_bytes() - then.available_bytes())
                })
            }),
            Some(Cell::or_absent(seen, |s| Cell::share(s.most_used_share()))),
            Some(Cell::or_absent(
                seen.and_then(|s| s.short_samples_share),
                Cell::share,
            )),
            Some(Cell::or_absent(host.short_intervals, Cell::count)),
            Some(Cell::or_absent(memory, |m| {
                Cell::bytes(m.least_available_bytes)
            })),
            Some(Cell::or_absent(host.least_time_ms, |time| {
                Cell::moment(view.clock.moment_to_minute(time), time)
            })),
            Some(Cell::or_absent(host.summary.idle_share, Cell::share)),
        ];
        cells.into_iter().flatten().collect()
    });
    let columns = [
        Some(words("host")),
        recorders.column(),
        Some(words("advice")),
        Some(words("reason")),
        Some(numbers("memory")),
        Some(numbers("available")),
        Some(numbers("share")),
        before.map(|_| numbers("change")),
        Some(numbers("highest use")),
        Some(numbers("short")),
        Some(numbers("short intervals")),
        Some(numbers("least available")),
        Some(words("time of least")),
        Some(numbers("time idle")),
    ];
    let mut table = Table::new(
        "hosts-overview".into(),
        match hosts.len() {
            1 => "The host, with advice",
            _ => "All hosts, with advice",
        },
        columns.into_iter().flatten().collect(),
    )
    .with_note(
        "Available and its share: means over the host’s samples. Short: share of the samples with less than a tenth of the host’s \
         memory available; short intervals: their number. Highest use: largest share of the memory that was not available at a sample.",
    );
    table.rows_shown = usize::MAX;
    table.stays_open = true;
    table.with_rows(rows.collect())
}

/// Table of each host's dip with the least available memory, and the programs active then; the deepest first.
pub(super) fn worst(view: &View, hosts: &[Host]) -> Option<Table> {
    let depth = |dip: &WorstDip, host: &Host| {
        // The depth is a share of the host's memory at that time. That memory differs from the memory at the
        // last sample if some was added or removed.
        let then = dip
            .threshold_share
            .filter(|share| *share > 0.0 && dip.threshold_bytes > 0)
            .map(|share| dip.threshold_bytes as f64 / share);
        dip.min_available_bytes as f64 / then.unwrap_or(host.summary.physical_bytes.max(1) as f64)
    };
    let mut short: Vec<(&Host, &WorstDip)> = hosts
        .iter()
        .filter_map(|host| Some((host, host.worst?)))
        .collect();
    short.sort_by(|a, b| depth(a.1, a.0).total_cmp(&depth(b.1, b.0)));
    let rows = short.into_iter().map(|(host, dip)| {
        let change = |then: Option<i64>, usual: Option<f64>| {
            Cell::or_absent(then.zip(usual), |(then, usual)| {
                Cell::bytes_change(then as f64 - usual)
            })
        };
        vec![
            view.host_cell(&host.summary.host_id),
            Cell::moment(
                view.clock.moment_to_minute(dip.min_time_ms),
                dip.min_time_ms,
            ),
            Cell::seconds(dip.duration_s),
            Cell::bytes(dip.min_available_bytes as f64),
            Cell::share(depth(dip, host)),
            change(dip.process_bytes, dip.usual_process_bytes),
            change(dip.file_cache_bytes, dip.usual_file_cache_bytes),
            change(dip.dynamic_kernel_bytes, dip.usual_dynamic_kernel_bytes),
            ran(&host.ran),
        ]
    });
    Table::new(
        "short-hosts".into(),
        "Worst shortage of each host that had less than 10 % of its memory available",
        vec![
            words("host"),
            words("worst moment"),
            numbers("duration"),
            numbers("available"),
            numbers("share"),
            numbers("process"),
            numbers("file cache"),
            numbers("kernel"),
            words("active programs"),
        ],
    )
    .with_note(
        "Process, file cache and kernel: difference from the host’s median at the worst moment. Active programs: the largest at \
         that moment, each with its mean memory while active.",
    )
    .with_rows(rows.collect())
}

/// Maximum number of programs in a cell.
const MOST_PROGRAMS: usize = 3;

/// Cell with programs: `code 11 GiB (usually 2.1 GiB), chrome 3.0 GiB (usually 2.9 GiB)`.
fn ran(programs: &[&DipProcess]) -> Cell {
    let present = programs.iter().filter(|p| p.bytes > 0);
    let said = present.take(MOST_PROGRAMS).map(|p| {
        format!(
            "{} {} (usually {})",
            p.name,
            bytes(p.bytes as f64),
            bytes(p.mean_bytes)
        )
    });
    match programs.is_empty() {
        true => Cell::absent(),
        false => Cell::text(said.collect::<Vec<String>>().join(", ")),
    }
}
