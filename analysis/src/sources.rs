//! Traces of other programs that the hosts come from, with the meaning of their figures there.

use crate::measure::MeasureOutput;
use crate::trace::reads::ReadSet;
use gleaner_dataset::{Dataset, SourceEntry};
use gleaner_schemas::findings::{HostSummary, TraceColumn, TraceSource};
use gleaner_schemas::rows::HostRow;

/// The one finding that no host is asked for.
pub(crate) const OUTPUTS: &[MeasureOutput] = &[MeasureOutput::of::<TraceSource>(ReadSet::SAMPLES)];

/// Meaning of figures whose dataset does not describe their trace.
const NOT_DESCRIBED: &str = "The dataset does not say what available and physical memory mean there; importing the trace again adds it.";

/// Returns the sources that hosts come from: those that the datasets describe in the order of their import, then the others.
pub(crate) fn of(datasets: &[&Dataset], hosts: &[HostSummary]) -> Vec<TraceSource> {
    let described = datasets.iter().flat_map(|d| &d.manifest().sources);
    let named = hosts.iter().filter_map(|host| host.source.as_deref());
    let mut found: Vec<TraceSource> = Vec::new();
    for name in described.map(|entry| entry.name.as_str()).chain(named) {
        let is_its = |host: &&HostSummary| host.source.as_deref() == Some(name);
        let hosts_count = hosts.iter().filter(is_its).count() as i64;
        if hosts_count > 0 && found.iter().all(|known| known.name != name) {
            found.extend(named_of(datasets, name, hosts_count));
        }
    }
    found
}

/// Returns the trace of that name, which `hosts_count` hosts were imported from; none where `gleaner synth` made the
/// hosts up, as an agent would have recorded them.
pub(crate) fn named_of(datasets: &[&Dataset], name: &str, hosts_count: i64) -> Option<TraceSource> {
    let mut entries = datasets.iter().flat_map(|d| &d.manifest().sources);
    match entries.find(|entry| entry.name == name) {
        Some(entry) => Some(described(entry, hosts_count)),
        None if name.starts_with(HostRow::SYNTHETIC) => None,
        None => Some(TraceSource {
            name: name.to_owned(),
            hosts_count,
            available: NOT_DESCRIBED.to_owned(),
            ..TraceSource::default()
        }),
    }
}

fn described(entry: &SourceEntry, hosts_count: i64) -> TraceSource {
    let columns = entry.columns.iter().map(|column| TraceColumn {
        table: column.table.clone(),
        column: column.column.clone(),
        from: column.from.clone(),
    });
    let source = TraceSource {
        name: entry.name.clone(),
        hosts_count,
        available: entry.available.clone(),
        physical: None,
        sizes_are_made_up: entry.sizes_are_made_up,
        columns: columns.collect(),
    };
    TraceSource {
        physical: source.figure_of("physical_bytes").map(str::to_owned),
        ..source
    }
}
