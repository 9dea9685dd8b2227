//! Separates findings by host.

use gleaner_schemas::findings::{Finding, FindingVisitor, Findings, HostSummary, TraceSource};
use std::collections::HashMap;

/// Splits the findings by host, in the order of the hosts; records of several hosts are left out. Makes one
/// pass over each list, however many hosts there are.
pub(super) fn by_host(all: &Findings) -> Vec<Findings> {
    let ids = all.hosts.iter().enumerate();
    let at: HashMap<&str, usize> = ids.map(|(at, host)| (host.host_id.as_str(), at)).collect();
    let alone = |host: &HostSummary| Findings {
        findings_version: all.findings_version,
        parameters: all.parameters.clone(),
        sources: source_of(all, host),
        hosts: vec![Clone::clone(host)],
        ..Findings::default()
    };
    let mut deal = Distributor {
        all,
        at,
        parts: all.hosts.iter().map(alone).collect(),
    };
    Findings::visit(&mut deal);
    deal.parts
}

/// Distributes records to their hosts.
struct Distributor<'a> {
    all: &'a Findings,
    /// Index of each host's findings in `parts`.
    at: HashMap<&'a str, usize>,
    parts: Vec<Findings>,
}

impl FindingVisitor for Distributor<'_> {
    fn visit<F: Finding>(&mut self) {
        if !F::IS_ON_HOST_PAGE {
            return;
        }
        for record in F::list(self.all) {
            let mut record = record.clone();
            let at = record
                .host_fields()
                .id
                .and_then(|host| self.at.get(host.as_str()));
            if let Some(part) = at.and_then(|at| self.parts.get_mut(*at)) {
                F::list_mut(part).push(record);
            }
        }
    }
}

/// The trace from which a host was imported, as a source of only this host.
fn source_of(all: &Findings, host: &HostSummary) -> Vec<TraceSource> {
    let its = |source: &&TraceSource| host.source.as_ref() == Some(&source.name);
    let alone = |source: &TraceSource| TraceSource {
        hosts_count: 1,
        ..source.clone()
    };
    all.sources.iter().filter(its).map(alone).collect()
}
