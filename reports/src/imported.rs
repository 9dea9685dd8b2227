//! Hosts imported from traces of other programs, and the meaning of their figures: texts for answers, pages and tables.

use crate::page::table::{Cell, Column, Table, numbers, words};
use crate::view::View;
use crate::wording::count;
use gleaner_schemas::findings::{Findings, HostSummary, TraceSource};
use gleaner_schemas::rows::HostRow;
use std::collections::BTreeSet;

/// Kind of programs that recorded the hosts in a part of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorders {
    /// Gleaner's agents recorded all hosts.
    Agents,
    /// Other programs recorded all hosts.
    Others,
    /// Agents recorded some hosts, other programs others.
    Both,
}

impl Recorders {
    pub(crate) fn of(view: &View) -> Self {
        let hosts = &view.findings.hosts;
        let is_imported = |host: &&HostSummary| import_source_name(view.findings, host).is_some();
        let imported = hosts.iter().filter(is_imported).count();
        match (imported, hosts.len() - imported) {
            (0, _) => Self::Agents,
            (_, 0) => Self::Others,
            _ => Self::Both,
        }
    }

    /// Returns the text that is true for these hosts; `both` if agents recorded only some of them.
    pub(crate) fn choose<T>(self, agents: T, others: T, both: T) -> T {
        match self {
            Self::Agents => agents,
            Self::Others => others,
            Self::Both => both,
        }
    }

    /// Heading of a column with each host's source trace; absent if agents recorded all hosts.
    pub(crate) fn column(self) -> Option<Column> {
        (self != Self::Agents).then(|| words("imported from"))
    }

    /// Cell of the column with each host's source trace.
    pub(crate) fn cell(self, view: &View, host: &HostSummary) -> Option<Cell> {
        let source = import_source_name(view.findings, host);
        (self != Self::Agents).then(|| Cell::or_absent(source, Cell::text))
    }
}

/// Name of the other program's trace from which a host was imported; absent if an agent recorded the host, or
/// if `gleaner synth` generated it with the figures of an agent.
pub(crate) fn import_source_name<'a>(
    findings: &Findings,
    host: &'a HostSummary,
) -> Option<&'a str> {
    let name = host.source.as_deref()?;
    let is_described = || findings.sources.iter().any(|source| source.name == name);
    (!name.starts_with(HostRow::SYNTHETIC) || is_described()).then_some(name)
}

/// Name of the synthetic fleet to which a host belongs; absent if it belongs to none.
pub(crate) fn synthetic_fleet<'a>(findings: &Findings, host: &'a HostSummary) -> Option<&'a str> {
    match import_source_name(findings, host) {
        Some(_) => None,
        None => host.source.as_deref(),
    }
}

/// Sentence on synthetic hosts; absent if there are none.
fn synthetic_sentence(view: &View) -> Option<String> {
    let hosts = view.findings.hosts.iter();
    let fleets: Vec<&str> = hosts
        .filter_map(|host| synthetic_fleet(view.findings, host))
        .collect();
    let names: BTreeSet<&str> = fleets.iter().copied().collect();
    let names: Vec<&str> = names.into_iter().collect();
    (!fleets.is_empty()).then(|| {
        format!(
            "{} ({}) and all their figures are synthetic: a model generated them.",
            count(fleets.len() as i64, "host"),
            names.join(", ")
        )
    })
}

/// Sentence on the meaning of available and physical memory: for hosts recorded by agents, and for imported
/// ones by source.
pub(crate) fn meaning(view: &View) -> String {
    let ours = "Available means that neither the kernel nor any active program or its files were using it.";
    let hosts = &view.findings.hosts;
    let is_imported = |host: &&HostSummary| import_source_name(view.findings, host).is_some();
    let traced = hosts.len() - hosts.iter().filter(is_imported).count();
    let own = Recorders::of(view).choose(
        Some(ours.to_owned()),
        None,
        Some(format!(
            "{ours} This applies to {}.",
            count(traced as i64, "host")
        )),
    );
    let sources = &view.findings.sources;
    let said = sources
        .iter()
        .map(|source| of_its_hosts(source, &source.meaning()));
    let said = own.into_iter().chain(synthetic_sentence(view)).chain(said);
    said.collect::<Vec<_>>().join(" ")
}

/// Sentence on the meaning of imported hosts' available memory. It ends each answer, since an answer may be
/// read alone.
pub(crate) fn caveat(view: &View) -> Option<String> {
    let sources = view.findings.sources.iter();
    let said = sources.map(|source| of_its_hosts(source, &source.available_meaning));
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| said.join(" "))
}

/// Appends the caveat to an answer.
pub(crate) fn with_caveat(view: &View, answer: String) -> String {
    match caveat(view) {
        Some(caveat) if !answer.is_empty() => format!("{answer} {caveat}"),
        _ => answer,
    }
}

fn of_its_hosts(source: &TraceSource, meaning: &str) -> String {
    format!(
        "For {} from {}: {meaning}",
        count(source.hosts_count, "host"),
        source.name
    )
}

/// Returns true if the sizes of a host's memory come from its trace or its generator, and were not invented
/// by the importer.
pub(crate) fn has_sizes(view: &View, host: &HostSummary) -> bool {
    let sources = view.findings.sources.iter();
    let mut made_up = sources.filter(|source| source.has_invented_sizes);
    !made_up.any(|source| host.source.as_ref() == Some(&source.name))
}

/// Table of the source traces, each with its definitions of memory.
pub(crate) fn sources(view: &View) -> Option<Table> {
    let rows = view.findings.sources.iter().map(|source| {
        vec![
            Cell::text(&source.name),
            Cell::count(source.hosts_count),
            Cell::text(&source.available_meaning),
            Cell::or_absent(source.physical_meaning.as_deref(), Cell::text),
            Cell::text(if source.has_invented_sizes {
                "invented by the import"
            } else {
                "from the trace"
            }),
        ]
    });
    let columns = vec![
        words("imported from"),
        numbers("hosts"),
        words("available memory"),
        words("physical memory"),
        words("sizes"),
    ];
    Table::new(
        "sources".into(),
        "Traces of other programs, and their definitions of memory",
        columns,
    )
    .with_rows(rows.collect())
}

/// Table of every column that the source traces fill, with its origin.
pub(crate) fn columns(view: &View) -> Option<Table> {
    let rows = view.findings.sources.iter().flat_map(|source| {
        source.columns.iter().map(|column| {
            vec![
                Cell::text(&source.name),
                Cell::text(format!("{}.{}", column.table, column.column)),
                Cell::text(&column.origin),
            ]
        })
    });
    let columns = vec![words("imported from"), words("column"), words("origin")];
    let mut table = Table::new(
        "source-columns".into(),
        "Columns filled from traces of other programs, and their source; all other columns are absent",
        columns,
    );
    table.in_order = true;
    table.with_rows(rows.collect())
}
