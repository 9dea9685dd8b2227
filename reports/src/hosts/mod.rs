//! A page for each host: memory over time with idle periods, users of the memory, lending, and missing data.

mod absences;
mod course;
mod data;
mod dips;
mod memory;
mod numbers;
mod overview;
mod split;
mod thin;
mod users;

use crate::imported;
use crate::page::{Part, Section};
use crate::questions::without;
use crate::view::View;
use crate::wording::stored_bytes;
use gleaner_schemas::findings::Findings;
pub(crate) use overview::overview;
use std::collections::HashMap;

/// Page of one host.
pub(crate) struct HostPage {
    /// Anchor of the host's page: `host-otter`.
    pub id: String,
    pub name: String,
    /// Summary in one line, for lists of hosts.
    pub summary: String,
    pub sections: Vec<Section>,
}

/// Pages of all hosts, in the order of their names.
pub(crate) fn pages(view: &View) -> Vec<HostPage> {
    let before = view.before.map(split::by_host).unwrap_or_default();
    let before: HashMap<&str, &Findings> = before
        .iter()
        .filter_map(|findings| Some((findings.hosts.first()?.host_id.as_str(), findings)))
        .collect();
    let hosts = split::by_host(view.findings);
    let page = |(index, findings)| page(view, index, findings, &before);
    hosts.iter().enumerate().filter_map(page).collect()
}

fn page(
    fleet: &View,
    index: usize,
    findings: &Findings,
    before: &HashMap<&str, &Findings>,
) -> Option<HostPage> {
    let id = findings.hosts.first()?.host_id.as_str();
    let view = View {
        // The prefix differs from `host-`, with which the anchors of the hosts' pages begin.
        prefix: format!("h{}-", index + 1),
        ..View::new(findings, before.get(id).copied(), fleet.clock, fleet.span)
    };
    let answer = numbers::answer(&view, fleet);
    let section = |id: &str, title: &'static str, parts| Section {
        id: format!("{}{id}", view.prefix),
        title: title.into(),
        answer: String::new(),
        parts,
    };
    let mut sections = vec![
        section("memory", "How is the memory used?", memory(&view)),
        section("away", "When is the owner away?", away(&view)),
        section(
            "users",
            "Which programs and files use the memory?",
            users(&view),
        ),
        section(
            "lending",
            "How much memory could this host lend?",
            lending(&view),
        ),
        section(
            "data",
            "What data are these figures based on?",
            data::parts(&view),
        ),
    ];
    let name = fleet.names.get(id)?;
    sections[0].answer = match view.findings.sources.as_slice() {
        [] => answer,
        _ => format!("{answer} {}", imported::meaning(&view)),
    };
    Some(HostPage {
        id: name.page.clone(),
        name: name.name.to_owned(),
        summary: numbers::summary(&view),
        sections: sections
            .into_iter()
            .filter(|section| !section.parts.is_empty())
            .collect(),
    })
}

fn memory(view: &View) -> Vec<Part> {
    let mut parts: Vec<Part> = numbers::table(view).map(Part::Table).into_iter().collect();
    let figures = [memory::categories(view), memory::available(view)];
    let figures: Vec<Part> = figures.into_iter().flatten().map(Part::figure).collect();
    if figures.is_empty() {
        let otherwise = match view.memory() {
            Some(_) => "Memory over time was not measured.",
            None => "There are no samples of memory.",
        };
        parts.push(without(view, "memory_over_time", otherwise));
    }
    parts.extend(figures);
    let tables = [dips::worst(view), dips::counted(view)];
    parts.extend(tables.into_iter().flatten().map(Part::Table));
    parts
}

fn away(view: &View) -> Vec<Part> {
    match absences::days(view) {
        Some(figure) => vec![Part::figure(figure)],
        None => vec![Part::Say(absences::unknown(view))],
    }
}

fn users(view: &View) -> Vec<Part> {
    let mut parts = match users::processes(view) {
        Some(table) => vec![Part::Table(table)],
        None => vec![without(
            view,
            "top_processes",
            "No active process was recorded.",
        )],
    };
    match users::files(view) {
        Some(table) => parts.extend([Part::Table(table), Part::say(users::files_words(view))]),
        None => parts.push(without(view, "top_files", "No file in use was recorded.")),
    }
    parts
}

fn lending(view: &View) -> Vec<Part> {
    let said = view.findings.quotas.iter().map(|quota| {
        let harvestable = quota.harvestable_bytes.map_or_else(String::new, |bytes| {
            format!(
                ", or {} without paging out the owner’s pages",
                stored_bytes(bytes.max(0))
            )
        });
        Part::Say(format!(
            "At its last sample ({}), this host could have lent {}: {}. If it had been idle, it could have lent {}, the available memory \
             above reserve and headroom{harvestable}.",
            view.clock.moment(quota.time_ms),
            stored_bytes(quota.quota_bytes),
            quota.reason,
            stored_bytes(quota.paper_quota_bytes.max(0)),
        ))
    });
    said.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use gleaner_schemas::findings::{HostMemory, HostSummary};

    #[test]
    fn without_points_over_time_there_is_a_sentence_and_no_figure() {
        let findings = Findings {
            hosts: vec![HostSummary {
                host_id: "a".into(),
                host_name: "otter".into(),
                physical_bytes: 1 << 30,
                ..HostSummary::default()
            }],
            memory_by_host: vec![HostMemory {
                host_id: "a".into(),
                category: "available".into(),
                samples_count: 1,
                mean_bytes: 1.0,
                ..HostMemory::default()
            }],
            ..Findings::default()
        };
        let clock = Clock::new("UTC").unwrap();
        let pages = pages(&View::new(&findings, None, &clock, None));
        let parts = pages[0].sections.iter().flat_map(|section| &section.parts);
        assert_eq!(
            parts
                .clone()
                .filter(|p| matches!(p, Part::Figure(_)))
                .count(),
            0
        );
        let said = |part: &Part| match part {
            Part::Say(text) => text == "Memory over time was not measured.",
            _ => false,
        };
        assert!(parts.clone().any(said));
    }
}
