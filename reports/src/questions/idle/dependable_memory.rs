//! Memory that stayed available: its distribution over time, and the time for which it stayed.

use crate::fleet::available;
use crate::page::figure::{Figure, Key, Plot, Unit, axis, layout};
use crate::page::table::{Cell, Table, numbers, words};
use crate::view::View;
use crate::wording::{bytes, seconds, share};
use gleaner_schemas::findings::{ClusterAvailable, Guarantee, Residence, Scope};
use plotly::common::{DashType, Line, Mode};
use plotly::layout::{AxisType, RangeMode};
use plotly::{Scatter, Trace};

/// Probabilities, each with the colour of its line.
const PROBABILITIES: [(f64, &str); 3] = [
    (0.5, "available-line"),
    (0.9, "harvestable"),
    (0.99, "threshold"),
];
/// Probability for which the answer states the bytes.
const USUAL_PROBABILITY: f64 = 0.9;
/// Horizon for which the answer states the bytes, in s.
const USUAL_AHEAD_S: f64 = 3600.0;
const SCOPES: [Scope; 2] = [Scope::All, Scope::Idle];

fn scope_label(scope: Scope) -> &'static str {
    match scope {
        Scope::All => "all hosts",
        Scope::Idle => "idle hosts",
    }
}

/// Table of the memory available on all hosts together.
pub(super) fn together(view: &View) -> Option<Table> {
    let before = view.before.filter(|b| available(b, Scope::All).is_some());
    let change = |label| before.is_some().then(|| numbers(label));
    let columns = [
        Some(words("available on")),
        Some(numbers("mean")),
        Some(numbers("share")),
        change("change of mean"),
        Some(numbers("50 % of the time")),
        Some(numbers("95 % of the time")),
        change("change at 95 %"),
        Some(numbers("99 % of the time")),
    ];
    let row = |scope| {
        let now = available(view.findings, scope)?;
        let change = |of: fn(&ClusterAvailable) -> f64| {
            let then = before.map(|before| available(before, scope));
            then.map(|then| Cell::or_absent(then, |then| Cell::bytes_change(of(now) - of(then))))
        };
        let cells = [
            Some(Cell::text(scope_label(scope))),
            Some(Cell::bytes(now.mean_bytes)),
            Some(Cell::share(now.share_of_physical)),
            change(|a| a.mean_bytes),
            Some(Cell::bytes(now.median_bytes as f64)),
            Some(Cell::bytes(now.p5_bytes as f64)),
            change(|a| a.p5_bytes as f64),
            Some(Cell::bytes(now.p1_bytes as f64)),
        ];
        Some(cells.into_iter().flatten().collect())
    };
    Table::new(
        format!("{}cluster-available", view.prefix),
        "Memory available on all hosts together: mean, and the amount available for at least a share of the time",
        columns.into_iter().flatten().collect(),
    )
    .with_rows(SCOPES.into_iter().filter_map(row).collect())
}

fn stays<'a>(view: &View<'a>, scope: Scope) -> impl Iterator<Item = &'a Guarantee> {
    let all = view.findings.guarantees.iter();
    all.filter(move |g| g.scope == scope && g.residence == Residence::Stays)
}

fn at(view: &View, scope: Scope, ahead_s: f64, probability: f64) -> Option<i64> {
    stays(view, scope)
        .find(|g| g.ahead_s == ahead_s && g.probability == probability)
        .map(|g| g.bytes)
}

/// Answer in one sentence; absent if the findings lack the usual probability or horizon.
pub(super) fn answer(view: &View) -> Option<String> {
    let of = |scope| at(view, scope, USUAL_AHEAD_S, USUAL_PROBABILITY);
    let all = of(Scope::All)?;
    let idle = match of(Scope::Idle) {
        Some(0) => ", but none of it on hosts whose owners stayed away that long".to_owned(),
        Some(idle) => format!(
            ", but only {} on hosts whose owners stayed away that long",
            bytes(idle as f64)
        ),
        None => String::new(),
    };
    Some(format!(
        "At nine of ten moments, at least {} of the paper’s quota (available, less a headroom of {}) stayed available \
         for an hour{idle}.",
        bytes(all as f64),
        share(view.findings.parameters.headroom_share),
    ))
}

fn horizons(view: &View) -> Vec<f64> {
    let mut horizons: Vec<f64> = stays(view, Scope::All).map(|g| g.ahead_s).collect();
    horizons.sort_by(f64::total_cmp);
    horizons.dedup();
    horizons
}

