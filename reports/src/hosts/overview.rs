//! Table of all hosts, with links to their pages.

use crate::imported::Recorders;
use crate::page::table::{Cell, Table, numbers, words};
use crate::page::{Part, Section};
use crate::view::View;
use crate::wording::count;
use gleaner_schemas::findings::HostSummary;
use std::collections::HashMap;

/// Section with the list of hosts; absent if there is only one host.
pub(crate) fn overview(view: &View) -> Option<Section> {
    let hosts = &view.findings.hosts;
    if hosts.len() < 2 {
        return None;
    }
    Some(Section {
        id: "each-host".into(),
        title: "Host by host".into(),
        answer: format!(
            "There is a page for each of {}: click a name.",
            count(hosts.len() as i64, "host")
        ),
        parts: vec![Part::Table(table(view)?)],
    })
}

fn table(view: &View) -> Option<Table> {
    let now = view.memories();
    let earlier = view.earlier();
    let before = earlier.as_ref().map(View::memories);
    let dips = worst_shares(view);
    let recorders = Recorders::of(view);
    let row = |host: &HostSummary| {
        let memory = now.get(host.host_id.as_str());
        let mut cells = vec![view.host_cell(&host.host_id)];
        cells.extend(recorders.cell(view, host));
        cells.extend([
            Cell::size(host.physical_bytes),
            Cell::or_absent(memory, |m| {
                Cell::share(m.available_share())
                    .swatch("available")
                    .bar(m.available_share())
            }),
        ]);
        if let Some(before) = &before {
            let then = before.get(host.host_id.as_str());
            let change = memory
                .zip(then)
                .map(|(now, then)| now.available_share() - then.available_share());
            cells.push(Cell::or_absent(change, Cell::share_change));
        }
        cells.extend([
            Cell::or_absent(memory, |m| Cell::bytes(m.least_available_bytes)),
            Cell::or_absent(dips.get(host.host_id.as_str()).copied(), Cell::share),
            Cell::or_absent(host.idle_share, Cell::share),
            Cell::share(host.coverage_share),
        ]);
        cells
    };
    let mut columns = vec![words("host")];
    columns.extend(recorders.column());
    columns.extend([numbers("memory"), numbers("available")]);
    columns.extend(before.is_some().then(|| numbers("change")));
    columns.extend(["least available", "in dips", "idle", "covered"].map(numbers));
    let mut table = Table::new(
        "hosts".into(),
        format!("All {}", count(view.findings.hosts.len() as i64, "host")),
        columns,
    );
    // Readers look up hosts in this table, so it always has all of them.
    table.rows_shown = usize::MAX;
    table.stays_open = true;
    let note = "Available, idle: means over the covered time. In dips: share of the samples below the lowest threshold that the \
                host fell below; 0 if it stayed above all thresholds.";
    Some(
        table
            .with_rows(view.findings.hosts.iter().map(row).collect())?
            .with_note(note),
    )
}

/// Share of a host's samples below a threshold, by host id. The threshold is the lowest one that the host
/// fell below; the share is 0 if there is none.
fn worst_shares<'a>(view: &View<'a>) -> HashMap<&'a str, f64> {
    let mut lowest: HashMap<&str, (i64, f64)> = HashMap::new();
    for dip in view.findings.absolute_dips() {
        let share = dip.intervals_count as f64 / dip.samples_count.max(1) as f64;
        let entry = lowest
            .entry(dip.host_id.as_str())
            .or_insert((i64::MAX, 0.0));
        if dip.intervals_count > 0 && dip.threshold_bytes < entry.0 {
            *entry = (dip.threshold_bytes, share);
        }
    }
    let share = |(host, (_, share)): (&'a str, (i64, f64))| (host, share);
    lowest.into_iter().map(share).collect()
}
