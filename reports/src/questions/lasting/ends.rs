//! Causes that end availability periods.

use super::odds::{HOUR_S, first_kind, in_order, percent, scope_cell, scope_words};
use super::regions::{self, pooled};
use crate::page::figure::{Figure, Key, Plot, axis, layout};
use crate::page::table::{Cell, Table, numbers, words};
use crate::view::View;
use crate::wording::{list, seconds, share, size};
use gleaner_schemas::findings::{AvailabilityOdds, EndCause, Scope};
use plotly::common::Orientation;
use plotly::layout::BarMode;
use plotly::{Bar, Trace};

/// Causes that end a period, each with its words and its colour.
const CAUSES: [(EndCause, &str, &str); 6] = [
    (EndCause::Owner, "the owner returned", "process"),
    (EndCause::Load, "the load rose", "file-cache"),
    (EndCause::Memory, "the host needed its memory", "reserve"),
    (EndCause::SleepOrPower, "sleep or power", "static-kernel"),
    (EndCause::Network, "the network", "guest"),
    (
        EndCause::Agent,
        "the agent stopped sending samples",
        "balloon",
    ),
];

fn lost(odds: &AvailabilityOdds, cause: EndCause) -> f64 {
    match cause {
        EndCause::Owner => odds.lost_to_owner_probability,
        EndCause::Load => odds.lost_to_load_probability,
        EndCause::Memory => odds.lost_to_memory_probability,
        EndCause::SleepOrPower => odds.lost_to_sleep_or_power_probability,
        EndCause::Network => odds.lost_to_network_probability,
        EndCause::Agent => odds.lost_to_agent_probability,
    }
}

/// Figure of the outcomes for the middle size, by horizon: still available, or lost to a cause; for idle time
/// if known.
pub(super) fn causes(view: &View) -> Option<Figure> {
    let f = view.findings;
    let region = regions::middle(f)?;
    let scope = if pooled(f).any(|o| o.scope == Scope::Idle && o.region_bytes == region) {
        Scope::Idle
    } else {
        Scope::All
    };
    let mut bars: Vec<&AvailabilityOdds> = pooled(f)
        .filter(|o| o.scope == scope && o.region_bytes == region)
        .collect();
    bars.sort_by(|a, b| b.ahead_s.total_cmp(&a.ahead_s));
    let labels: Vec<String> = bars.iter().map(|o| seconds(o.ahead_s)).collect();
    let hour = bars.iter().find(|o| o.ahead_s == HOUR_S).or(bars.last())?;
    let mut data: Vec<Box<dyn Trace>> = Vec::new();
    let mut key = Vec::new();
    let mut add = |colour: &'static str, label: &str, part: &dyn Fn(&AvailabilityOdds) -> f64| {
        let widths: Vec<f64> = bars.iter().map(|o| percent(part(o))).collect();
        if widths.iter().all(|w| *w <= 0.0) {
            return;
        }
        data.push(
            Bar::new(widths, labels.clone())
                .orientation(Orientation::Horizontal)
                .name(colour)
                .hover_template(format!("{label} %{{x:.1f}} %<extra></extra>")),
        );
        key.push(Key {
            colour,
            mark: "area",
            label: label.into(),
            value: String::new(),
        });
    };
    add("available", "still available", &|o| o.available_probability);
    for (cause, label, colour) in CAUSES {
        add(colour, label, &|o| lost(o, cause));
    }
    Some(Figure {
        id: format!("{}odds-ends", view.prefix),
        title: format!(
            "Causes of the end of availability: a region of {}, {}",
            size(region),
            scope_words(scope)
        ),
        sentence: causes_sentence(hour),
        key,
        height_px: 110 + 30 * bars.len(),
        plot: Plot {
            times: Vec::new(),
            data,
            layout: layout()
                .bar_mode(BarMode::Stack)
                .bar_gap(0.25)
                .x_axis(
                    axis()
                        .title("share of available regions")
                        .range(vec![0.0, 101.0])
                        .tick_suffix(" %"),
                )
                .y_axis(
                    axis()
                        .title("time later")
                        .type_(plotly::layout::AxisType::Category),
                ),
        },
    })
}

fn causes_sentence(hour: &AvailabilityOdds) -> String {
    let mut ends: Vec<(f64, &str)> = CAUSES
        .iter()
        .map(|(cause, label, _)| (lost(hour, *cause), *label))
        .filter(|(share, _)| *share > 0.0)
        .collect();
    ends.sort_by(|a, b| b.0.total_cmp(&a.0));
    let said: Vec<String> = ends
        .iter()
        .map(|(lost, label)| format!("{} because {label}", share(*lost)))
        .map(|text| {
            text.replace("because sleep or power", "to sleep or power")
                .replace("because the network", "to the network")
        })
        .collect();
    if said.is_empty() {
        return format!("{} later, no memory was lost.", seconds(hour.ahead_s));
    }
    format!(
        "{} later, {} is still available. Lost: {}.",
        seconds(hour.ahead_s),
        share(hour.available_probability),
        list(&said)
    )
}

/// Table of losses by cause.
pub(super) fn losses(view: &View) -> Option<Table> {
    let sorted = in_order(view.findings);
    // Idle time comes first if it is known, since all of the causes can end it.
    let idle = sorted.iter().any(|o| o.scope == Scope::Idle);
    let (mut told, others): (Vec<_>, Vec<_>) = sorted
        .into_iter()
        .partition(|o| !idle || o.scope == Scope::Idle);
    let shown = first_kind(&told);
    told.extend(others);
    let rows = told.into_iter().map(|o| {
        let mut row = vec![
            Cell::size(o.region_bytes),
            scope_cell(o.scope),
            Cell::seconds(o.ahead_s),
        ];
        row.extend(EndCause::ALL.map(|cause| Cell::share(lost(o, cause))));
        row
    });
    let mut table = Table::new(
        format!("{}odds-losses", view.prefix),
        "Losses by cause, as shares of available regions",
        vec![
            numbers("region"),
            words("time"),
            numbers("later"),
            numbers("owner returned"),
            numbers("load"),
            numbers("memory"),
            numbers("sleep or power"),
            numbers("network"),
            numbers("agent"),
        ],
    )
    .with_rows(rows.collect())?;
    table.rows_shown = shown;
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::super::odds::tests::odds;
    use super::*;

    #[test]
    fn what_took_the_rest_is_said_largest_first() {
        assert_eq!(
            causes_sentence(&odds()).replace('\u{a0}', " "),
            "1 h later, 90 % is still available. Lost: 6.0 % because the host needed its memory and 4.0 % to sleep or power."
        );
    }
}
