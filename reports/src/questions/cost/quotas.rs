//! Memory that could have been lent over the week, by all hosts together and by each host.

use super::{MODES, decimal};
use crate::fleet::{earlier_points, mean, runs};
use crate::page::figure::{Figure, Key, Plot, Unit, axis, layout, time_axis};
use crate::page::table::{Cell, Table, numbers, words};
use crate::view::View;
use crate::wording::bytes;
use gleaner_schemas::findings::{ClusterPoint, Findings, LendingMode, MemoryContext, Reclaims};
use plotly::common::{Line, Mode};
use plotly::layout::{HoverMode, RangeMode};
use plotly::{Scatter, Trace};
use std::collections::HashMap;

/// Function that returns one value of a point of all hosts together.
type PointValue = fn(&ClusterPoint) -> Option<f64>;

const PAPER: PointValue = |p| p.idle_paper_quota_bytes;
const GENTLE: PointValue = |p| p.idle_harvestable_bytes;

/// Figure of the memory that could have been lent over the week, with a pale line for the week before. Absent
/// if no host's idle periods are known.
pub(super) fn figure(view: &View) -> Option<Figure> {
    let points = &view.findings.cluster_over_time;
    let (first_ms, last_ms) = (points.first()?.time_ms, points.last()?.time_ms);
    let largest = |of: PointValue| points.iter().filter_map(of).reduce(f64::max);
    let (most, of) = match largest(PAPER) {
        Some(most) => (most, PAPER),
        None => (largest(GENTLE)?, GENTLE),
    };
    let unit = Unit::of(most);
    let mut times: Vec<Vec<i64>> = Vec::new();
    let mut data: Vec<Box<dyn Trace>> = Vec::new();
    let mut key = Vec::new();
    let mut add = |points: &[ClusterPoint], of: PointValue, shift_ms: i64, colour, label: &str| {
        if points.iter().all(|p| of(p).is_none()) {
            return;
        }
        for run in runs(points) {
            let shown = |p: &ClusterPoint| p.time_ms + shift_ms;
            let y: Vec<Option<f64>> = run
                .iter()
                .map(|p| of(p).map(|bytes| unit.number(bytes)))
                .collect();
            let trace = Scatter::new(vec![times.len()], y)
                .mode(Mode::Lines)
                .name(label)
                .meta(colour)
                .line(Line::new().width(1.6))
                .hover_template(unit.hover(label));
            times.push(run.iter().map(shown).collect());
            data.push(trace);
        }
        key.push(Key {
            colour,
            mark: "line",
            label: label.to_owned(),
            value: mean(points, of).map(bytes).unwrap_or_default(),
        });
    };
    if let Some((before, shift_ms)) = earlier_points(view) {
        let label = format!("in {}", view.before_label());
        add(before, of, shift_ms, "before", &label);
    }
    add(
        points,
        PAPER,
        0,
        "available-line",
        "lent with the paper’s policy",
    );
    add(
        points,
        GENTLE,
        0,
        "harvestable",
        "lent with the gentle policy",
    );
    // Entries of this week come first in the key.
    key.sort_by_key(|k| k.colour == "before");
    let title = format!("time, {}", view.clock.zone_over(first_ms, last_ms));
    Some(Figure {
        id: format!("{}quotas", view.prefix),
        title: "Memory that all idle hosts would have lent".into(),
        sentence: sentence(view, of),
        key,
        height_px: 320,
        plot: Plot {
            times,
            data,
            layout: layout()
                .hover_mode(HoverMode::XUnified)
                .x_axis(time_axis(&title))
                .y_axis(
                    axis()
                        .title(unit.name)
                        .range_mode(RangeMode::ToZero)
                        .tick_format(",~r"),
                ),
        },
    })
}

fn sentence(view: &View, of: PointValue) -> String {
    let points = &view.findings.cluster_over_time;
    let known = points.iter().filter_map(|p| Some((of(p)?, p.time_ms)));
    let least = known.clone().min_by(|a, b| a.0.total_cmp(&b.0));
    let most = known.max_by(|a, b| a.0.total_cmp(&b.0));
    let (Some(mean_bytes), Some(least), Some(most)) = (mean(points, of), least, most) else {
        return "This was not measured.".into();
    };
    let before = view.before.and_then(|b| mean(&b.cluster_over_time, of));
    let change =
        before.map(
            |before| match crate::change::bytes_words(mean_bytes, before).as_str() {
                "no change" => format!(", as in {}", view.before_label()),
                words => format!(", {words} than in {}", view.before_label()),
            },
        );
    format!(
        "{} on average{}; minimum {} ({}), maximum {} ({}).",
        bytes(mean_bytes),
        change.unwrap_or_default(),
        bytes(least.0),
        view.clock.moment(least.1),
        bytes(most.0),
        view.clock.moment(most.1)
    )
}

