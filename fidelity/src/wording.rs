//! Texts of figures, for the terminal and for Markdown.

use super::gains::Gain;
use super::number::number;
use super::record::Record;
use super::shapes::Shape;
use gleaner_traces::published::Kind;

pub(super) const HEADER: [&str; 10] = [
    "row",
    "column",
    "unit",
    "paper",
    "ours",
    "spread",
    "of the seeds",
    "error",
    "kind",
    "holds",
];

pub(super) fn cells(r: &Record) -> [String; 10] {
    let interval = r.seeds_low.zip(r.seeds_high);
    let interval = interval.map(|(low, high)| format!("{} to {}", number(low), number(high)));
    let error = r.relative_error.map(|e| format!("{:+.1} %", e * 100.0));
    [
        r.row.clone(),
        r.column.clone(),
        r.unit.clone(),
        r.paper.to_string(),
        or_dash(r.ours.map(number)),
        or_dash(r.spread.map(number)),
        or_dash(interval),
        or_dash(error),
        kind(r.kind).to_owned(),
        holds(r).to_owned(),
    ]
}

/// Column titles of a table of shapes.
pub(super) const SHAPES: [&str; 7] = [
    "item",
    "row",
    "quantity",
    "the paper says",
    "ours",
    "of the seeds",
    "so",
];

pub(super) fn shape(s: &Shape) -> [String; 7] {
    [
        s.item.to_owned(),
        s.row.clone(),
        s.quantity.to_owned(),
        s.paper.to_owned(),
        s.ours.clone(),
        s.range.clone(),
        format!("in {} of {} seeds", s.so, s.seeds),
    ]
}

/// Cells of a gain: program, cluster, and the paper's share and ours.
pub(super) fn gain(g: &Gain) -> [String; 4] {
    [
        g.application.clone(),
        g.cluster.row().to_owned(),
        number(g.paper),
        number(g.ours),
    ]
}

pub(super) const fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Calibrated => "calibrated",
        Kind::Derived => "derived",
        Kind::Predicted => "predicted",
        Kind::NotComparable => "not comparable",
        Kind::Shape => "shape",
    }
}

fn holds(r: &Record) -> &'static str {
    let rounds = r.ours.is_some_and(|ours| (r.low..=r.high).contains(&ours));
    match (r.holds, r.possible) {
        (None, true) => "—",
        (Some(true), _) if rounds => "rounds to it",
        (Some(true), _) => "in the seeds",
        (_, false) => "impossible",
        (Some(false), true) => "no",
    }
}

pub(super) fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "—".to_owned())
}

/// Items in the order of their records.
pub(super) fn items(records: &[Record]) -> Vec<&str> {
    let mut items: Vec<&str> = Vec::new();
    for r in records {
        if !items.contains(&r.item.as_str()) {
            items.push(&r.item);
        }
    }
    items
}

/// Notes of the records of one item, each with the places to which it applies.
pub(super) fn notes<'a>(records: &[&'a Record]) -> Vec<(&'a str, Vec<String>)> {
    let mut notes: Vec<(&str, Vec<String>)> = Vec::new();
    for r in records.iter().filter(|r| !r.note.is_empty()) {
        match notes.iter_mut().find(|(note, _)| *note == r.note) {
            Some((_, places)) => places.push(r.place()),
            None => notes.push((&r.note, vec![r.place()])),
        }
    }
    notes
}

/// A note, preceded by its places unless there are many.
pub(super) fn note((note, places): &(&str, Vec<String>)) -> String {
    match places.as_slice() {
        few if few.len() <= 3 => format!("{}: {note}.", few.join("; ")),
        many => format!("{} figures: {note}.", many.len()),
    }
}
