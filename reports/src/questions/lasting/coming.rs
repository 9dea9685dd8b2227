//! Forecast of the coming week by hour. It assumes that the week will be like this week; the page also states
//! how well that rule worked last week.

use super::hours::{idle, memory, region};
use super::odds::{percent, share_axis};
use super::regions;
use crate::page::Part;
use crate::page::figure::{Figure, Key, Plot, Unit, axis, layout};
use crate::page::hours::{Measure, Week};
use crate::page::table::{Cell, Table, numbers, words};
use crate::view::View;
use crate::wording::{bytes, share, size};
use gleaner_schemas::findings::{Findings, Scope};
use plotly::common::{DashType, Line, Marker, MarkerSymbol, Mode};
use plotly::layout::RangeMode;
use plotly::{Scatter, Trace};

/// Minimum number of traced hours that a forecast needs: two days.
const LEAST_HOURS: usize = 48;

/// The forecast as figure and text, and how well the same rule worked last week.
pub(super) fn parts(view: &View) -> Vec<Part> {
    let mut parts: Vec<Part> = expected(view).map(Part::figure).into_iter().collect();
    if parts.is_empty() {
        return parts;
    }
    let rules = rules(view);
    parts.extend(judgement(view, &rules).map(Part::Say));
    parts.extend(table(view, &rules).map(Part::Table));
    parts.extend(calibration(view, &rules).map(Part::figure));
    parts
}

/// Figure of a host's available and harvestable memory in each hour of the coming week.
fn expected(view: &View) -> Option<Figure> {
    let available = memory(view.findings, "available");
    let harvestable = memory(view.findings, "harvestable");
    if available.known().count() < LEAST_HOURS {
        return None;
    }
    let (low, high) = available.range()?;
    let unit = Unit::of(high);
    let earlier = view.before.map(|b| memory(b, "available"));
    let earlier = earlier.filter(|week| week.known().next().is_some());
    let line = |week: &Week, colour, label: &str, dash| -> Box<dyn Trace> {
        let y: Vec<Option<f64>> = week
            .in_a_row()
            .into_iter()
            .map(|v| v.map(|v| unit.number(v)))
            .collect();
        Scatter::new((0..y.len()).collect(), y)
            .mode(Mode::Lines)
            .name(label)
            .meta(colour)
            .line(Line::new().width(2.0).dash(dash))
            .hover_text_array(hour_names())
            .hover_template(format!("%{{hovertext}}: {}", unit.hover(label)))
    };
    let entry = |colour, mark, label: &str| Key {
        colour,
        mark,
        label: label.into(),
        value: String::new(),
    };
    let mut data = Vec::new();
    let mut key = Vec::new();
    if let Some(week) = &earlier {
        data.push(line(week, "before", view.before_label(), DashType::Solid));
        key.push(entry(
            "before",
            "line",
            &format!("available in {}", view.before_label()),
        ));
    }
    data.push(line(
        &available,
        "available-line",
        "available",
        DashType::Solid,
    ));
    key.insert(0, entry("available-line", "line", "available"));
    if harvestable.known().next().is_some() {
        data.push(line(
            &harvestable,
            "harvestable",
            "harvestable",
            DashType::Dash,
        ));
        key.insert(1, entry("harvestable", "dash", "harvestable"));
    }
    let hour = |most| {
        let found = available.hour_words(most);
        found.map(|(when, _)| when).unwrap_or_default()
    };
    Some(Figure {
        id: format!("{}coming-week", view.prefix),
        title: "Expected memory of a host in the coming week, if its hours are like this week’s"
            .into(),
        sentence: if low == high {
            format!(
                "At any hour, {} of a host’s memory is expected to be available.",
                bytes(low)
            )
        } else {
            format!(
                "The least available memory is expected on {}: {} per host on average. The most is expected on {}: {}.",
                hour(false),
                bytes(low),
                hour(true),
                bytes(high)
            )
        },
        key,
        height_px: 280,
        plot: Plot {
            times: Vec::new(),
            data,
            layout: layout()
                .x_axis(
                    axis()
                        .show_grid(false)
                        .range(vec![-1.0, 168.0])
                        .tick_values((0..7).map(|day| f64::from(day) * 24.0 + 12.0).collect())
                        .tick_text(
                            ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
                                .map(String::from)
                                .to_vec(),
                        )
                        .title("hour of the week"),
                )
                .y_axis(axis().title(unit.name).range_mode(RangeMode::ToZero)),
        },
    })
}

fn hour_names() -> Vec<String> {
    let days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    days.iter()
        .flat_map(|day| (0..24).map(move |hour| format!("{day} {hour}:00")))
        .collect()
}

/// A measure whose hours in the week before serve as a forecast of this week's hours.
struct Rule {
    label: String,
    measure: Measure,
    /// Pairs of forecast and observed value, by hour.
    hours: Vec<(f64, f64)>,
}

