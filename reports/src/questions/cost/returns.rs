//! Owners who return at the same time.

use crate::page::figure::{Figure, Key, Plot, axis, layout};
use crate::page::table::{Cell, Table, numbers};
use crate::view::View;
use crate::wording::{bytes, count, seconds, share};
use gleaner_schemas::findings::ReturnsByHour;
use plotly::common::{Marker, MarkerSymbol, Mode};
use plotly::layout::RangeMode;
use plotly::{Bar, Scatter, Trace};

/// For each hour of the day: the hour, and mean and maximum number of returns in a cell, over the working
/// days.
fn by_hour(view: &View) -> Vec<(i64, f64, i64)> {
    let days: Vec<&ReturnsByHour> = view
        .findings
        .returns_by_hour
        .iter()
        .filter(|r| r.weekday <= 5 && r.cells_count > 0)
        .collect();
    (0..24)
        .filter_map(|hour| {
            let of_hour = days.iter().filter(|r| r.hour == hour);
            let cells: i64 = of_hour.clone().map(|r| r.cells_count).sum();
            let returns: f64 = of_hour
                .clone()
                .map(|r| r.mean_returns_per_cell * r.cells_count as f64)
                .sum();
            let most = of_hour.map(|r| r.max_returns_per_cell).max()?;
            Some((hour, returns / cells as f64, most))
        })
        .collect()
}

/// Length of a cell of the time grid, in words; if it is unknown, `one interval`.
fn cell_words(view: &View) -> String {
    match view.findings.parameters.cluster_cell_s {
        s if s > 0.0 => seconds(s),
        _ => "one interval".into(),
    }
}

/// Figure of hosts that stop being idle within one cell, Monday to Friday; absent without any
/// return.
pub(super) fn figure(view: &View) -> Option<Figure> {
    let hours = by_hour(view);
    let peak = hours
        .iter()
        .filter(|(_, mean, _)| *mean > 0.0)
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let most = hours.iter().max_by_key(|(_, _, most)| *most)?;
    let cell = cell_words(view);
    let x: Vec<i64> = hours.iter().map(|(hour, _, _)| *hour).collect();
    let mean: Vec<f64> = hours
        .iter()
        .map(|(_, mean, _)| (mean * 100.0).round() / 100.0)
        .collect();
    let data: Vec<Box<dyn Trace>> = vec![
        Bar::new(x.clone(), mean)
            .name("loss-3")
            .hover_template("%{x}:00: %{y:.1f} hosts on average<extra></extra>"),
        Scatter::new(x, hours.iter().map(|(_, _, most)| *most).collect())
            .mode(Mode::Markers)
            .meta("idle")
            .marker(Marker::new().size(9).symbol(MarkerSymbol::CircleOpen))
            .hover_template("%{x}:00: %{y} hosts at most<extra></extra>"),
    ];
    let entry = |colour, mark, label: &str| Key {
        colour,
        mark,
        label: label.into(),
        value: String::new(),
    };
    Some(Figure {
        id: format!("{}returns-at-once", view.prefix),
        title: format!(
            "Owners’ returns within {cell}, Monday to Friday by hour of the day{}",
            view.hours_zone()
        ),
        sentence: format!(
            "Most owners return between {}:00 and {}:00: on average {:.1} hosts stop being idle within {cell}. The maximum within {cell} was {}, between {}:00 and {}:00.",
            peak.0,
            peak.0 + 1,
            peak.1,
            count(most.2, "host"),
            most.0,
            most.0 + 1
        ),
        key: vec![
            entry("loss-3", "area", "mean"),
            entry("idle", "ring", "most"),
        ],
        height_px: 260,
        plot: Plot {
            times: Vec::new(),
            data,
            layout: layout()
                .bar_gap(0.25)
                .x_axis(
                    axis()
                        .show_grid(false)
                        .range(vec![-0.6, 23.6])
                        .title("hour of the day")
                        .tick_values((0..24).step_by(3).map(f64::from).collect())
                        .tick_text((0..24).step_by(3).map(|h: i32| h.to_string()).collect())
                        .tick_angle(0.0),
                )
                .y_axis(axis().title("hosts").range_mode(RangeMode::ToZero)),
        },
    })
}