/// Figure of the bytes that stay available, by horizon, with one line per probability.
pub(super) fn figure(view: &View) -> Option<Figure> {
    let horizons = horizons(view);
    if horizons.len() < 2 {
        return None;
    }
    let largest = stays(view, Scope::All).map(|g| g.bytes).max()? as f64;
    let unit = Unit::of(largest);
    let mut data: Vec<Box<dyn Trace>> = Vec::new();
    let mut key = Vec::new();
    for scope in SCOPES {
        let (dash, mark) = match scope {
            Scope::All => (DashType::Solid, "line"),
            Scope::Idle => (DashType::Dash, "dash"),
        };
        for (probability, colour) in PROBABILITIES {
            let points: Vec<(f64, f64)> = horizons
                .iter()
                .filter_map(|ahead| {
                    let bytes = at(view, scope, *ahead, probability)?;
                    Some((*ahead, unit.number(bytes as f64)))
                })
                .collect();
            if points.is_empty() {
                continue;
            }
            let label = format!("{}, {:.0}\u{a0}%", scope_label(scope), probability * 100.0);
            let trace = Scatter::new(
                points.iter().map(|p| p.0).collect(),
                points.iter().map(|p| p.1).collect(),
            )
            .mode(Mode::LinesMarkers)
            .name(&label)
            .meta(colour)
            .hover_template(unit.hover(&label))
            .line(Line::new().width(2.0).dash(dash.clone()));
            data.push(trace);
            key.push(Key {
                colour,
                mark,
                label,
                value: String::new(),
            });
        }
    }
    let x_axis = axis()
        .type_(AxisType::Log)
        .title("duration")
        .tick_text(horizons.iter().map(|s| seconds(*s)).collect())
        .tick_values(horizons.clone());
    let y_axis = axis()
        .title(unit.name)
        .range_mode(RangeMode::ToZero)
        .tick_format(",~r");
    Some(Figure {
        id: format!("{}guarantees", view.prefix),
        title: "Lendable memory that stayed available, by duration".into(),
        sentence: sentence(view, &horizons),
        key,
        height_px: 320,
        plot: Plot {
            times: Vec::new(),
            data,
            layout: layout().x_axis(x_axis).y_axis(y_axis),
        },
    })
}

fn sentence(view: &View, horizons: &[f64]) -> String {
    let (Some(first), Some(last)) = (horizons.first(), horizons.last()) else {
        return String::new();
    };
    let said = |scope| {
        let of = |ahead: &f64| {
            let words = match at(view, scope, *ahead, USUAL_PROBABILITY)? {
                0 => "nothing".to_owned(),
                kept => bytes(kept as f64),
            };
            Some(format!("{words} for {}", seconds(*ahead)))
        };
        Some(format!("{} and {}", of(first)?, of(last)?))
    };
    let all = said(Scope::All).map(|said| {
        format!(
            "At nine of ten moments, at least this much of the paper’s quota stayed available: {said}."
        )
    });
    let idle = said(Scope::Idle)
        .map(|said| format!("On hosts whose owners stayed away: at least {said}."));
    let parts = [all, idle];
    parts
        .into_iter()
        .flatten()
        .collect::<Vec<String>>()
        .join(" ")
}

/// Table of the figure's numbers.
pub(super) fn guarantees(view: &View) -> Option<Table> {
    let horizons = horizons(view);
    let rows = SCOPES.into_iter().flat_map(|scope| {
        let known: Vec<f64> = horizons
            .iter()
            .copied()
            .filter(|ahead| stays(view, scope).any(|g| g.ahead_s == *ahead))
            .collect();
        known
            .into_iter()
            .map(move |ahead| guaranteed_row(view, scope, ahead))
    });
    let mut columns = vec![
        words("hosts"),
        numbers("duration"),
        numbers("at 50 % of moments"),
        numbers("at 90 % of moments"),
        numbers("at 99 % of moments"),
    ];
    if view.before.is_some_and(|b| !b.guarantees.is_empty()) {
        columns.push(numbers("change at 90 %"));
    }
    let mut table = Table::new(
        format!("{}guarantees-table", view.prefix),
        "Lendable memory that stayed available for a duration: the amount reached at a share of the moments",
        columns,
    )
    .with_note(
        "The figures describe the trace and are no promise. A host that sleeps loses all its memory, and so does an idle host whose \
         owner returns; memory that another host gains meanwhile does not count.",
    );
    table.in_order = true;
    table.with_rows(rows.collect())
}

fn guaranteed_row(view: &View, scope: Scope, ahead_s: f64) -> Vec<Cell> {
    let cell = |probability| {
        Cell::or_absent(at(view, scope, ahead_s, probability), |b| {
            Cell::bytes(b as f64)
        })
    };
    let mut cells = vec![Cell::text(scope_label(scope)), Cell::seconds(ahead_s)];
    cells.extend(PROBABILITIES.map(|(probability, _)| cell(probability)));
    if let Some(earlier) = view.earlier().filter(|e| !e.findings.guarantees.is_empty()) {
        let now = at(view, scope, ahead_s, USUAL_PROBABILITY);
        let then = at(&earlier, scope, ahead_s, USUAL_PROBABILITY);
        cells.push(Cell::or_absent(now.zip(then), |(now, then)| {
            Cell::bytes_change((now - then) as f64)
        }));
    }
    cells
}
