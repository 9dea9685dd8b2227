//! A host's week in numbers, compared with the week before.

use crate::change;
use crate::page::table::{Cell, Kind, Table, numbers, words};
use crate::view::{Memory, View};
use crate::wording::{bytes, share, size};
use gleaner_schemas::findings::{Category, Findings};

/// Difference between mean and last physical memory above which memory counts as added or removed.
const CHANGED_SHARE: f64 = 0.01;

/// Summary of the host in one line.
pub(super) fn summary(view: &View) -> String {
    let Some(host) = view.only_host() else {
        return String::new();
    };
    match view.memory_of(host) {
        Some(memory) => format!(
            "{} of {} available",
            share(memory.available_share()),
            size(host.physical_bytes)
        ),
        None => "no samples".into(),
    }
}

/// First sentence of the host's page.
pub(super) fn answer(view: &View, fleet: &View) -> String {
    let Some(host) = view.only_host() else {
        return String::new();
    };
    let Some(memory) = view.memory_of(host) else {
        return "This host has no samples of memory.".into();
    };
    let then = view
        .before
        .and_then(|before| Some((before.hosts.first()?, view.earlier()?)))
        .and_then(|(host, earlier)| earlier.memory_of(host));
    let than = match (&then, fleet.before) {
        (Some(then), _) => change::share_than(
            view,
            Some(memory.available_share()),
            Some(then.available_share()),
        ),
        (None, Some(_)) => Some(format!("there are no samples of {}", view.before_label())),
        (None, None) => None,
    };
    let size = size(host.physical_bytes);
    let change = memory.mean_physical_bytes() / memory.physical_bytes - 1.0;
    format!(
        "{} of its {} was available on average{}, and never less than {}.",
        share(memory.available_share()),
        match change.abs() > CHANGED_SHARE {
            true => format!("memory ({size} at the end)"),
            false => size,
        },
        than.map(|than| format!(" ({than})")).unwrap_or_default(),
        bytes(memory.least_available_bytes),
    )
}

/// Table of the host's numbers, with the week before if known.
pub(super) fn table(view: &View) -> Option<Table> {
    let now = figures(view);
    let before = view.earlier().map(|earlier| figures(&earlier));
    let rows = now.into_iter().filter_map(|(label, kind, value)| {
        let cell = |value: Option<f64>| Cell::or_absent(value, |v| of(kind, v));
        let mut cells = vec![Cell::text(&label), cell(value)];
        let earlier = before.as_ref().map(|before| {
            let same = before.iter().find(|(other, ..)| *other == label);
            same.and_then(|(.., value)| *value)
        });
        if let Some(earlier) = earlier {
            let change = value.zip(earlier).map(|(now, then)| now - then);
            cells.extend([
                cell(earlier),
                Cell::or_absent(change, |c| change_of(kind, c)),
            ]);
        }
        value.or(earlier.flatten()).map(|_| cells)
    });
    let mut columns = vec![words("measure"), numbers("this period")];
    if before.is_some() {
        columns.extend([numbers("period before"), numbers("change")]);
    }
    let caption = match before {
        Some(_) => format!("Main figures, compared with {}", view.before_label()),
        None => "Main figures".into(),
    };
    let mut table = Table::new(format!("{}numbers", view.prefix), caption, columns);
    table.in_order = true;
    table.with_rows(rows.collect())
}

type Figure = (String, Kind, Option<f64>);

fn figures(view: &View) -> Vec<Figure> {
    let Some(host) = view.only_host() else {
        return Vec::new();
    };
    let memory = view.memory_of(host);
    let of = |take: fn(&Memory) -> Option<f64>| memory.as_ref().and_then(take);
    let mean = |c: Category| memory.as_ref().and_then(|m| m.mean_bytes[c as usize]);
    let bytes = |label: &str, value| (label.to_owned(), Kind::Bytes, value);
    let mut figures = vec![
        bytes("available, mean", mean(Category::Available)),
        bytes("available, least", of(|m| Some(m.least_available_bytes))),
        bytes("harvestable, mean", of(|m| m.harvestable_bytes)),
        bytes("active processes, mean", mean(Category::Process)),
        bytes("files in use, mean", mean(Category::FileCache)),
        (
            "idle, share of the time".into(),
            Kind::Share,
            host.idle_share,
        ),
        (
            "owner’s returns per day".into(),
            Kind::Number,
            view.findings.reclaims.first().map(|r| r.reclaims_per_day),
        ),
    ];
    figures.extend(dips(view.findings));
    figures.push((
        "covered by samples, share of the time".into(),
        Kind::Share,
        Some(host.coverage_share),
    ));
    figures
}

/// Share of the time below each threshold.
fn dips(findings: &Findings) -> impl Iterator<Item = Figure> {
    findings.absolute_dips().map(|dip| {
        (
            format!(
                "below {} available, share of samples",
                size(dip.threshold_bytes)
            ),
            Kind::Share,
            Some(dip.intervals_count as f64 / dip.samples_count.max(1) as f64),
        )
    })
}

fn of(kind: Kind, value: f64) -> Cell {
    match kind {
        Kind::Bytes => Cell::bytes(value),
        Kind::Share => Cell::share(value),
        _ => Cell::of(kind, format!("{value:.1}"), "", value),
    }
}

fn change_of(kind: Kind, change: f64) -> Cell {
    match kind {
        Kind::Bytes => Cell::bytes_change(change),
        Kind::Share => Cell::share_change(change),
        _ if change.abs() < 0.05 => Cell::of(kind, "0.0", "", change),
        _ => Cell::of(kind, format!("{change:+.1}").replace('-', "−"), "", change),
    }
}
