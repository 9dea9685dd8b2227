//! All hosts together over time: memory available on idle hosts and on hosts in use, and the memory that
//! owners use.

use crate::fleet::{self, earlier_points, mean, runs};
use crate::page::figure::{Figure, Key, Plot, Unit, axis, layout, time_axis};
use crate::view::View;
use crate::wording::{bytes, share};
use gleaner_schemas::findings::ClusterPoint;
use plotly::common::{DashType, Line, Marker, Mode};
use plotly::layout::{HoverMode, RangeMode};
use plotly::{Scatter, Trace};

/// Function that returns the value of a stretch of time, which is drawn as a line or an area.
type Value = fn(&ClusterPoint) -> Option<f64>;

struct Area {
    label: &'static str,
    colour: &'static str,
    value: Value,
}

pub(super) fn figure(view: &View) -> Option<Figure> {
    let points = &view.findings.cluster_over_time;
    if points.len() < 2 {
        return None;
    }
    let before = earlier_points(view);
    let largest = points.iter().map(|p| p.physical_bytes).fold(0.0, f64::max);
    let unit = Unit::of(largest);
    let areas = areas(points);
    let mut data: Vec<Box<dyn Trace>> = Vec::new();
    let mut times = Vec::new();
    for (number, run) in runs(points).into_iter().enumerate() {
        times.push(run.iter().map(|p| p.time_ms).collect());
        for area in &areas {
            let area_trace = trace(unit, number, run, area.label, area.colour, area.value);
            data.push(
                area_trace
                    .stack_group(format!("run-{number}"))
                    .line(Line::new().width(0.0)),
            );
        }
        let mut line = |label, colour, value: Value, width, dash| {
            if run.iter().any(|p| value(p).is_some()) {
                let drawn = trace(unit, number, run, label, colour, value);
                data.push(drawn.line(Line::new().width(width).dash(dash)));
            }
        };
        line(
            "least available",
            "available-line",
            least,
            0.8,
            DashType::Solid,
        );
        line(
            "harvestable",
            "harvestable",
            harvestable,
            2.0,
            DashType::Dash,
        );
    }
    let (earlier, shift_ms) = before.unwrap_or((&[], 0));
    for run in runs(earlier) {
        let number = times.len();
        times.push(run.iter().map(|p| p.time_ms + shift_ms).collect());
        let label = format!("available in {}", view.before_label());
        let drawn = trace(unit, number, run, &label, "soft", available);
        data.push(drawn.line(Line::new().width(1.3).dash(DashType::Dot)));
    }
    let (from, to) = (points[0].time_ms, points[points.len() - 1].time_ms);
    Some(Figure {
        id: format!("{}cluster-over-time", view.prefix),
        title: "Memory of all hosts together over time".into(),
        sentence: sentence(view, points),
        key: key(view, points, &areas, before.map(|(points, _)| points)),
        height_px: 380,
        plot: Plot {
            times,
            data,
            layout: layout()
                .hover_mode(HoverMode::XUnified)
                .x_axis(time_axis(&format!(
                    "time, {}",
                    view.clock.zone_over(from, to)
                )))
                .y_axis(
                    axis()
                        .title(unit.name)
                        .range_mode(RangeMode::ToZero)
                        .tick_format(",~r"),
                ),
        },
    })
}

fn available(p: &ClusterPoint) -> Option<f64> {
    Some(p.available_bytes)
}

fn on_idle(p: &ClusterPoint) -> Option<f64> {
    Some(p.idle_available_bytes.unwrap_or(0.0))
}

fn on_in_use(p: &ClusterPoint) -> Option<f64> {
    Some((p.available_bytes - p.idle_available_bytes.unwrap_or(0.0)).max(0.0))
}

fn owners(p: &ClusterPoint) -> Option<f64> {
    Some((p.physical_bytes - p.available_bytes).max(0.0))
}

fn least(p: &ClusterPoint) -> Option<f64> {
    Some(p.min_available_bytes as f64)
}

