//! Time for which regions stay available, by size.

use super::axes::log_time_axis;
use crate::page::figure::{Figure, Key, Plot, axis, layout};
use crate::view::View;
use crate::wording::{count, seconds, share, size};
use gleaner_schemas::findings::{AvailabilityPeriods, Notion, Scope};
use plotly::common::{HoverInfo, Line, Marker, MarkerSymbol, Mode};
use plotly::{Scatter, Trace};

/// Factor by which the axis extends beyond the shortest and longest mark, so that a tick is visible.
const ROOM: f64 = 2.3;

/// Figure of the mean availability period by region size, for all time and idle time; absent if there are no
/// periods.
pub(crate) fn periods(view: &View) -> Option<Figure> {
    let all = &view.findings.availability_periods;
    let pooled: Vec<&AvailabilityPeriods> = all
        .iter()
        .filter(|p| {
            p.size_class == "all"
                && p.notion == Notion::Available
                && p.periods_count > 0
                && length_s(p).is_some()
        })
        .collect();
    let mut regions: Vec<i64> = pooled.iter().map(|p| p.region_bytes).collect();
    regions.sort_unstable_by(|a, b| b.cmp(a));
    regions.dedup();
    if regions.is_empty() {
        return None;
    }
    let mut data: Vec<Box<dyn Trace>> = Vec::new();
    let mut key = Vec::new();
    for (scope, cut) in [
        (Scope::All, false),
        (Scope::All, true),
        (Scope::Idle, false),
        (Scope::Idle, true),
    ] {
        let shown: Vec<&&AvailabilityPeriods> = pooled
            .iter()
            .filter(|p| p.scope == scope && is_cut(p) == cut)
            .collect();
        if shown.is_empty() {
            continue;
        }
        let (name, colour, symbol, mark) = match (scope, cut) {
            (Scope::All, false) => ("all time", "available-line", MarkerSymbol::Circle, "dot"),
            (Scope::All, true) => (
                "all time, at least",
                "available-line",
                MarkerSymbol::CircleOpen,
                "ring",
            ),
            (Scope::Idle, false) => ("idle time only", "idle", MarkerSymbol::Diamond, "diamond"),
            (Scope::Idle, true) => (
                "idle time only, at least",
                "idle",
                MarkerSymbol::DiamondOpen,
                "diamond-open",
            ),
        };
        let row = |p: &AvailabilityPeriods| {
            let index = regions
                .iter()
                .position(|r| *r == p.region_bytes)
                .unwrap_or(0) as f64;
            if scope == Scope::All {
                index + 0.14
            } else {
                index - 0.14
            }
        };
        for p in &shown {
            data.extend(other_mean_s(p).map(|other| -> Box<dyn Trace> {
                Scatter::new(vec![Some(other), length_s(p)], vec![row(p), row(p)])
                    .mode(Mode::Lines)
                    .meta(colour)
                    .line(Line::new().width(2.0))
                    .hover_info(HoverInfo::Skip)
            }));
        }
        let trace = Scatter::new(
            shown.iter().map(|p| length_s(p)).collect(),
            shown.iter().map(|p| row(p)).collect(),
        )
        .mode(Mode::Markers)
        .name(name)
        .meta(colour)
        .marker(
            Marker::new()
                .size(12)
                .symbol(symbol)
                .line(Line::new().width(2.0)),
        )
        .hover_text_array(shown.iter().map(|p| hover(p)).collect::<Vec<String>>())
        .hover_template("%{hovertext}<extra></extra>");
        data.push(trace);
        key.push(Key {
            colour,
            mark,
            label: name.into(),
            value: String::new(),
        });
    }
    let longest = pooled
        .iter()
        .filter_map(|p| length_s(p))
        .fold(0.0, f64::max)
        * ROOM;
    let shortest = pooled
        .iter()
        .flat_map(|p| [length_s(p), other_mean_s(p)])
        .flatten()
        .fold(longest, f64::min)
        / ROOM;
    let x_axis = log_time_axis("mean length of a period", shortest, longest);
    let y_axis = axis()
        .title("size of the region")
        .range(vec![-0.6, regions.len() as f64 - 0.4])
        .tick_text(regions.iter().map(|r| size(*r)).collect())
        .tick_values((0..regions.len()).map(|i| i as f64).collect());
    Some(Figure {
        id: format!("{}availability-periods", view.prefix),
        title: "How long a region stays available".into(),
        sentence: sentence(&pooled, &regions),
        key,
        height_px: 110 + 44 * regions.len(),
        plot: Plot {
            times: Vec::new(),
            data,
            layout: layout().x_axis(x_axis).y_axis(y_axis),
        },
    })
}

