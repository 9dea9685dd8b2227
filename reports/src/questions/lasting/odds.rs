//! Odds that memory stays available for a time.

use super::axes::log_time_axis;
use super::regions::{self, odds_of, pooled};
use crate::change::share_words;
use crate::page::figure::{Figure, Key, Plot, axis, layout};
use crate::page::table::{Cell, Table, numbers, words};
use crate::view::View;
use crate::wording::{list, seconds, share, size};
use gleaner_schemas::findings::{AvailabilityOdds, Findings, Scope};
use plotly::common::{DashType, Fill, Line, Marker, MarkerSymbol, Mode};
use plotly::{Scatter, Trace};

/// Colour, symbol and mark in the key for each size of regions, the middle size first.
pub(super) const SIZES: [(&str, MarkerSymbol, &str); 3] = [
    ("size-1", MarkerSymbol::Circle, "dot"),
    ("size-2", MarkerSymbol::Square, "area"),
    ("size-3", MarkerSymbol::Diamond, "diamond"),
];

/// Horizons that tables and bars show, in s.
const TOLD_S: [f64; 5] = [600.0, 3600.0, 14_400.0, 43_200.0, 86_400.0];

pub(super) const HOUR_S: f64 = 3600.0;
const DAY_S: f64 = 86_400.0;

/// Answer for the middle size, an hour and a day later, compared with the week before. Absent without odds.
pub(super) fn answer(view: &View) -> Option<String> {
    let f = view.findings;
    let region = regions::middle(f)?;
    let of = |scope, ahead_s| odds_of(f, scope, region, ahead_s);
    let first = pooled(f).find(|o| o.scope == Scope::All && o.region_bytes == region);
    let hour = of(Scope::All, HOUR_S).or(first)?;
    let mut text = format!(
        "A region of {} that is available now is still available {} later with a probability of {}{}",
        size(region),
        seconds(hour.ahead_s),
        share(hour.available_probability),
        interval(hour).unwrap_or_default()
    );
    if let Some(day) = of(Scope::All, DAY_S).filter(|_| hour.ahead_s < DAY_S) {
        text.push_str(&format!(
            " and a day later with {}",
            share(day.available_probability)
        ));
    }
    text.push_str(", whether or not the owner is away");
    let before = view
        .before
        .and_then(|b| odds_of(b, Scope::All, region, hour.ahead_s));
    if let Some(before) = before {
        text.push_str(&format!(
            "; the probability for {} is {}",
            seconds(hour.ahead_s),
            change(
                view,
                hour.available_probability,
                before.available_probability
            )
        ));
    }
    text.push('.');
    if let Some(idle) = of(Scope::Idle, hour.ahead_s) {
        text.push_str(&format!(
            " If it is lent only while the owner is away, it stays available for {} with {}",
            seconds(idle.ahead_s),
            share(idle.available_probability)
        ));
        let before = view
            .before
            .and_then(|b| odds_of(b, Scope::Idle, region, idle.ahead_s));
        if let Some(before) = before {
            let change = change(
                view,
                idle.available_probability,
                before.available_probability,
            );
            text.push_str(&format!(", {change}"));
        }
        text.push('.');
    }
    Some(text)
}

/// Words for a change: `1.2 points less than in the week before`, `as in the week before`.
fn change(view: &View, now: f64, before: f64) -> String {
    match share_words(now, before).as_str() {
        "no change" => format!("as in {}", view.before_label()),
        words => format!("{words} than in {}", view.before_label()),
    }
}

/// Interval in words: ` (94 to 98 %)`.
fn interval(odds: &AvailabilityOdds) -> Option<String> {
    let (low, high) = (odds.low?, odds.high?);
    Some(format!(" ({} to {})", share(low), share(high)))
}

