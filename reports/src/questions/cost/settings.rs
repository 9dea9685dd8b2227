//! Memory that hosts would have lent under other limits, and the cost to owners.

use super::{MODES, decimal, mode_words};
use crate::change::share_words;
use crate::page::figure::{Figure, Key, Plot, Unit, axis, layout};
use crate::page::table::{Cell, Table, numbers, words};
use crate::view::View;
use crate::wording::{bytes, seconds, share};
use gleaner_schemas::findings::{Findings, LendingMode, Parameters, Scope, WhatIf};
use plotly::common::{DashType, HoverInfo, Line, Marker, MarkerSymbol, Mode};
use plotly::{Scatter, Trace};

/// Cost of a setting to owners: the memory context if footprints are known, otherwise the memory reclaimed.
#[derive(Clone, Copy)]
struct Cost {
    is_context: bool,
}

impl Cost {
    fn of(findings: &Findings) -> Self {
        Self {
            is_context: findings
                .what_if
                .iter()
                .any(|w| w.memory_context_bytes_per_host_day.is_some()),
        }
    }

    fn bytes(self, setting: &WhatIf) -> Option<f64> {
        if self.is_context {
            setting.memory_context_bytes_per_host_day
        } else {
            Some(setting.reclaimed_bytes_per_host_day)
        }
    }

    const fn words(self) -> &'static str {
        if self.is_context {
            "to page in again per host and day"
        } else {
            "reclaimed per host and day"
        }
    }
}

/// Maximum cost that the figure shows at first, as a multiple of the highest cost among the best settings.
const ROOM: f64 = 1.25;

/// The settings with a known cost, each once, in the order of the analysis.
fn settings(f: &Findings) -> Vec<&WhatIf> {
    let cost = Cost::of(f);
    let mut seen = std::collections::HashSet::new();
    f.what_if
        .iter()
        .filter(|w| cost.bytes(w).is_some())
        .filter(|w| seen.insert((w.mode, setting_words(w, &f.parameters))))
        .collect()
}

fn is_default(setting: &WhatIf) -> bool {
    setting.varied == "none"
}

/// Words for a setting: `idle after 10 min, headroom 5 %`, and every other limit that differs from the
/// current one.
fn setting_words(w: &WhatIf, today: &Parameters) -> String {
    let mut said = Vec::new();
    if w.scope == Scope::Idle {
        said.push(format!("idle after {}", seconds(w.idle_after_s)));
        match w.load_limit {
            None => said.push("any load".into()),
            Some(limit) if (limit - today.load_limit).abs() > 1e-9 => {
                said.push(format!("load below {limit}"));
            }
            Some(_) => {}
        }
        if w.minimum_idle_s > 0.0 {
            said.push(format!(
                "lending starts {} later",
                seconds(w.minimum_idle_s)
            ));
        }
    } else {
        said.push("idle or not".into());
    }
    let percent = (w.headroom_share * 1000.0).round() / 10.0;
    said.push(format!("headroom {percent}\u{a0}%"));
    said.join(", ")
}

