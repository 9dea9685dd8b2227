//! What was found of each host by itself.

use gleaner_schemas::findings::{Findings, HostSummary, TraceSource};
use std::collections::HashMap;

/// Findings of each host alone, in the order of the hosts, without what is pooled over several: one pass over each list,
/// however many hosts there are.
pub(super) fn by_host(all: &Findings) -> Vec<Findings> {
    let ids = all.hosts.iter().enumerate();
    let at: HashMap<&str, usize> = ids.map(|(at, host)| (host.host.as_str(), at)).collect();
    let alone = |host: &HostSummary| Findings {
        findings_version: all.findings_version,
        parameters: all.parameters.clone(),
        sources: source_of(all, host),
        hosts: vec![Clone::clone(host)],
        ..Findings::default()
    };
    let mut parts: Vec<Findings> = all.hosts.iter().map(alone).collect();
    macro_rules! deal {
        ($($list:ident),*) => {
            $(for item in &all.$list {
                if let Some(at) = at.get(item.host.as_str()) {
                    parts[*at].$list.push(item.clone());
                }
            })*
        };
    }
    deal!(
        memory_by_host,
        memory_over_time,
        dips,
        worst_dips,
        dip_processes,
        idle_periods,
        quotas,
        top_processes,
        top_files,
        gaps,
        absences,
        activity_sources,
        residuals,
        agent_cost,
        not_measured
    );
    for item in &all.reclaims {
        if let Some(at) = item.host.as_deref().and_then(|host| at.get(host)) {
            parts[*at].reclaims.push(item.clone());
        }
    }
    parts
}

/// The trace that a host was imported from, as its own.
fn source_of(all: &Findings, host: &HostSummary) -> Vec<TraceSource> {
    let its = |source: &&TraceSource| host.source.as_ref() == Some(&source.name);
    let alone = |source: &TraceSource| TraceSource {
        hosts_count: 1,
        ..source.clone()
    };
    all.sources.iter().filter(its).map(alone).collect()
}