impl Rule {
    /// Mean absolute errors: of the forecast by hours, and of a single mean for all hours.
    fn errors(&self) -> (f64, f64) {
        let n = self.hours.len().max(1) as f64;
        let level = self.hours.iter().map(|(forecast, _)| forecast).sum::<f64>() / n;
        let error = |of: &dyn Fn(&(f64, f64)) -> f64| self.hours.iter().map(of).sum::<f64>() / n;
        (
            error(&|(forecast, came)| (forecast - came).abs()),
            error(&|(_, came)| (level - came).abs()),
        )
    }
}

/// Function that computes a value for each hour of the week from findings.
type Hours<'a> = Box<dyn Fn(&Findings) -> Week + 'a>;

fn rules(view: &View) -> Vec<Rule> {
    let Some(before) = view.before else {
        return Vec::new();
    };
    let mut measures: Vec<(String, Measure, Hours)> = vec![
        (
            "available memory of a host".into(),
            Measure::Bytes,
            Box::new(|f| memory(f, "available")),
        ),
        (
            "harvestable memory of a host".into(),
            Measure::Bytes,
            Box::new(|f| memory(f, "harvestable")),
        ),
        ("owner away".into(), Measure::Share, Box::new(idle)),
    ];
    if let Some(middle) = regions::middle(view.findings) {
        for (scope, until) in [(Scope::All, ""), (Scope::Idle, ", owner away")] {
            measures.push((
                format!("{} available{until}", size(middle)),
                Measure::Share,
                Box::new(move |f| region(f, scope, middle, |a| Some(a.available_share))),
            ));
        }
    }
    let rules = measures.into_iter().map(|(label, measure, of)| {
        let (earlier, now) = (of(before), of(view.findings));
        let hours = earlier
            .known()
            .filter_map(|(day, hour, forecast)| Some((forecast, now.at(day, hour)?)));
        Rule {
            label,
            measure,
            hours: hours.collect(),
        }
    });
    rules.filter(|r| r.hours.len() >= LEAST_HOURS).collect()
}

fn judgement(view: &View, rules: &[Rule]) -> Option<String> {
    let Some(first) = rules.first() else {
        return Some(
            "The quality of this forecast is not known yet: it takes two weeks to compare. One week has each hour only once."
                .into(),
        );
    };
    let (by_hour, flat) = first.errors();
    let verdict = if by_hour < 0.9 * flat {
        "so a forecast by hour is useful"
    } else if by_hour <= 1.1 * flat {
        "so a forecast by hour is hardly better than the week’s mean"
    } else {
        "so the week’s mean is the better forecast: do not plan by the hour"
    };
    Some(format!(
        "Quality of this forecast: as a forecast of this week, the hours of {} were off by {} on average for {}. The mean of the whole \
         week would have been off by {}, {verdict}. One pair of weeks is little evidence.",
        view.before_label(),
        first.measure.words(by_hour),
        first.label,
        first.measure.words(flat),
    ))
}

fn table(view: &View, rules: &[Rule]) -> Option<Table> {
    let rows = rules.iter().map(|rule| {
        let (by_hour, flat) = rule.errors();
        let cell = |value| match rule.measure {
            Measure::Bytes => Cell::bytes(value),
            // Errors of shares are shown in percentage points.
            _ => Cell::of(
                crate::page::table::Kind::Share,
                format!("{:.1}", 100.0 * value),
                "points",
                value,
            ),
        };
        vec![
            Cell::text(&rule.label),
            Cell::count(rule.hours.len() as i64),
            cell(by_hour),
            cell(flat),
        ]
    });
    Table::new(
        format!("{}coming-week-errors", view.prefix),
        format!(
            "Mean error of the hours of {} as a forecast of this week",
            view.before_label()
        ),
        vec![
            words("forecast of"),
            numbers("hours"),
            numbers("error by hour"),
            numbers("error by week’s mean"),
        ],
    )
    .with_rows(rows.collect())
}

/// Figure of forecast shares, grouped into tenths, against observed shares; absent without forecasts of
/// shares.
fn calibration(view: &View, rules: &[Rule]) -> Option<Figure> {
    let mut bins: [(f64, f64, usize); 10] = [(0.0, 0.0, 0); 10];
    let shares = rules.iter().filter(|r| r.measure == Measure::Share);
    for (forecast, came) in shares.flat_map(|r| &r.hours) {
        let bin = ((forecast * 10.0) as usize).min(9);
        bins[bin].0 += forecast;
        bins[bin].1 += came;
        bins[bin].2 += 1;
    }
    let points: Vec<(f64, f64, usize)> = bins
        .into_iter()
        .filter(|(_, _, n)| *n > 0)
        .map(|(forecast, came, n)| (forecast / n as f64, came / n as f64, n))
        .collect();
    let worst = points
        .iter()
        .filter(|(_, _, n)| *n >= 10)
        .max_by(|a, b| (a.0 - a.1).abs().total_cmp(&(b.0 - b.1).abs()))?;
    Some(Figure {
        id: format!("{}coming-week-calibration", view.prefix),
        title: format!(
            "Shares forecast from the hours of {}, and observed shares",
            view.before_label()
        ),
        sentence: format!(
            "Hours are grouped by the forecast share. On the dotted line, forecast and observed share are equal. Largest difference: {} forecast, {} observed.",
            share(worst.0),
            share(worst.1)
        ),
        key: Vec::new(),
        height_px: 320,
        plot: Plot {
            times: Vec::new(),
            data: vec![
                diagonal(),
                dots(
                    "size-1",
                    MarkerSymbol::Circle,
                    points
                        .iter()
                        .map(|(forecast, came, n)| {
                            (*forecast, *came, *n as f64, format!("{n} hours"))
                        })
                        .collect(),
                ),
            ],
            layout: calibration_layout("observed"),
        },
    })
}