/// Figure of the odds over the horizon, one line per region size and scope; absent without odds.
pub(super) fn figure(view: &View) -> Option<Figure> {
    let f = view.findings;
    let regions = regions::shown(f);
    let middle = *regions.first()?;
    let mut data: Vec<Box<dyn Trace>> = Vec::new();
    let of = |scope, region| -> Vec<&AvailabilityOdds> {
        let mut points: Vec<_> = pooled(f)
            .filter(|o| o.scope == scope && o.region_bytes == region)
            .collect();
        points.sort_by(|a, b| a.ahead_s.total_cmp(&b.ahead_s));
        points
    };
    let middle_points = of(Scope::All, middle);
    let limits: Vec<(f64, f64, f64)> = middle_points
        .iter()
        .filter_map(|o| Some((o.ahead_s, o.low?, o.high?)))
        .collect();
    let mut key = Vec::new();
    if limits.len() > 1 {
        data.push(band(&limits));
    }
    for (region, (colour, symbol, mark)) in regions.iter().zip(SIZES) {
        key.push(Key {
            colour,
            mark,
            label: size(*region),
            value: String::new(),
        });
        for (scope, dash) in [(Scope::All, DashType::Solid), (Scope::Idle, DashType::Dash)] {
            let points = of(scope, *region);
            if points.is_empty() {
                continue;
            }
            let trace = Scatter::new(
                points.iter().map(|o| o.ahead_s).collect(),
                points
                    .iter()
                    .map(|o| percent(o.available_probability))
                    .collect(),
            )
            .mode(Mode::LinesMarkers)
            .name(size(*region))
            .meta(colour)
            .line(Line::new().width(2.0).dash(dash))
            .marker(Marker::new().size(7).symbol(symbol.clone()))
            .hover_text_array(points.iter().map(|o| hover(o)).collect::<Vec<String>>())
            .hover_template("%{hovertext}<extra></extra>");
            data.push(trace);
        }
    }
    let idle = pooled(f).any(|o| o.scope == Scope::Idle);
    key.extend(scope_keys(idle));
    if limits.len() > 1 {
        key.push(Key {
            colour: "size-1-range",
            mark: "band",
            label: format!("95 % interval of {}", size(middle)),
            value: String::new(),
        });
    }
    let (from_s, to_s) = ends(pooled(f).map(|o| o.ahead_s))?;
    let gone = regions.iter().filter_map(|region| {
        let last = *of(Scope::All, *region).last()?;
        Some(format!(
            "{} after {} for {}",
            share(last.available_probability),
            seconds(last.ahead_s),
            size(*region)
        ))
    });
    Some(Figure {
        id: format!("{}odds", view.prefix),
        title: "Probability that memory available now is still available later".into(),
        sentence: format!(
            "Based on all moments with a known outcome: {}.",
            list(&gone.collect::<Vec<String>>())
        ),
        key,
        height_px: 380,
        plot: Plot {
            times: Vec::new(),
            data,
            layout: layout()
                .x_axis(log_time_axis("time later", from_s / 1.2, to_s * 1.2))
                .y_axis(share_axis("still available")),
        },
    })
}

/// Entries of the key that explain solid and dashed lines.
pub(super) fn scope_keys(idle: bool) -> Vec<Key> {
    let entry = |mark, label: &str| Key {
        colour: "idle",
        mark,
        label: label.into(),
        value: String::new(),
    };
    if idle {
        vec![
            entry("line", "owner present or away"),
            entry("dash", "until the owner returns"),
        ]
    } else {
        Vec::new()
    }
}

/// Area between low and high limits, drawn behind the lines.
pub(super) fn band(limits: &[(f64, f64, f64)]) -> Box<dyn Trace> {
    let there = limits.iter().map(|(x, low, _)| (*x, percent(*low)));
    let back = limits.iter().rev().map(|(x, _, high)| (*x, percent(*high)));
    let (x, y): (Vec<f64>, Vec<f64>) = there.chain(back).unzip();
    Scatter::new(x, y)
        .mode(Mode::Lines)
        .fill(Fill::ToSelf)
        .meta("size-1-range")
        .line(Line::new().width(0.0))
        .hover_info(plotly::common::HoverInfo::Skip)
}

pub(super) fn share_axis(title: &str) -> plotly::layout::Axis {
    axis()
        .title(title)
        .range(vec![0.0, 102.0])
        .tick_suffix(" %")
}

pub(super) fn percent(share: f64) -> f64 {
    (share * 1000.0).round() / 10.0
}

pub(super) fn ends(of: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    of.fold(None, |ends, x| {
        let (low, high) = ends.unwrap_or((x, x));
        Some((x.min(low), x.max(high)))
    })
}

