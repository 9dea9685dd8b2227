//! Every host at a glance.

use super::{Cell, Table, numbers, words};
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