/// Table of the memory that each host would have lent while idle, and of the cost to its owner.
pub(super) fn by_host(view: &View) -> Option<Table> {
    let f = view.findings;
    let contexts = contexts_by_host(f);
    let earlier = view.before.map(contexts_by_host).filter(|c| !c.is_empty());
    let reclaims: HashMap<&str, &Reclaims> = f
        .reclaims
        .iter()
        .filter_map(|r| Some((r.host_id.as_deref()?, r)))
        .collect();
    if contexts.is_empty() && reclaims.is_empty() {
        return None;
    }
    let rows = f.hosts.iter().map(|host| {
        let paper = contexts.get(&(host.host_id.as_str(), true));
        let gentle = contexts.get(&(host.host_id.as_str(), false));
        let quota = |c: Option<&&MemoryContext>| c.and_then(|c| c.mean_quota_bytes);
        let mut row = vec![
            view.host_cell(&host.host_id),
            Cell::bytes(host.physical_bytes as f64),
            Cell::or_absent(host.idle_share, Cell::share),
            Cell::or_absent(quota(paper), Cell::bytes),
        ];
        row.extend(earlier.as_ref().map(|earlier| {
            let before = quota(earlier.get(&(host.host_id.as_str(), true)));
            Cell::or_absent(quota(paper).zip(before), |(now, before)| {
                Cell::bytes_change(now - before)
            })
        }));
        row.extend([
            Cell::or_absent(quota(gentle), Cell::bytes),
            Cell::or_absent(reclaims.get(host.host_id.as_str()), |r| {
                decimal(r.reclaims_per_day)
            }),
            Cell::or_absent(paper, |c| Cell::share(c.share_of_returns_with_any)),
            Cell::or_absent(paper, |c| Cell::bytes(c.p99_bytes)),
        ]);
        row
    });
    let mut columns = vec![
        words("host"),
        numbers("memory"),
        numbers("time idle"),
        numbers("lent, paper’s policy"),
    ];
    columns.extend(earlier.as_ref().map(|_| numbers("change")));
    columns.extend([
        numbers("lent, gentle policy"),
        numbers("returns per day"),
        numbers("returns with context"),
        numbers("99th percentile of context"),
    ]);
    let table = Table::new(
        format!("{}quotas-by-host", view.prefix),
        "Memory that each host would have lent while idle, and memory that its owner would have had to page in again",
        columns,
    )
    .with_rows(rows.collect())?;
    Some(table.with_note(format!(
        "Lent: mean over the host’s idle periods. The last two columns are for the paper’s policy. {MODES}"
    )))
}

/// Memory contexts by host id and mode of lending; the flag is true for the paper's mode.
fn contexts_by_host(f: &Findings) -> HashMap<(&str, bool), &MemoryContext> {
    let all = f.memory_context.iter();
    all.filter_map(|c| Some(((c.host_id.as_deref()?, c.mode == LendingMode::Paper), c)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::context;
    use super::*;
    use crate::view::ask as of;
    use gleaner_schemas::findings::HostSummary;

    const GIB: f64 = 1_073_741_824.0;
    const WEEK_MS: i64 = 7 * 86_400_000;

    fn point(time_ms: i64, gib: f64) -> ClusterPoint {
        ClusterPoint {
            time_ms,
            cells_count: 1,
            idle_paper_quota_bytes: Some(gib * GIB),
            ..ClusterPoint::default()
        }
    }

    #[test]
    fn the_week_before_lies_under_this_one() {
        let now = Findings {
            cluster_over_time: vec![point(WEEK_MS, 4.0), point(WEEK_MS + 600_000, 8.0)],
            ..Findings::default()
        };
        let before = Findings {
            cluster_over_time: vec![point(0, 3.0), point(600_000, 3.0)],
            ..Findings::default()
        };
        let figure = of(&now, Some(&before), figure).unwrap();
        assert_eq!(figure.plot.times[0], figure.plot.times[1]);
        assert_eq!(figure.key[0].colour, "available-line");
        let said = figure.sentence.replace('\u{a0}', " ");
        assert!(
            said.starts_with(
                "6.0 GiB on average, 3.0 GiB more than in the time before; minimum 4.0 GiB"
            ),
            "{said}"
        );
    }

    #[test]
    fn a_gap_starts_a_new_line_and_hosts_without_owners_none() {
        let mut findings = Findings {
            cluster_over_time: vec![point(0, 4.0), point(600_000, 8.0)],
            ..Findings::default()
        };
        findings.cluster_over_time[1].is_after_gap = true;
        assert_eq!(
            of(&findings, None, |v| figure(v).map(|f| f.plot.times.len())),
            Some(2)
        );
        for point in &mut findings.cluster_over_time {
            point.idle_paper_quota_bytes = None;
        }
        assert!(of(&findings, None, |v| figure(v).is_none()));
    }

    #[test]
    fn every_host_has_a_row_and_what_is_unknown_is_a_dash() {
        let host = |id: &str| HostSummary {
            host_id: id.into(),
            host_name: id.to_uppercase(),
            ..HostSummary::default()
        };
        let findings = Findings {
            hosts: vec![host("a"), host("b")],
            memory_context: vec![MemoryContext {
                host_id: Some("a".into()),
                ..context(0.0, 0.0)
            }],
            ..Findings::default()
        };
        let table = of(&findings, None, by_host).unwrap();
        assert_eq!(table.rows[0][3].value, Some(8.0 * GIB));
        assert!(table.rows[1][3].absent && table.rows[0][4].absent);
        assert!(of(&Findings::default(), None, by_host).is_none());
    }
}