/// Mean length that counts a cut period as at least as long as observed. If it is unknown, the mean of the
/// observed lengths.
fn length_s(periods: &AvailabilityPeriods) -> Option<f64> {
    periods
        .restricted_mean_s
        .or(periods.mean_s)
        .filter(|s| *s > 0.0)
}

/// Mean length of only the periods with an observed start, if it is far below the other mean: the true mean
/// lies between the two.
fn other_mean_s(periods: &AvailabilityPeriods) -> Option<f64> {
    const FAR: f64 = 1.25;
    let other = periods.restricted_mean_start_seen_s.filter(|s| *s > 0.0)?;
    length_s(periods).filter(|s| *s > FAR * other)?;
    Some(other)
}

/// Returns true if at least half of the periods were cut: their mean is then only a lower bound.
fn is_cut(periods: &AvailabilityPeriods) -> bool {
    2 * periods.censored_count >= periods.periods_count
}

fn hover(periods: &AvailabilityPeriods) -> String {
    let scope = match periods.scope {
        Scope::All => "all time",
        Scope::Idle => "idle time only",
    };
    let at_least = if is_cut(periods) { "at least " } else { "" };
    let mean = length_s(periods).map(seconds).unwrap_or_default();
    format!(
        "{}, {scope}: {at_least}{mean} on average<br>{}, {} cut short",
        size(periods.region_bytes),
        count(periods.periods_count, "period"),
        periods.censored_count
    )
}

fn sentence(pooled: &[&AvailabilityPeriods], regions: &[i64]) -> String {
    let mut said: Vec<i64> = vec![regions[regions.len() - 1], regions[0]];
    said.dedup();
    let about = said.iter().filter_map(|region| {
        let of = |scope| {
            pooled
                .iter()
                .find(|p| p.region_bytes == *region && p.scope == scope)
        };
        let length = |p: &&&AvailabilityPeriods| {
            if let Some(other) = other_mean_s(p) {
                let longer = length_s(p).map(seconds).unwrap_or_default();
                return format!("between {} and {longer}", seconds(other));
            }
            let at_least = if is_cut(p) { "at least " } else { "" };
            format!("{at_least}{}", length_s(p).map(seconds).unwrap_or_default())
        };
        let all = of(Scope::All)?;
        let time = all
            .available_time_share
            .map(|s| format!(", and {} of the time in total", share(s)));
        let idle = of(Scope::Idle)
            .map(|p| format!(" ({} if the owner’s return also ends it)", length(&p)));
        Some(format!(
            "a region of {} stayed available for {} on average{}{}",
            size(*region),
            length(&all),
            idle.unwrap_or_default(),
            time.unwrap_or_default(),
        ))
    });
    let mut text = about.collect::<Vec<String>>().join("; ");
    if let Some(first) = text.get(..1).map(str::to_uppercase) {
        text.replace_range(..1, &first);
    }
    let (kept, cut) = pooled.iter().fold((0, 0), |(k, c), p| {
        (k + p.periods_count, c + p.censored_count)
    });
    let caution = match cut {
        0 => "Every period was observed from start to end.".into(),
        cut => format!(
            "{cut} of {} were cut short by a gap or an end of the trace, and lasted longer than observed. A hollow mark means that this is half \
             of the periods or more: read “at least”.",
            count(kept, "period")
        ),
    };
    let far = match pooled.iter().any(|p| other_mean_s(p).is_some()) {
        true => {
            " A line means that the trace is too short for an exact mean, which lies between its ends: the mean of the periods whose start was \
             observed (too short), and the mean of all periods (too long)."
        }
        false => "",
    };
    format!("{text}. {caution}{far}")
}