/// Figure of memory gained against cost: each setting is a mark, and a line joins the best settings.
pub(super) fn figure(view: &View) -> Option<Figure> {
    let f = view.findings;
    let cost = Cost::of(f);
    let all = settings(f);
    let cost_of = |w: &WhatIf| cost.bytes(w).unwrap_or(0.0);
    // Settings that lend less at many times the best settings' cost are visible only after zooming out.
    let told = all.iter().filter(|w| w.is_on_frontier || is_default(w));
    let most = ROOM * told.map(|w| cost_of(w)).reduce(f64::max)?;
    let beyond = all.iter().filter(|w| cost_of(w) > most && most > 0.0);
    let beyond = beyond.count() as i64;
    let unit = Unit::of(most);
    let mut data: Vec<Box<dyn Trace>> = Vec::new();
    let mut key = Vec::new();
    let at = |list: &[&WhatIf]| -> (Vec<f64>, Vec<f64>) {
        list.iter()
            .map(|w| {
                (
                    unit.number(cost_of(w)),
                    (w.quota_share * 1000.0).round() / 10.0,
                )
            })
            .unzip()
    };
    for (mode, colour, symbol, mark, label) in [
        (
            LendingMode::Paper,
            "size-1",
            MarkerSymbol::Circle,
            "dot",
            "paper’s policy",
        ),
        (
            LendingMode::Gentle,
            "size-3",
            MarkerSymbol::Diamond,
            "diamond",
            "gentle policy",
        ),
    ] {
        let of_mode: Vec<&WhatIf> = all.iter().copied().filter(|w| w.mode == mode).collect();
        if of_mode.is_empty() {
            continue;
        }
        for scope in [Scope::Idle, Scope::All] {
            let mut best: Vec<&WhatIf> = of_mode
                .iter()
                .copied()
                .filter(|w| w.is_on_frontier && w.scope == scope)
                .collect();
            if best.len() < 2 {
                continue;
            }
            best.sort_by(|a, b| cost_of(a).total_cmp(&cost_of(b)));
            let (x, y) = at(&best);
            data.push(
                Scatter::new(x, y)
                    .mode(Mode::Lines)
                    .meta(colour)
                    .line(Line::new().width(1.6).dash(DashType::Dash))
                    .hover_info(HoverInfo::Skip),
            );
        }
        let (x, y) = at(&of_mode);
        let says = of_mode.iter().map(|w| {
            format!(
                "{}{}<br>lends {} of memory<br>{} {}<br>{:.1} reclaims per host and day",
                setting_words(w, &f.parameters),
                if is_default(w) { " (current)" } else { "" },
                share(w.quota_share),
                bytes(cost_of(w)),
                cost.words(),
                w.reclaims_per_host_day
            )
        });
        data.push(
            Scatter::new(x, y)
                .mode(Mode::Markers)
                .meta(colour)
                .marker(Marker::new().size(8).symbol(symbol).opacity(0.8))
                .hover_text_array(says.collect::<Vec<String>>())
                .hover_template("%{hovertext}<extra></extra>"),
        );
        key.push(Key {
            colour,
            mark,
            label: label.into(),
            value: String::new(),
        });
    }
    let today: Vec<&WhatIf> = all.iter().copied().filter(|w| is_default(w)).collect();
    if !today.is_empty() {
        let (x, y) = at(&today);
        data.push(
            Scatter::new(x, y)
                .mode(Mode::Markers)
                .meta("idle")
                .marker(
                    Marker::new()
                        .size(18)
                        .symbol(MarkerSymbol::CircleOpen)
                        .line(Line::new().width(2.0)),
                )
                .hover_info(HoverInfo::Skip),
        );
        key.push(Key {
            colour: "idle",
            mark: "ring",
            label: "current limits".into(),
            value: String::new(),
        });
    }
    key.push(Key {
        colour: "idle",
        mark: "dash",
        label: "best limits: none lends more at the same or a lower cost".into(),
        value: String::new(),
    });
    Some(Figure {
        id: format!("{}settings", view.prefix),
        title: "Other limits: memory lent, and its cost".into(),
        sentence: sentence(view, &all, cost) + &beyond_words(beyond),
        key,
        height_px: 380,
        plot: Plot {
            times: Vec::new(),
            data,
            layout: layout()
                .x_axis(
                    axis()
                        .title(format!("{}, {}", cost.words(), unit.name))
                        .range(vec![
                            -0.02 * unit.number(most),
                            unit.number(most).max(0.001),
                        ])
                        .tick_format(",~r"),
                )
                .y_axis(axis().title("lent, of all memory").tick_suffix(" %")),
        },
    })
}

fn beyond_words(beyond: i64) -> String {
    match beyond {
        0 => String::new(),
        1 => " One setting costs much more than the best and is beyond the right edge.".into(),
        n => format!(" {n} settings cost much more than the best and are beyond the right edge."),
    }
}

fn sentence(view: &View, all: &[&WhatIf], cost: Cost) -> String {
    let f = view.findings;
    let cost_of = |w: &WhatIf| cost.bytes(w).unwrap_or(0.0);
    let caution = "These figures assume that lending does not change the owners’ behaviour.";
    let Some(today) = all.iter().find(|w| is_default(w)) else {
        return format!("{} limits were tried. {caution}", all.len());
    };
    let before = view.before.and_then(|b| {
        let mut all = b.what_if.iter();
        all.find(|w| is_default(w) && w.mode == today.mode)
    });
    let change = before.map(
        |b| match share_words(today.quota_share, b.quota_share).as_str() {
            "no change" => format!(" (as in {})", view.before_label()),
            words => format!(" ({words} than in {})", view.before_label()),
        },
    );
    let better = all
        .iter()
        .filter(|w| {
            w.mode == today.mode
                && w.scope == today.scope
                && w.quota_share > today.quota_share + 0.001
                && cost_of(w) <= cost_of(today)
        })
        .max_by(|a, b| a.quota_share.total_cmp(&b.quota_share));
    let advice = match better {
        Some(w) => format!(
            "To lend more at no higher cost: {}, which lends {} at {}.",
            setting_words(w, &f.parameters),
            share(w.quota_share),
            bytes(cost_of(w))
        ),
        None => "No other limits that were tried lend more at the same or a lower cost.".into(),
    };
    format!(
        "The current limits ({}) lend {} of all memory over the week{} at {} {}. {advice} {caution}",
        setting_words(today, &f.parameters),
        share(today.quota_share),
        change.unwrap_or_default(),
        bytes(cost_of(today)),
        cost.words()
    )
}