fn hover(odds: &AvailabilityOdds) -> String {
    format!(
        "{}, {}<br>{} later: {}{}",
        size(odds.region_bytes),
        scope_words(odds.scope),
        seconds(odds.ahead_s),
        share(odds.available_probability),
        interval(odds).unwrap_or_default()
    )
}

pub(super) const fn scope_words(scope: Scope) -> &'static str {
    match scope {
        Scope::All => "owner present or away",
        Scope::Idle => "until the owner returns",
    }
}

/// Cell of a table's column `time`, which states the scope.
pub(super) fn scope_cell(scope: Scope) -> Cell {
    Cell::text(match scope {
        Scope::All => "all",
        Scope::Idle => "idle",
    })
}

/// Note below tables that have the column `time`.
pub(super) const SCOPE_NOTE: &str =
    "Time: “all” is all time; “idle” is idle time only, and the owner’s return counts as a loss.";

/// Table of the odds of some sizes at a few horizons, with the change for one hour.
pub(super) fn table(view: &View) -> Option<Table> {
    let f = view.findings;
    let shown = regions::shown(f);
    let mut kinds: Vec<(Scope, i64)> = pooled(f)
        .map(|o| (o.scope, o.region_bytes))
        .filter(|(_, region)| shown.contains(region))
        .collect();
    kinds.sort_unstable_by_key(|(scope, region)| (*scope == Scope::Idle, *region));
    kinds.dedup();
    let idle = kinds.iter().any(|(scope, _)| *scope == Scope::Idle);
    let told: Vec<(f64, &'static str)> = TOLD_S
        .into_iter()
        .zip([
            "10 min later",
            "1 h later",
            "4 h later",
            "12 h later",
            "1 d later",
        ])
        .filter(|(ahead_s, _)| pooled(f).any(|o| o.ahead_s == *ahead_s))
        .collect();
    let changed = view
        .before
        .is_some_and(|b| pooled(b).any(|o| o.ahead_s == HOUR_S));
    let mut columns = vec![numbers("region")];
    columns.extend(idle.then(|| words("time")));
    columns.extend(told.iter().map(|(_, label)| numbers(*label)));
    columns.extend(changed.then(|| numbers("change at 1 h")));
    let rows = kinds.into_iter().map(|(scope, region)| {
        let mut row = vec![Cell::size(region)];
        row.extend(idle.then(|| scope_cell(scope)));
        row.extend(told.iter().map(|(ahead_s, _)| {
            Cell::or_absent(odds_of(f, scope, region, *ahead_s), |o| {
                Cell::share(o.available_probability)
            })
        }));
        row.extend(changed.then(|| {
            let hour = |f| odds_of(f, scope, region, HOUR_S);
            let both = hour(f).zip(view.before.and_then(hour));
            Cell::or_absent(both, |(now, before)| {
                Cell::share_change(now.available_probability - before.available_probability)
            })
        }));
        row
    });
    let table = Table::new(
        format!("{}odds-table", view.prefix),
        "Probability that memory available now is still available later",
        columns,
    )
    .with_rows(rows.collect())?;
    Some(table.with_note(
        format!(
            "Based on all moments at which a region of the size was available and whose outcome is known. Memory on a host that sleeps, \
             is switched off or stops sending samples counts as lost. {}",
            if idle { SCOPE_NOTE } else { "" }
        )
        .trim_end(),
    ))
}

/// All odds; those of the region size that sentences use come first.
pub(super) fn in_order(f: &Findings) -> Vec<&AvailabilityOdds> {
    let middle = regions::middle(f);
    let mut sorted: Vec<&AvailabilityOdds> = pooled(f).collect();
    let rank = |o: &AvailabilityOdds| {
        (
            Some(o.region_bytes) != middle,
            o.region_bytes,
            o.scope == Scope::Idle,
        )
    };
    sorted.sort_by(|a, b| rank(a).cmp(&rank(b)).then(a.ahead_s.total_cmp(&b.ahead_s)));
    sorted
}

/// Number of odds that the page shows: the first ones that have the same size and scope.
pub(super) fn first_kind(sorted: &[&AvailabilityOdds]) -> usize {
    let kind = |o: &AvailabilityOdds| (o.region_bytes, o.scope);
    let first = sorted.first().map(|o| kind(o));
    sorted.iter().take_while(|o| Some(kind(o)) == first).count()
}

/// Table of all odds, with their intervals, changes and observed times.
pub(super) fn intervals(view: &View) -> Option<Table> {
    let sorted = in_order(view.findings);
    let before = view.before.filter(|b| pooled(b).next().is_some());
    let mut columns = vec![
        numbers("region"),
        words("time"),
        numbers("later"),
        numbers("still available"),
        numbers("lower limit"),
        numbers("upper limit"),
    ];
    columns.extend(before.map(|_| numbers("change")));
    columns.push(numbers("observed time"));
    let rows = sorted.iter().map(|o| {
        let mut row = vec![
            Cell::size(o.region_bytes),
            scope_cell(o.scope),
            Cell::seconds(o.ahead_s),
            Cell::share(o.available_probability),
            Cell::or_absent(o.low, Cell::share),
            Cell::or_absent(o.high, Cell::share),
        ];
        row.extend(before.map(|b| {
            let earlier = odds_of(b, o.scope, o.region_bytes, o.ahead_s);
            Cell::or_absent(earlier, |b| {
                Cell::share_change(o.available_probability - b.available_probability)
            })
        }));
        row.push(Cell::seconds(o.observed_s));
        row
    });
    let mut table = Table::new(
        format!("{}odds-intervals", view.prefix),
        "The same probabilities at every time, with 95 % intervals",
        columns,
    )
    .with_rows(rows.collect())?;
    table.rows_shown = first_kind(&sorted);
    Some(table.with_note(
        "Interval: how other, similar hosts would differ (bootstrap over hosts); with few hosts it is too narrow. Observed time: time \
         during which the region was available and its outcome is known.",
    ))
}

/// Returns true if there are odds of idle time.
pub(super) fn idle_is_known(findings: &Findings) -> bool {
    pooled(findings).any(|o| o.scope == Scope::Idle)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::view::ask;
    use gleaner_schemas::findings::Notion;

    pub(in crate::questions::lasting) fn odds() -> AvailabilityOdds {
        AvailabilityOdds {
            size_class: "all".into(),
            scope: Scope::All,
            notion: Notion::Available,
            region_bytes: 4 << 30,
            ahead_s: 3600.0,
            observed_s: 1e6,
            available_probability: 0.9,
            low: Some(0.85),
            high: Some(0.94),
            lost_to_owner_probability: 0.0,
            lost_to_load_probability: 0.0,
            lost_to_memory_probability: 0.06,
            lost_to_sleep_or_power_probability: 0.04,
            lost_to_network_probability: 0.0,
            lost_to_agent_probability: 0.0,
        }
    }

    #[test]
    fn the_answer_has_odds_their_interval_and_the_change() {
        let mut now = Findings::default();
        assert_eq!(ask(&now, None, answer), None);
        now.availability_odds = vec![
            odds(),
            AvailabilityOdds {
                scope: Scope::Idle,
                available_probability: 0.4,
                ..odds()
            },
        ];
        let plain = |text: Option<String>| text.unwrap().replace('\u{a0}', " ");
        assert_eq!(
            plain(ask(&now, None, answer)),
            "A region of 4 GiB that is available now is still available 1 h later with a probability of 90 % (85 % to 94 %), whether or \
             not the owner is away. If it is lent only while the owner is away, it stays available for 1 h with 40 %."
        );
        let mut before = now.clone();
        before.availability_odds[0].available_probability = 0.95;
        let changed = plain(ask(&now, Some(&before), answer));
        assert!(changed.contains("5.0 points less"), "{changed}");
    }

    #[test]
    fn the_table_has_the_change_only_where_a_week_before_is_known() {
        let now = Findings {
            availability_odds: vec![odds()],
            ..Findings::default()
        };
        let alone = ask(&now, None, table).unwrap();
        assert_eq!(alone.keys(), ["region_bytes", "1_h_later_share"]);
        let both = ask(&now, Some(&now), table).unwrap();
        assert_eq!(both.keys()[2], "change_at_1_h_share");
        assert_eq!(both.rows[0][2].value, Some(0.0));
    }
}