/// Table of the moments at which owners reclaimed most memory.
pub(super) fn worst(view: &View) -> Option<Table> {
    let rows = view.findings.worst_returns.iter().map(|w| {
        vec![
            Cell::moment(view.clock.moment(w.time_ms), w.time_ms),
            Cell::count(w.hosts_count),
            Cell::count(w.idle_hosts_before_count),
            Cell::bytes(w.reclaimed_bytes as f64),
            Cell::or_absent(w.share_of_quota, |s| Cell::share(s).bar(s)),
        ]
    });
    let first = view
        .findings
        .worst_returns
        .iter()
        .max_by_key(|w| w.reclaimed_bytes)?;
    let table = Table::new(
        format!("{}worst-returns", view.prefix),
        format!(
            "Most memory reclaimed within {}: {}, owners of {} of {} returned and would have reclaimed {}",
            cell_words(view),
            view.clock.moment(first.time_ms),
            first.hosts_count,
            count(first.idle_hosts_before_count, "idle host"),
            bytes(first.reclaimed_bytes as f64)
        ),
        vec![
            numbers("time"),
            numbers("owners returned"),
            numbers("hosts idle before"),
            numbers("reclaimed"),
            numbers("share of quotas"),
        ],
    )
    .with_rows(rows.collect())?;
    let whole = first.share_of_quota.map(|s| {
        format!(
            "If all quotas had been lent, {} of them would have been reclaimed at once: keep copies on hosts whose owners keep different hours.",
            share(s)
        )
    });
    Some(table.with_note(whole.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::ask as of;
    use gleaner_schemas::findings::{Findings, WorstReturn};

    fn hour(weekday: i64, hour: i64, mean: f64, most: i64) -> ReturnsByHour {
        ReturnsByHour {
            weekday,
            hour,
            cells_count: 6,
            mean_returns_per_cell: mean,
            max_returns_per_cell: most,
            share_of_idle_hosts: None,
            mean_reclaimed_bytes: 0.0,
            max_reclaimed_bytes: 0,
        }
    }

    #[test]
    fn working_days_are_put_together_and_the_weekend_left_out() {
        let findings = Findings {
            returns_by_hour: vec![
                hour(1, 9, 2.0, 3),
                hour(2, 9, 4.0, 5),
                hour(6, 9, 30.0, 30),
                hour(1, 10, 0.5, 8),
            ],
            ..Findings::default()
        };
        assert_eq!(of(&findings, None, by_hour), [(9, 3.0, 5), (10, 0.5, 8)]);
        let said = of(&findings, None, figure)
            .unwrap()
            .sentence
            .replace('\u{a0}', " ");
        assert!(
            said.contains("between 9:00 and 10:00: on average 3.0 hosts")
                && said.contains("was 8 hosts, between 10:00"),
            "{said}"
        );
        assert!(of(&Findings::default(), None, figure).is_none());
    }

    #[test]
    fn the_worst_moment_is_in_the_caption() {
        let findings = Findings {
            worst_returns: vec![WorstReturn {
                time_ms: 0,
                hosts_count: 14,
                idle_hosts_before_count: 29,
                reclaimed_bytes: 23 << 30,
                share_of_quota: Some(0.48),
            }],
            ..Findings::default()
        };
        let table = of(&findings, None, worst).unwrap();
        let caption = table.caption.replace('\u{a0}', " ");
        assert!(
            caption.contains(
                "owners of 14 of 29 idle hosts returned and would have reclaimed 23.0 GiB"
            ),
            "{caption}"
        );
        assert!(of(&Findings::default(), None, worst).is_none());
    }
}
