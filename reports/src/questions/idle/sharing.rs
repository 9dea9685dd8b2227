//! Distribution of available memory over hosts, and savings if hosts share their memory.

use crate::page::figure::{Figure, Key, Plot, axis, layout};
use crate::page::table::{Cell, Table, numbers};
use crate::view::View;
use crate::wording::{bytes, count, share, thousands};
use gleaner_schemas::findings::{Peak, PoolingSaving, RankContribution, Scope};
use plotly::common::{DashType, Line, Mode};
use plotly::{Scatter, Trace};

/// Share of available memory that the sentence is about.
const HALF: f64 = 0.5;

fn percent(share: f64) -> f64 {
    (share * 1000.0).round() / 10.0
}

/// Figure of the share of available memory on the hosts that have most of it.
pub(super) fn ranks(view: &View) -> Option<Figure> {
    let ranks = |findings: &'_ gleaner_schemas::findings::Findings| -> Vec<RankContribution> {
        let of_all = findings.contribution_by_rank.iter();
        of_all.filter(|r| r.scope == Scope::All).cloned().collect()
    };
    let now = ranks(view.findings);
    if now.len() < 3 {
        return None;
    }
    let line = |ranks: &[RankContribution], label: &str, colour: &str, dash, mode| {
        let x = |r: &RankContribution| percent(r.hosts_share);
        let y = |r: &RankContribution| percent(r.available_share);
        Scatter::new(
            std::iter::once(0.0).chain(ranks.iter().map(x)).collect(),
            std::iter::once(0.0).chain(ranks.iter().map(y)).collect(),
        )
        .mode(mode)
        .name(label)
        .meta(colour)
        .hover_template("%{x:.0f} % of hosts: %{y:.0f} % of the available memory<extra></extra>")
        .line(Line::new().width(2.2).dash(dash))
    };
    let even = Scatter::new(vec![0.0, 100.0], vec![0.0, 100.0])
        .mode(Mode::Lines)
        .name("if all hosts had equally much")
        .meta("rule")
        .hover_template("<extra></extra>")
        .line(Line::new().width(1.2));
    let mut data: Vec<Box<dyn Trace>> = vec![even];
    let mut key = vec![Key {
        colour: "available-line",
        mark: "line",
        label: "hosts, largest amount first".into(),
        value: String::new(),
    }];
    let before = view.before.map(ranks).unwrap_or_default();
    if before.len() >= 3 {
        let label = view.before_label();
        data.push(line(&before, label, "soft", DashType::Dot, Mode::Lines));
        key.push(Key {
            colour: "soft",
            mark: "dot-line",
            label: label.to_owned(),
            value: String::new(),
        });
    }
    data.push(line(
        &now,
        "this period",
        "available-line",
        DashType::Solid,
        Mode::LinesMarkers,
    ));
    key.push(Key {
        colour: "rule",
        mark: "line",
        label: "if all hosts had equally much".into(),
        value: String::new(),
    });
    let percent_axis = |title: &str| {
        axis()
            .title(title)
            .range(vec![0.0, 101.0])
            .tick_values(vec![0.0, 25.0, 50.0, 75.0, 100.0])
            .tick_suffix(" %")
    };
    Some(Figure {
        id: format!("{}contribution", view.prefix),
        title: "Distribution of the available memory over the hosts".into(),
        sentence: spread_sentence(&now),
        key,
        height_px: 300,
        plot: Plot {
            times: Vec::new(),
            data,
            layout: layout()
                .x_axis(percent_axis("share of the hosts"))
                .y_axis(percent_axis("share of available memory")),
        },
    })
}

/// Sentence on the distribution: `6 of 29 hosts have half of it.`
fn spread_sentence(ranks: &[RankContribution]) -> String {
    let all = ranks.iter().map(|r| r.hosts_count).max().unwrap_or(0);
    match ranks.iter().find(|r| r.available_share >= HALF) {
        Some(r) => format!(
            "{} of {} ({}) had {} of all available memory.",
            thousands(r.hosts_count),
            count(all, "host"),
            share(r.hosts_share),
            share(r.available_share)
        ),
        None => String::new(),
    }
}

fn of_peak<'a>(view: &View<'a>, peak: Peak) -> impl Iterator<Item = &'a PoolingSaving> {
    view.findings.pooling.iter().filter(move |p| p.peak == peak)
}

/// Sentence on the savings if all hosts shared their memory.
pub(super) fn pooling_sentence(view: &View) -> Option<String> {
    let widest = |peak| of_peak(view, peak).max_by_key(|p| p.pool_hosts_count);
    let all = widest(Peak::Max).filter(|p| p.pool_hosts_count > 1)?;
    Some(format!(
        "If the {} had shared their memory, {} would have been enough. With enough memory in each host for its own peak, it takes {}: \
         sharing saves {}. This assumes that sharing itself needs no memory.",
        count(all.pool_hosts_count, "host"),
        bytes(all.peak_of_sums_bytes),
        bytes(all.sum_of_peaks_bytes as f64),
        share(all.saved_share),
    ))
}

/// Table of the savings by pool size.
pub(super) fn pooling(view: &View) -> Option<Table> {
    let rows = of_peak(view, Peak::Max)
        .filter(|p| p.pool_hosts_count > 1)
        .map(|most| {
            let usual =
                of_peak(view, Peak::P99).find(|p| p.pool_hosts_count == most.pool_hosts_count);
            vec![
                Cell::count(most.pool_hosts_count),
                Cell::bytes(most.sum_of_peaks_bytes as f64),
                Cell::bytes(most.peak_of_sums_bytes),
                Cell::share(most.saved_share).bar(most.saved_share),
                Cell::or_absent(usual, |p| Cell::share(p.saved_share)),
            ]
        });
    Table::new(
        format!("{}pooling", view.prefix),
        "Memory saved if hosts shared their memory",
        vec![
            numbers("hosts in a pool"),
            numbers("sum of the hosts’ peaks"),
            numbers("peak if shared"),
            numbers("saved"),
            numbers("saved, at 99 % of moments"),
        ],
    )
    .with_rows(rows.collect())
}
