//! Traces of other programs that the hosts come from, with the meaning of their figures there.

use gleaner_dataset::{Dataset, SourceEntry};
use gleaner_schemas::findings::{HostSummary, TraceColumn, TraceSource};

/// Returns the sources that the datasets describe and hosts come from, in the order of their import.
pub(crate) fn of(datasets: &[&Dataset], hosts: &[HostSummary]) -> Vec<TraceSource> {
    let mut found: Vec<TraceSource> = Vec::new();
    for entry in datasets.iter().flat_map(|d| &d.manifest().sources) {
        let is_its = |host: &&HostSummary| host.source.as_ref() == Some(&entry.name);
        let hosts_count = hosts.iter().filter(is_its).count() as i64;
        if hosts_count > 0 && found.iter().all(|known| known.name != entry.name) {
            found.push(described(entry, hosts_count));
        }
    }
    found
}

fn described(entry: &SourceEntry, hosts_count: i64) -> TraceSource {
    let physical = |c: &&TraceColumn| c.table == "samples" && c.column == "physical_bytes";
    let columns = entry.columns.iter().map(|column| TraceColumn {
        table: column.table.clone(),
        column: column.column.clone(),
        from: column.from.clone(),
    });
    let columns: Vec<TraceColumn> = columns.collect();
    TraceSource {
        name: entry.name.clone(),
        hosts_count,
        available: entry.available.clone(),
        physical: columns.iter().find(physical).map(|c| c.from.clone()),
        columns,
    }
}
