//! Copies of a region on several hosts.

use super::odds::{SCOPE_NOTE, scope_cell};
use super::regions;
use crate::page::table::{Cell, Kind, Table, numbers, words};
use crate::view::View;
use crate::wording::{seconds, share, size};
use gleaner_schemas::findings::{Copies, Scope};

/// Findings on copies of regions of one size: the section's middle size if they include it, otherwise the
/// largest size.
fn told<'a>(view: &'a View) -> Vec<&'a Copies> {
    let all = &view.findings.copies;
    let middle = regions::middle(view.findings);
    let has = |region: i64| all.iter().any(|c| c.region_bytes == region);
    let region = middle
        .filter(|region| has(*region))
        .or_else(|| all.iter().map(|c| c.region_bytes).max());
    all.iter()
        .filter(|c| Some(c.region_bytes) == region)
        .collect()
}

/// Sentence on the fate of two copies after an hour.
pub(super) fn sentence(view: &View) -> Option<String> {
    let told = told(view);
    let mut two = told
        .iter()
        .filter(|c| c.copies_count == 2 && c.scope == Scope::All);
    let hour = two
        .clone()
        .find(|c| c.ahead_s == 3600.0)
        .or_else(|| two.next())?;
    let ratio = match hour.all_lost_ratio {
        Some(ratio) if ratio > 1.2 => format!(
            ", {ratio:.1} times as likely as with independent hosts, because hosts become unavailable at the same hours"
        ),
        Some(_) => ", about as likely as with independent hosts".into(),
        None => String::new(),
    };
    Some(format!(
        "Two copies of a region of {} on two random hosts: {} later, a given copy is lost with a probability of {}, and both are lost with a probability of {}{ratio}.",
        size(hour.region_bytes),
        seconds(hour.ahead_s),
        share(hour.one_lost_probability),
        share(hour.all_lost_probability)
    ))
}

/// Table of the probabilities of losing one copy, and all copies.
pub(super) fn table(view: &View) -> Option<Table> {
    let told = told(view);
    let region = told.first()?.region_bytes;
    let rows = told.iter().map(|c| {
        vec![
            Cell::seconds(c.ahead_s),
            scope_cell(c.scope),
            Cell::count(c.copies_count),
            Cell::share(c.one_lost_probability),
            Cell::share(c.all_lost_probability),
            Cell::share(c.all_lost_if_independent_probability),
            Cell::or_absent(c.all_lost_ratio, |ratio| {
                Cell::of(Kind::Number, format!("{ratio:.1}"), "", ratio)
            }),
            Cell::share(c.none_lost_probability),
        ]
    });
    let table = Table::new(
        format!("{}copies", view.prefix),
        format!("Copies of a region of {} on different hosts", size(region)),
        vec![
            numbers("later"),
            words("time"),
            numbers("copies"),
            numbers("given copy lost"),
            numbers("all lost"),
            numbers("all lost, if independent"),
            numbers("ratio"),
            numbers("none lost"),
        ],
    )
    .with_rows(rows.collect())?;
    Some(table.with_note(format!(
        "If independent: probability of losing all copies if hosts were independent. Ratio: observed probability to that one. Every choice of \
         hosts counts equally; a placement that knows the hosts may do better. {SCOPE_NOTE}"
    )))
}
