//! Every host at a glance.

use crate::page::table::{Cell, Table, host_cell, host_column, numbers, words};
use crate::view::View;

/// One row a host; all of them, for this table finds a host.
pub(crate) fn overview(view: &View) -> Option<Table> {
    let rows = view.findings.hosts.iter().map(|host| {
        let memory = view.memory_of(host);
        let quota = view.findings.quotas.iter().find(|q| q.host == host.host);
        vec![
            Cell::text(&host.host_name),
            Cell::bytes(host.physical_bytes as f64),
            Cell::or_absent(memory.as_ref(), |m| Cell::bytes(m.available_bytes())),
            Cell::or_absent(memory.as_ref(), |m| {
                Cell::share(m.available_share()).bar(m.available_share())
            }),
            Cell::or_absent(memory.as_ref(), |m| Cell::bytes(m.least_available_bytes)),
            Cell::or_absent(
                memory.as_ref().and_then(|m| m.harvestable_bytes),
                Cell::bytes,
            ),
            Cell::or_absent(host.idle_share, Cell::share),
            Cell::or_absent(quota, |q| Cell::bytes(q.quota_bytes as f64)),
            Cell::share(host.coverage_share),
        ]
    });
    let mut table = Table::new(
        "hosts-overview".into(),
        "The hosts, with means over each one's samples",
        vec![
            words("host"),
            numbers("memory"),
            numbers("available"),
            numbers("share"),
            numbers("least available"),
            numbers("harvestable"),
            numbers("time idle"),
            numbers("quota now"),
            numbers("traced"),
        ],
    );
    table.rows = rows.collect();
    (!table.rows.is_empty()).then_some(table)
}

/// How often available memory was below each threshold.
pub(crate) fn dips(view: &View) -> Option<Table> {
    let many = view.only_host().is_none();
    let shown = view
        .findings
        .absolute_dips()
        .filter(|dip| !many || dip.intervals > 0);
    let rows = shown.map(|dip| {
        let share = dip.intervals as f64 / dip.samples_count.max(1) as f64;
        host_cell(
            many,
            view.host_name(&dip.host),
            vec![
                Cell::size(dip.threshold_bytes),
                Cell::count(dip.intervals),
                Cell::share(share),
                Cell::bytes(dip.min_available_bytes as f64),
                Cell::moment(view.clock.moment(dip.min_time_ms), dip.min_time_ms),
            ],
        )
    });
    Table::new(
        format!("{}dips", view.prefix),
        "Dips: sample intervals in which available memory fell below a threshold",
        host_column(
            many,
            vec![
                numbers("below"),
                numbers("intervals"),
                numbers("share of samples"),
                numbers("least available"),
                words("when"),
            ],
        ),
    )
    .with_rows(rows.collect())
}
