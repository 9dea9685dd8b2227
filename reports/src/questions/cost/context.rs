//! Memory context: memory that must be paged in again at returns.

use super::{MODES, class_cell, mode_words};
use crate::page::table::{self, Cell, Table, numbers};
use crate::view::View;
use crate::wording::{bytes, count, share};
use gleaner_schemas::findings::{Findings, LendingMode, MemoryContext};

/// Memory context of hosts of all sizes together, in one mode.
pub(super) fn pooled(findings: &Findings, mode: LendingMode) -> Option<&MemoryContext> {
    of_class(findings, "all", mode)
}

fn of_class<'a>(
    findings: &'a Findings,
    class: &str,
    mode: LendingMode,
) -> Option<&'a MemoryContext> {
    let mut all = findings.memory_context.iter();
    all.find(|c| {
        c.host_id.is_none() && c.size_class == class && c.mode == mode && c.returns_count > 0
    })
}

/// Sentence that compares the memory context in both modes of lending.
pub(super) fn words(view: &View) -> Option<String> {
    let f = view.findings;
    let paper = pooled(f, LendingMode::Paper);
    let gentle = pooled(f, LendingMode::Gentle);
    let first = paper.or(gentle)?;
    let of = |c: &MemoryContext| {
        let lent = c
            .mean_quota_bytes
            .map(bytes)
            .unwrap_or_else(|| "an unknown amount".into());
        format!(
            "a host lends {} on average while idle; {} of the returns then have memory to page in again, {} on average",
            lent,
            share(c.share_of_returns_with_any),
            bytes(c.mean_bytes)
        )
    };
    let both = match (paper, gentle) {
        (Some(paper), Some(gentle)) => format!(
            "With the paper’s policy, {}. With the gentle policy, {}.",
            of(paper),
            of(gentle)
        ),
        _ => format!("{}.", capital(&of(first))),
    };
    Some(format!(
        "{both} These figures are based on {}; the processes active after a return use {} on average. The memory context is a size, not a \
         delay: owners wait only for the pages that they use, at the speed of disk or network.",
        count(first.returns_count, "return"),
        bytes(first.mean_footprint_bytes)
    ))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| format!("{}{}", first.to_uppercase(), letters.as_str()))
        .unwrap_or_default()
}

/// Table of memory contexts by mode of lending and class of hosts.
pub(super) fn table(view: &View) -> Option<Table> {
    let f = view.findings;
    let mut classes: Vec<&str> = Vec::new();
    for c in f.memory_context.iter().filter(|c| c.host_id.is_none()) {
        if !classes.contains(&c.size_class.as_str()) {
            classes.push(&c.size_class);
        }
    }
    let one = classes.len() <= 2 && classes.contains(&"all");
    classes.retain(|class| !one || *class == "all");
    classes.sort_by_key(|class| *class != "all");
    let before = view
        .before
        .filter(|b| b.memory_context.iter().any(|c| c.host_id.is_none()));
    let rows = [LendingMode::Paper, LendingMode::Gentle]
        .into_iter()
        .flat_map(|mode| {
            let known = classes
                .iter()
                .filter_map(move |class| of_class(f, class, mode));
            known.map(move |c| {
                let mut row = vec![
                    Cell::text(mode_words(mode)),
                    class_cell(&c.size_class),
                    Cell::or_absent(c.mean_quota_bytes, Cell::bytes),
                    Cell::share(c.share_of_returns_with_any),
                    Cell::bytes(c.mean_bytes),
                    Cell::bytes(c.p90_bytes),
                    Cell::bytes(c.p99_bytes),
                ];
                row.extend(before.map(|b| {
                    Cell::or_absent(of_class(b, &c.size_class, mode), |b| {
                        Cell::bytes_change(c.mean_bytes - b.mean_bytes)
                    })
                }));
                row
            })
        });
    let mut columns = vec![
        table::words("policy"),
        numbers("memory size"),
        numbers("lent while idle"),
        numbers("returns with context"),
        numbers("mean"),
        numbers("90th percentile"),
        numbers("99th percentile"),
    ];
    columns.extend(before.map(|_| numbers("change of mean")));
    let table = Table::new(
        format!("{}memory-context", view.prefix),
        "Memory context: memory to page in again at a return",
        columns,
    )
    .with_rows(rows.collect())?;
    Some(table.with_note(MODES))
}

#[cfg(test)]
mod tests {
    use super::super::tests::context;
    use super::*;
    use crate::view::ask as of;

    #[test]
    fn modes_stand_beside_each_other() {
        let mut findings = Findings {
            memory_context: vec![context(0.0, 0.0)],
            ..Findings::default()
        };
        let one = of(&findings, None, words).unwrap().replace('\u{a0}', " ");
        assert!(
            one.starts_with("A host lends 8.0 GiB on average while idle; 2.0 % of"),
            "{one}"
        );
        findings.memory_context.push(MemoryContext {
            mode: LendingMode::Gentle,
            ..context(0.0, 0.0)
        });
        let both = of(&findings, None, words).unwrap();
        assert!(both.contains("With the gentle policy"), "{both}");
        let table = of(&findings, Some(&findings), table).unwrap();
        assert_eq!(table.rows.len(), 2);
        assert_eq!(table.rows[1][7].value, Some(0.0));
        assert!(of(&Findings::default(), None, words).is_none());
    }
}