/// Table of the best settings, and of the current one.
pub(super) fn table(view: &View) -> Option<Table> {
    let f = view.findings;
    let cost = Cost::of(f);
    let mut shown: Vec<&WhatIf> = f
        .what_if
        .iter()
        .filter(|w| w.is_on_frontier || is_default(w))
        .collect();
    shown.sort_by(|a, b| {
        let rank = |w: &WhatIf| (w.mode == LendingMode::Gentle, w.scope == Scope::All);
        rank(a)
            .cmp(&rank(b))
            .then(b.quota_share.total_cmp(&a.quota_share))
    });
    let mut seen = std::collections::HashSet::new();
    shown.retain(|w| seen.insert((w.mode, setting_words(w, &f.parameters))));
    let rows = shown.into_iter().map(|w| {
        let today = match (is_default(w), w.is_on_frontier) {
            (true, true) => "current, best",
            (true, false) => "current",
            _ => "best",
        };
        vec![
            Cell::text(setting_words(w, &f.parameters)),
            Cell::text(mode_words(w.mode)),
            Cell::text(today),
            Cell::share(w.quota_share),
            Cell::bytes(w.mean_quota_bytes),
            decimal(w.reclaims_per_host_day),
            Cell::bytes(w.reclaimed_bytes_per_host_day),
            Cell::or_absent(w.memory_context_bytes_per_host_day, Cell::bytes),
        ]
    });
    let table = Table::new(
        format!("{}settings-table", view.prefix),
        "The best limits, and the current ones",
        vec![
            words("limits"),
            words("policy"),
            words("status"),
            numbers("lent, of memory"),
            numbers("lent per host"),
            numbers("reclaims per day"),
            numbers("reclaimed per day"),
            numbers("to page in per day"),
        ],
    )
    .with_rows(rows.collect())?;
    Some(table.with_note(format!(
        "Best: no other limits of the same kind lend more with the same or less memory {}. All figures are per host, over the time observed. {MODES}",
        cost.words()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::ask as of;

    fn setting(varied: &str, quota_share: f64, context: Option<f64>) -> WhatIf {
        WhatIf {
            varied: varied.into(),
            idle_after_s: 300.0,
            load_limit: Some(0.3),
            headroom_share: 0.15,
            minimum_idle_s: 0.0,
            scope: Scope::Idle,
            mode: LendingMode::Paper,
            hosts_count: 3,
            observed_s: 1e6,
            mean_quota_bytes: 1e9,
            quota_share,
            reclaims_per_host_day: 4.0,
            mean_reclaimed_bytes: None,
            reclaimed_bytes_per_host_day: 8e9,
            mean_memory_context_bytes: None,
            p99_memory_context_bytes: None,
            memory_context_bytes_per_host_day: context,
            is_on_frontier: varied != "none",
        }
    }

    #[test]
    fn limits_are_told_in_words_and_better_ones_named() {
        let any_load = WhatIf {
            load_limit: None,
            ..setting("load_limit", 0.5, Some(2.0 * 1_048_576.0))
        };
        let findings = Findings {
            what_if: vec![setting("none", 0.4, Some(8.0 * 1_048_576.0)), any_load],
            ..Findings::default()
        };
        let figure = of(&findings, None, figure).unwrap();
        let said = figure.sentence.replace('\u{a0}', " ");
        assert!(said.starts_with("The current limits (idle after 5 min, headroom 15 %) lend 40 % of all memory over the week at 8.0 MiB"), "{said}");
        assert!(said.contains("no higher cost: idle after 5 min, any load, headroom 15 %, which lends 50 % at 2.0 MiB."), "{said}");
        assert_eq!(of(&findings, None, table).unwrap().rows.len(), 2);
    }

    #[test]
    fn where_no_footprint_is_known_the_cost_is_what_is_taken_back() {
        let findings = Findings {
            what_if: vec![setting("none", 0.4, None), setting("none", 0.4, None)],
            ..Findings::default()
        };
        let figure = of(&findings, None, figure).unwrap();
        assert!(figure.sentence.contains("reclaimed per host and day"));
        assert_eq!(
            of(&findings, None, settings_count),
            1,
            "the same setting counts once"
        );
        assert!(of(&Findings::default(), None, super::figure).is_none());
    }

    fn settings_count(view: &View) -> usize {
        settings(view.findings).len()
    }
}
