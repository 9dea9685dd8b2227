//! Figure of the owner's absences, one row per day.

use crate::clock::DayPart;
use crate::page::figure::{Figure, Key, Plot, axis, layout};
use crate::questions;
use crate::view::View;
use crate::wording::{count, seconds, share};
use gleaner_schemas::findings::IdlePeriod;
use plotly::common::{Line, Mode};
use plotly::layout::AxisRange;
use plotly::{Scatter, Trace};

/// Number of days drawn; of a longer trace, the last ones.
const DAYS_SHOWN: usize = 31;

/// Idle periods of one host by day and hour; absent if there are none.
pub(crate) fn days(view: &View) -> Option<Figure> {
    let host = view.only_host()?;
    let periods = &view.findings.idle_periods;
    if periods.is_empty() {
        return None;
    }
    let away: Vec<DayPart> = periods
        .iter()
        .flat_map(|p| view.clock.day_parts(p.from_time_ms, p.to_time_ms))
        .collect();
    let traced = traced(view);
    let mut days: Vec<i64> = traced.iter().chain(&away).map(|p| p.day_ms).collect();
    days.sort_unstable_by(|a, b| b.cmp(a));
    days.dedup();
    days.truncate(DAYS_SHOWN);
    let odd: Vec<String> = days.iter().filter_map(|day| odd_day(view, *day)).collect();
    let data: Vec<Box<dyn Trace>> = vec![
        bars(&traced, &days, "traced", "traced", 2.0),
        bars(&away, &days, "idle", "idle", 13.0),
    ];
    let in_view = traced.iter().chain(&away);
    let (from, to) = in_view.fold((24.0_f64, 0.0_f64), |(from, to), p| {
        (from.min(p.from_hour.floor()), to.max(p.to_hour.ceil()))
    });
    let marks: Vec<f64> = (0..=to.max(24.0) as i32)
        .step_by(if to - from > 8.0 { 3 } else { 1 })
        .map(f64::from)
        .collect();
    let x_axis = axis()
        .range(vec![from, to])
        .tick_text(marks.iter().map(|h| format!("{h:02}:00")).collect())
        .tick_values(marks)
        .title(format!(
            "hours since midnight, {}",
            view.clock.zone_over(host.from_time_ms, host.to_time_ms)
        ));
    let y_axis = axis()
        .show_grid(false)
        .range(AxisRange::from(vec![-0.6, days.len() as f64 - 0.4]))
        .tick_text(days.iter().map(|d| view.clock.day(*d)).collect())
        .tick_values((0..days.len()).map(|i| i as f64).collect());
    let key = vec![
        Key {
            colour: "idle",
            mark: "area",
            label: "idle".into(),
            value: host.idle_share.map(share).unwrap_or_default(),
        },
        Key {
            colour: "traced",
            mark: "line",
            label: "traced, in use".into(),
            value: String::new(),
        },
    ];
    Some(Figure {
        id: format!("{}idle-days", view.prefix),
        title: "Idle periods: times when the owner was away".into(),
        sentence: format!("{}{}", sentence(view, periods), odd.concat()),
        key,
        height_px: 100 + 30 * days.len(),
        plot: Plot {
            times: Vec::new(),
            data,
            layout: layout().x_axis(x_axis).y_axis(y_axis),
        },
    })
}

/// Note on a day on which clocks changed, so that hours since midnight differ from clock time.
fn odd_day(view: &View, day_ms: i64) -> Option<String> {
    let hours = view.clock.hours_of_day(day_ms)?;
    (hours != 24.0).then(|| {
        format!(
            " The clocks changed on {}, which had {hours} hours: its bars show hours since midnight, not clock time.",
            view.clock.day(day_ms),
        )
    })
}

/// Time covered by samples, by day.
fn traced(view: &View) -> Vec<DayPart> {
    let mut stretches: Vec<(i64, i64)> = Vec::new();
    for point in &view.findings.memory_over_time {
        match stretches.last_mut() {
            Some(last) if !point.is_after_gap => last.1 = point.time_ms,
            _ => stretches.push((point.time_ms, point.time_ms)),
        }
    }
    stretches
        .into_iter()
        .flat_map(|(from, to)| view.clock.day_parts(from, to))
        .collect()
}

/// Parts of days as thick lines, one row per day.
fn bars(parts: &[DayPart], days: &[i64], name: &str, colour: &str, width: f64) -> Box<dyn Trace> {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for part in parts {
        let Some(row) = days.iter().position(|d| *d == part.day_ms) else {
            continue;
        };
        x.extend([Some(round(part.from_hour)), Some(round(part.to_hour)), None]);
        y.extend([Some(row as f64), Some(row as f64), None]);
    }
    Scatter::new(x, y)
        .mode(Mode::Lines)
        .name(name)
        .meta(colour)
        .line(Line::new().width(width))
        .hover_template(format!("{name}<extra></extra>"))
}

/// Rounds to a thousandth of an hour (3.6 s).
fn round(hour: f64) -> f64 {
    (hour * 1000.0).round() / 1000.0
}

/// Text if no idle period is known.
pub(super) fn unknown(view: &View) -> String {
    let p = &view.findings.parameters;
    let known = view.only_host().is_some_and(|h| h.idle_share.is_some());
    let finding = if known {
        "No idle period was seen.".to_owned()
    } else {
        let sources = view.findings.activity_sources.iter();
        let states: Vec<String> = sources
            .map(|s| format!("{}: {}", s.source, s.state))
            .collect();
        let states = match states.as_slice() {
            [] => String::new(),
            states => format!(" ({})", states.join("; ")),
        };
        format!("It is not known when the owner was away{states}.")
    };
    let reason = view.reason_without("idle_periods").map(questions::sentence);
    format!(
        "{finding} {}Idle means that no keyboard, mouse or terminal was used and the load was below {}, both for {} or more.",
        reason.map(|reason| reason + " ").unwrap_or_default(),
        p.load_limit,
        seconds(p.idle_after_s)
    )
}

fn sentence(view: &View, periods: &[IdlePeriod]) -> String {
    let total_s: f64 = periods.iter().map(|p| p.duration_s).sum();
    let longest = periods
        .iter()
        .max_by(|a, b| a.duration_s.total_cmp(&b.duration_s));
    let longest = longest.map(|p| {
        format!(
            "; the longest period, of {}, started at {}",
            seconds(p.duration_s),
            view.clock.moment(p.from_time_ms)
        )
    });
    let cut = periods
        .iter()
        .filter(|p| p.is_start_censored || p.is_end_censored)
        .count() as i64;
    let caution = match cut {
        0 => String::new(),
        1 => " One period touches a gap or an end of the trace and may have been longer.".into(),
        n => format!(
            " {} touch a gap or an end of the trace and may have been longer.",
            count(n, "period")
        ),
    };
    let idle_share = view.only_host().and_then(|h| h.idle_share);
    format!(
        "The host was idle in {}, {} in all{}{}.{caution}",
        count(periods.len() as i64, "period"),
        seconds(total_s),
        idle_share
            .map(|s| format!(" ({} of the time traced)", share(s)))
            .unwrap_or_default(),
        longest.unwrap_or_default(),
    )
}