fn harvestable(p: &ClusterPoint) -> Option<f64> {
    p.harvestable_bytes
}

/// Returns the areas from the bottom up. If it is unknown which hosts were idle, available memory is one
/// area.
fn areas(points: &[ClusterPoint]) -> Vec<Area> {
    let area = |label, colour, value| Area {
        label,
        colour,
        value,
    };
    let mut areas = if points.iter().any(|p| p.idle_available_bytes.is_some()) {
        vec![
            area(
                "available on idle hosts",
                "available-idle",
                on_idle as Value,
            ),
            area("available on hosts in use", "available-in-use", on_in_use),
        ]
    } else {
        vec![area("available", "available-idle", available as Value)]
    };
    areas.push(area("in use by owners", "owners", owners));
    areas
}

fn trace(
    unit: Unit,
    run_number: usize,
    run: &[ClusterPoint],
    label: &str,
    colour: &str,
    value: Value,
) -> Box<Scatter<usize, Option<f64>>> {
    let y = run.iter().map(|p| value(p).map(|b| unit.number(b)));
    let trace = Scatter::new(vec![run_number], y.collect())
        .name(label)
        .meta(colour)
        .hover_template(unit.hover(label));
    match run.len() {
        1 => trace.mode(Mode::Markers).marker(Marker::new().size(4)),
        _ => trace.mode(Mode::Lines),
    }
}

fn key(
    view: &View,
    points: &[ClusterPoint],
    areas: &[Area],
    before: Option<&[ClusterPoint]>,
) -> Vec<Key> {
    let value = |points: &[ClusterPoint], value: Value| mean(points, value).map(bytes);
    let mut key: Vec<Key> = areas
        .iter()
        .map(|area| Key {
            colour: area.colour,
            mark: "area",
            label: area.label.into(),
            value: value(points, area.value).unwrap_or_default(),
        })
        .collect();
    key.push(Key {
        colour: "available-line",
        mark: "hairline",
        label: "least available in each interval".into(),
        value: String::new(),
    });
    key.extend(value(points, harvestable).map(|value| Key {
        colour: "harvestable",
        mark: "dash",
        label: "harvestable".into(),
        value,
    }));
    key.extend(before.map(|before| Key {
        colour: "soft",
        mark: "dot-line",
        label: format!("available in {}", view.before_label()),
        value: value(before, available).unwrap_or_default(),
    }));
    key
}

fn sentence(view: &View, points: &[ClusterPoint]) -> String {
    let least = fleet::least(points);
    let most = points
        .iter()
        .max_by(|a, b| a.available_bytes.total_cmp(&b.available_bytes));
    let at = |p: &ClusterPoint| view.clock.moment_to_minute(p.time_ms);
    let range = least.zip(most).map(|(least, most)| {
        format!(
            "Available memory of all hosts was lowest around {} ({}){} and highest around {} ({}).",
            at(least.point),
            bytes(least.point.min_available_bytes as f64),
            least.caution,
            at(most),
            bytes(most.available_bytes)
        )
    });
    let idle = mean(points, |p| p.idle_available_bytes).zip(mean(points, available));
    let where_from = match idle {
        Some((idle, available)) => format!(
            "On average, {} of it was on hosts whose owners were away.",
            share(idle / available.max(1.0))
        ),
        None => "It is not known which hosts were idle, so available memory is drawn as one area."
            .into(),
    };
    let seen = |p: &ClusterPoint| p.hosts_seen_count.round() as i64;
    let fewest = points.iter().map(seen).min().unwrap_or(0);
    let most_seen = points.iter().map(seen).max().unwrap_or(0);
    let hosts = (fewest < most_seen).then(|| {
        format!(
            "Available memory also depends on the number of hosts that were on: {fewest} to {most_seen} at the same time."
        )
    });
    let said = [range, Some(where_from), hosts];
    said.into_iter()
        .flatten()
        .collect::<Vec<String>>()
        .join(" ")
}
