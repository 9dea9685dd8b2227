//! Table that compares the definitions of "available".

use crate::imported::Recorders;
use crate::page::table::{Cell, Table, numbers, words};
use crate::view::View;
use gleaner_schemas::findings::{Findings, Notion, NotionSizes, Scope};

fn label(recorders: Recorders, notion: Notion) -> &'static str {
    match notion {
        Notion::Available => recorders.choose(
            "available: not in use at the moment",
            "available: as the trace defines it",
            "available: not in use at the moment, or as the trace defines it",
        ),
        Notion::Paper => "available, without files that are used again soon",
        Notion::Harvestable => "harvestable: available without paging out owners’ pages",
    }
}

fn pooled(findings: &Findings) -> impl Iterator<Item = &NotionSizes> {
    findings.notions.iter().filter(|n| n.size_class == "all")
}

/// Table of means per host, by notion and scope.
pub(super) fn table(view: &View) -> Option<Table> {
    let mut sizes: Vec<&NotionSizes> = pooled(view.findings).collect();
    sizes.sort_by_key(|n| (n.scope == Scope::Idle, n.notion));
    let recorders = Recorders::of(view);
    let has_before = view.before.is_some_and(|b| pooled(b).next().is_some());
    let rows = sizes.iter().map(|now| {
        let scope = match now.scope {
            Scope::All => "all time",
            Scope::Idle => "owner away",
        };
        let mut cells = vec![
            Cell::text(label(recorders, now.notion)),
            Cell::text(scope),
            Cell::bytes(now.mean_bytes),
            Cell::share(now.mean_share).bar(now.mean_share),
            Cell::bytes(now.median_bytes),
            Cell::bytes(now.p5_bytes),
        ];
        if let Some(before) = view.before.filter(|_| has_before) {
            let same = |n: &&NotionSizes| n.scope == now.scope && n.notion == now.notion;
            let then = pooled(before).find(same);
            cells.push(Cell::or_absent(then, |then| {
                Cell::share_change(now.mean_share - then.mean_share)
            }));
        }
        cells
    });
    let mut columns = vec![
        words("definition"),
        words("time"),
        numbers("mean"),
        numbers("share"),
        numbers("median"),
        numbers("5th percentile"),
    ];
    if has_before {
        columns.push(numbers("change"));
    }
    Table::new(
        format!("{}notions", view.prefix),
        "Available memory of a host by definition; 95 % of the samples had at least the 5th percentile",
        columns,
    )
    .with_rows(rows.collect())
}
