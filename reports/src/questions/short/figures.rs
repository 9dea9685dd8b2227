//! Figures of hosts as dots, and of the hours of the week in which memory is short.

use super::advice::{Advice, SHORT_SHARE, SPARE_BELOW, SPARE_BELOW_SHARE};
use super::hosts::Host;
use crate::page::figure::{Figure, Key, Plot, axis, layout};
use crate::page::hours::{Map, Measure, Week};
use crate::view::{Memory, View};
use crate::wording::{count, share, size, thousands};
use gleaner_schemas::findings::Findings;
use plotly::common::{DashType, Marker, MarkerSymbol, Mode};
use plotly::layout::{HoverMode, Shape, ShapeLayer, ShapeLine, ShapeType};
use plotly::{Scatter, Trace};

/// A group of hosts whose dots look the same.
struct Group {
    label: &'static str,
    colour: &'static str,
    symbol: MarkerSymbol,
    mark: &'static str,
    is_in: fn(Advice) -> bool,
}

const fn groups() -> [Group; 4] {
    [
        Group {
            label: "neither short nor too much",
            colour: "traced",
            symbol: MarkerSymbol::Circle,
            mark: "dot",
            is_in: |a| matches!(a, Advice::Keep),
        },
        Group {
            label: "traced too briefly",
            colour: "traced",
            symbol: MarkerSymbol::CircleOpen,
            mark: "ring",
            is_in: |a| matches!(a, Advice::Watch),
        },
        Group {
            label: "has too much",
            colour: "available-line",
            symbol: MarkerSymbol::Circle,
            mark: "dot",
            is_in: |a| matches!(a, Advice::Move { .. } | Advice::Spare { .. }),
        },
        Group {
            label: "short of memory",
            colour: "threshold",
            symbol: MarkerSymbol::Diamond,
            mark: "diamond",
            is_in: |a| matches!(a, Advice::Add { .. }),
        },
    ]
}

fn percent(share: f64) -> f64 {
    (share * 1000.0).round() / 10.0
}

/// Figure of all hosts as dots: mean use horizontally, peak use vertically. Absent on the page of a fleet, whose
/// sites' pages have the figure: a fleet may have too many dots.
pub(super) fn used(view: &View, hosts: &[Host]) -> Option<Figure> {
    if view.has_sites {
        return None;
    }
    let seen = |host: &Host| Some((host.memory.clone()?, host.seen?));
    if hosts.iter().filter_map(seen).count() < 2 {
        return None;
    }
    let mean = |memory: &Memory| 1.0 - memory.available_share();
    let mut data: Vec<Box<dyn Trace>> = Vec::new();
    let mut key = Vec::new();
    for group in groups() {
        let of_group: Vec<_> = hosts
            .iter()
            .filter(|h| (group.is_in)(h.advice))
            .filter_map(seen)
            .collect();
        if of_group.is_empty() {
            continue;
        }
        let hover = of_group.iter().map(|(memory, seen)| {
            format!(
                "{}: used {} on average, {} at most",
                size(memory.physical_bytes as i64),
                share(mean(memory)),
                share(seen.most_used_share())
            )
        });
        let trace = Scatter::new(
            of_group.iter().map(|(m, _)| percent(mean(m))).collect(),
            of_group
                .iter()
                .map(|(_, s)| percent(s.most_used_share()))
                .collect(),
        )
        .mode(Mode::Markers)
        .name(group.label)
        .meta(group.colour)
        .marker(
            Marker::new()
                .size(9)
                .opacity(0.75)
                .symbol(group.symbol.clone()),
        )
        .hover_text_array(hover.collect::<Vec<String>>())
        .hover_template("%{hovertext}<extra></extra>");
        data.push(trace);
        key.push(Key {
            colour: group.colour,
            mark: group.mark,
            label: group.label.into(),
            value: count(of_group.len() as i64, "host"),
        });
    }
    let limit = |share: f64| {
        Shape::new()
            .shape_type(ShapeType::Line)
            .name("threshold")
            .layer(ShapeLayer::Below)
            .x_ref("paper")
            .x0(0.0)
            .x1(1.0)
            .y0(percent(share))
            .y1(percent(share))
            .line(ShapeLine::new().width(1.2).dash(DashType::Dot))
    };
    let widest = hosts.iter().filter_map(seen).map(|(m, _)| mean(&m));
    let widest = percent(widest.fold(0.0, f64::max)) * 1.05;
    let percent_axis = |title: &str, to: f64| {
        axis()
            .title(title)
            .range(vec![0.0, to])
            .tick_suffix("\u{a0}%")
    };
    Some(Figure {
        id: format!("{}hosts-used", view.prefix),
        title: "Each host by the share of its memory that it used".into(),
        sentence: used_sentence(hosts),
        key,
        height_px: 360,
        plot: Plot {
            times: Vec::new(),
            data,
            layout: layout()
                .hover_mode(HoverMode::Closest)
                .x_axis(percent_axis("used on average", widest.max(20.0)))
                .y_axis(percent_axis("highest use", 103.0))
                .shapes(vec![limit(SPARE_BELOW_SHARE), limit(1.0 - SHORT_SHARE)]),
        },
    })
}

fn used_sentence(hosts: &[Host]) -> String {
    let used: Vec<f64> = hosts
        .iter()
        .filter_map(|h| Some(h.seen?.most_used_share()))
        .collect();
    let below = used.iter().filter(|u| **u < SPARE_BELOW_SHARE).count() as i64;
    let above = used.iter().filter(|u| **u > 1.0 - SHORT_SHARE).count() as i64;
    format!(
        "{} of {} never used more than {SPARE_BELOW} of their memory (lower line); {} had less than {} available at least once (upper \
         line). Hosts at the top left used little memory on average and much at times.",
        thousands(below),
        count(used.len() as i64, "host"),
        thousands(above),
        share(SHORT_SHARE)
    )
}

/// Map of the hours of the week in which memory is short: the share of short samples, by hour.
pub(super) fn by_hour(view: &View) -> Option<Figure> {
    let week = short_by_hour(view.findings);
    let (_, most) = week.range()?;
    if most <= 0.0 {
        return None;
    }
    let hours = week.known().filter(|(_, _, share)| *share > 0.0).count();
    let (hour, _) = week.hour_words(true)?;
    week.figure(Map {
        id: format!("{}short-by-hour", view.prefix),
        title: "Shortage of memory by hour of the week".into(),
        sentence: format!(
            "Hosts had less than {} of their memory available most often on {hour}: in {} of the samples of all hosts. \
             This happened in {} of the {} of the week that were traced.",
            share(SHORT_SHARE),
            share(most),
            hours,
            count(week.known().count() as i64, "hour"),
        ),
        measure: Measure::Share,
        colour: "loss",
        label: "short",
    })
}

fn short_by_hour(findings: &Findings) -> Week {
    let short = findings.dips_by_hour.iter().filter(|d| {
        let is = |share: f64| (share - SHORT_SHARE).abs() < 1e-9;
        d.size_class == "all" && d.threshold_share.is_some_and(is)
    });
    Week::of(short.map(|d| {
        let share = d.intervals_count as f64 / d.samples_count.max(1) as f64;
        (d.weekday, d.hour, (d.samples_count > 0).then_some(share))
    }))
}
