//! A page for each host: its memory over time with the times its owner was away, what used it, what is missing.

mod away;
mod course;
mod memory;
mod users;

use crate::page::{Part, Section};
use crate::questions::{short, without};
use crate::view::View;
use crate::wording::{bytes, share};
use gleaner_schemas::findings::Findings;

/// One host's page.
pub(crate) struct HostPage {
    /// Id of its element.
    pub id: String,
    pub name: String,
    /// In a line, for lists of hosts.
    pub summary: String,
    pub sections: Vec<Section>,
}

/// All of them, in the order of the hosts' names.
pub(crate) fn pages(view: &View) -> Vec<HostPage> {
    (0..view.findings.hosts.len())
        .filter_map(|index| page(view, index))
        .collect()
}

fn page(fleet: &View, index: usize) -> Option<HostPage> {
    let findings = of_host(fleet.findings, index)?;
    let view = View {
        findings: &findings,
        before: None,
        prefix: format!("host-{}-", index + 1),
        ..*fleet
    };
    let host = view.only_host()?;
    let summary = match view.memory_of(host) {
        Some(memory) => format!(
            "{} of {} available",
            share(memory.available_share()),
            bytes(memory.physical_bytes)
        ),
        None => "no samples".into(),
    };
    let section = |id: &str, title, parts| Section {
        id: format!("{}{id}", view.prefix),
        title,
        answer: String::new(),
        parts,
    };
    let memory = [memory::categories(&view), memory::available(&view)];
    let mut over_time: Vec<Part> = memory.into_iter().flatten().map(Part::figure).collect();
    if over_time.is_empty() {
        let reason = without(&view, "memory_over_time", "There are no samples of memory.");
        over_time.push(reason);
    }
    over_time.extend(short::tables::dips(&view).map(Part::Table));
    let away = away::days(&view).map(Part::figure);
    let users = [users::processes(&view), users::files(&view)];
    Some(HostPage {
        id: format!("{}page", view.prefix),
        name: host.host_name.clone(),
        summary,
        sections: vec![
            section("memory", "Where does the memory go?", over_time),
            section(
                "away",
                "When is the owner away?",
                away.into_iter().collect(),
            ),
            section(
                "users",
                "Who uses the memory?",
                users.into_iter().flatten().map(Part::Table).collect(),
            ),
        ],
    })
}

/// The host at `index` alone: without what is pooled over hosts of a size.
fn of_host(f: &Findings, index: usize) -> Option<Findings> {
    let summary = f.hosts.get(index)?;
    let host = &summary.host;
    macro_rules! of {
        ($list:ident) => {
            f.$list
                .iter()
                .filter(|x| x.host == *host)
                .cloned()
                .collect()
        };
    }
    Some(Findings {
        findings_version: f.findings_version,
        parameters: f.parameters.clone(),
        hosts: vec![summary.clone()],
        memory_by_host: of!(memory_by_host),
        memory_over_time: of!(memory_over_time),
        dips: of!(dips),
        worst_dips: of!(worst_dips),
        dip_processes: of!(dip_processes),
        idle_periods: of!(idle_periods),
        quotas: of!(quotas),
        top_processes: of!(top_processes),
        top_files: of!(top_files),
        gaps: of!(gaps),
        absences: of!(absences),
        activity_sources: of!(activity_sources),
        residuals: of!(residuals),
        agent_cost: of!(agent_cost),
        not_measured: of!(not_measured),
        ..Findings::default()
    })
}