/// Line on which forecast and observed share are equal.
pub(super) fn diagonal() -> Box<dyn Trace> {
    Scatter::new(vec![0.0, 100.0], vec![0.0, 100.0])
        .mode(Mode::Lines)
        .meta("traced")
        .line(Line::new().width(1.2).dash(DashType::Dot))
        .hover_info(plotly::common::HoverInfo::Skip)
}

/// Draws a dot for each point (forecast, observed, weight, basis). A larger weight gives a larger dot; the
/// basis is a text for hovering.
pub(super) fn dots(
    colour: &str,
    symbol: MarkerSymbol,
    points: Vec<(f64, f64, f64, String)>,
) -> Box<dyn Trace> {
    let most = points.iter().map(|p| p.2).fold(1.0, f64::max);
    let sizes = points
        .iter()
        .map(|p| (6.0 + 16.0 * (p.2 / most).sqrt()).round() as usize);
    let says = points.iter().map(|(forecast, came, _, rests_on)| {
        format!(
            "{} forecast, {} observed<br>{rests_on}",
            share(*forecast),
            share(*came)
        )
    });
    Scatter::new(
        points.iter().map(|p| percent(p.0)).collect(),
        points.iter().map(|p| percent(p.1)).collect(),
    )
    .mode(Mode::Markers)
    .meta(colour)
    .marker(
        Marker::new()
            .symbol(symbol)
            .opacity(0.8)
            .size_array(sizes.collect()),
    )
    .hover_text_array(says.collect::<Vec<String>>())
    .hover_template("%{hovertext}<extra></extra>")
}

pub(super) fn calibration_layout(came: &str) -> plotly::Layout {
    layout()
        .x_axis(
            axis()
                .title("forecast")
                .range(vec![-7.0, 107.0])
                .tick_suffix(" %"),
        )
        .y_axis(share_axis(came).range(vec![-7.0, 107.0]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::ask;
    use gleaner_schemas::findings::MemoryUsageByHour;

    const GIB: f64 = 1_073_741_824.0;

    fn weeks(value: impl Fn(i64, i64) -> f64) -> Findings {
        let hours = (1..=7).flat_map(|d| (0..24).map(move |h| (d, h)));
        Findings {
            memory_usage_by_hour: hours
                .map(|(weekday, hour)| MemoryUsageByHour {
                    size_class: "all".into(),
                    weekday,
                    hour,
                    category: "available".into(),
                    samples_count: 40,
                    mean_bytes: value(weekday, hour) * GIB,
                    min_bytes: 0,
                    mean_share: 0.5,
                })
                .collect(),
            ..Findings::default()
        }
    }

    fn said(now: &Findings, before: Option<&Findings>) -> String {
        let text = |part: &Part| match part {
            Part::Say(text) => text.clone(),
            Part::Figure(figure) => figure.sentence.clone(),
            Part::Table(table) => format!("{} rows", table.rows.len()),
            Part::Heading(text) => text.clone(),
        };
        let all: Vec<String> = ask(now, before, parts).iter().map(text).collect();
        all.join(" ").replace('\u{a0}', " ")
    }

    #[test]
    fn the_rule_is_judged_by_the_week_before() {
        let office = |_: i64, hour: i64| if (9..17).contains(&hour) { 4.0 } else { 10.0 };
        let now = weeks(office);
        let alike = weeks(|d, h| office(d, h) + 0.5);
        let text = said(&now, Some(&alike));
        assert!(
            text.starts_with(
                "The least available memory is expected on Monday from 9:00: 4.0 GiB per host"
            ),
            "{text}"
        );
        assert!(text.contains("were off by 512 MiB on average"), "{text}");
        assert!(text.contains("a forecast by hour is useful"), "{text}");
        let opposite = weeks(|d, h| 14.0 - office(d, h));
        assert!(said(&now, Some(&opposite)).contains("do not plan by the hour"));
    }

    #[test]
    fn one_week_alone_is_not_judged_and_a_day_is_no_week() {
        let now = weeks(|_, _| 8.0);
        assert!(said(&now, None).contains("is not known yet"));
        let mut day = now.clone();
        day.memory_usage_by_hour.retain(|m| m.weekday == 1);
        assert_eq!(said(&day, None), "");
    }
}
