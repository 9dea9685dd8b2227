//! Lengths of availability periods: survival curves, and lower bounds.

use super::axes::log_time_axis;
use super::odds::{SIZES, band, ends, percent, scope_cell, scope_keys, scope_words, share_axis};
use super::regions;
use crate::page::figure::{Figure, Key, Plot, layout};
use crate::page::table::{Cell, Table, numbers, words};
use crate::view::View;
use crate::wording::{list, seconds, share, size};
use gleaner_schemas::findings::{
    AvailabilityPeriods, BoundVerdict, Findings, Notion, PeriodBound, Scope, SurvivalPoint,
};
use plotly::common::{DashType, Line, LineShape, Mode};
use plotly::{Scatter, Trace};

fn pooled(findings: &Findings) -> impl Iterator<Item = &SurvivalPoint> {
    let points = findings.survival_curves.iter();
    points.filter(|p| p.size_class == "all" && p.age_s > 0.0)
}

/// Figure of the share of periods that last longer than each age, by size; absent without curves.
pub(super) fn figure(view: &View) -> Option<Figure> {
    let f = view.findings;
    // If no period was seen to end, there is no curve to draw.
    pooled(f).find(|p| p.ended_count > 0)?;
    let (from_s, to_s) = ends(pooled(f).map(|p| p.age_s))?;
    let mut sizes: Vec<i64> = pooled(f).map(|p| p.region_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut shown = regions::shown(f);
    shown.retain(|s| sizes.contains(s));
    if shown.is_empty() {
        shown.push(sizes[sizes.len() / 2]);
    }
    let mut data: Vec<Box<dyn Trace>> = Vec::new();
    let mut key = Vec::new();
    let middle: Vec<&SurvivalPoint> = pooled(f)
        .filter(|p| p.region_bytes == shown[0] && p.scope == Scope::All)
        .collect();
    let limits: Vec<(f64, f64, f64)> = steps(&middle, |p| (p.low, p.high));
    if middle.len() > 1 {
        data.push(band(&limits));
    }
    for (region, (colour, _, _)) in shown.iter().zip(SIZES) {
        key.push(Key {
            colour,
            mark: "line",
            label: size(*region),
            value: String::new(),
        });
        for (scope, dash) in [(Scope::All, DashType::Solid), (Scope::Idle, DashType::Dash)] {
            let curve: Vec<&SurvivalPoint> = pooled(f)
                .filter(|p| p.region_bytes == *region && p.scope == scope)
                .collect();
            if curve.is_empty() {
                continue;
            }
            // Until the first period ends, the share is 100 %.
            let ages = std::iter::once(from_s / 1.5).chain(curve.iter().map(|p| p.age_s));
            let shares = std::iter::once(100.0).chain(curve.iter().map(|p| percent(p.survival)));
            let label = format!("{}, {}", size(*region), scope_words(scope));
            let says = std::iter::once(label.clone()).chain(curve.iter().map(|p| {
                format!(
                    "{label}<br>{} last longer than {}<br>{} to {}; {} periods observed that long",
                    share(p.survival),
                    seconds(p.age_s),
                    share(p.low),
                    share(p.high),
                    p.at_risk_count
                )
            }));
            let trace = Scatter::new(ages.collect(), shares.collect())
                .mode(Mode::Lines)
                .name(label.clone())
                .meta(colour)
                .line(Line::new().width(2.0).dash(dash).shape(LineShape::Hv))
                .hover_text_array(says.collect::<Vec<String>>())
                .hover_template("%{hovertext}<extra></extra>");
            data.push(trace);
        }
    }
    key.extend(scope_keys(pooled(f).any(|p| p.scope == Scope::Idle)));
    if middle.len() > 1 {
        key.push(Key {
            colour: "size-1-range",
            mark: "band",
            label: format!("95 % interval of {}", size(shown[0])),
            value: String::new(),
        });
    }
    Some(Figure {
        id: format!("{}survival", view.prefix),
        title: "Length of availability periods: share of periods that last longer than each age"
            .into(),
        sentence: sentence(f, &shown),
        key,
        height_px: 380,
        plot: Plot {
            times: Vec::new(),
            data,
            layout: layout()
                .x_axis(log_time_axis("age of the period", from_s / 1.5, to_s * 1.1))
                .y_axis(share_axis("last longer")),
        },
    })
}

/// Points from which an area with steps is drawn; Plotly itself cannot draw an area in steps.
fn steps(
    curve: &[&SurvivalPoint],
    limits: impl Fn(&SurvivalPoint) -> (f64, f64),
) -> Vec<(f64, f64, f64)> {
    let mut area = Vec::new();
    for pair in curve.windows(2) {
        let (low, high) = limits(pair[0]);
        area.push((pair[0].age_s, low, high));
        area.push((pair[1].age_s, low, high));
    }
    area
}

fn sentence(f: &Findings, shown: &[i64]) -> String {
    let of = |region: i64, scope| {
        let mut all = f.availability_periods.iter();
        all.find(|p| {
            p.size_class == "all"
                && p.notion == Notion::Available
                && p.region_bytes == region
                && p.scope == scope
        })
    };
    let half = |p: &AvailabilityPeriods| {
        p.median_survival_s.map_or(
            "a length that the trace is too short to show".into(),
            seconds,
        )
    };
    let said: Vec<String> = shown
        .iter()
        .filter_map(|region| {
            let all = of(*region, Scope::All)?;
            let idle = of(*region, Scope::Idle)
                .filter(|p| p.periods_count > 0)
                .map(|p| format!(" ({} if the owner’s return also ends them)", half(p)));
            Some(format!(
                "of {} last longer than {}{}",
                size(*region),
                half(all),
                idle.unwrap_or_default()
            ))
        })
        .collect();
    let halves = match (said.is_empty(), shown.first()) {
        (false, _) => format!("Half of the periods {}", list(&said)),
        (true, Some(region)) => {
            let curve = pooled(f).filter(|p| p.region_bytes == *region);
            let lasts = |p: &SurvivalPoint| {
                format!(
                    "{} of the periods of {} last longer than {}",
                    share(p.survival),
                    size(*region),
                    seconds(p.age_s)
                )
            };
            curve.map(lasts).last().unwrap_or_default()
        }
        (true, None) => String::new(),
    };
    let cut = shown.first().and_then(|r| of(*r, Scope::All)).map(|p| {
        format!(
            " For {}, {} periods began before the trace. These are long periods of unknown age, so the curve is probably too high.",
            size(p.region_bytes),
            p.start_censored_count
        )
    });
    let cut = cut.filter(|_| {
        shown
            .first()
            .and_then(|r| of(*r, Scope::All))
            .is_some_and(|p| {
                10 * p.start_censored_count >= p.periods_count && p.start_censored_count > 0
            })
    });
    format!("{halves}.{}", cut.unwrap_or_default())
}

/// Table of lower bounds by size, with each bound's validity.
pub(super) fn bounds(view: &View) -> Option<Table> {
    let bounds = &view.findings.period_bounds;
    let pooled = |quantile: f64| {
        bounds
            .iter()
            .filter(move |b| b.size_class == "all" && (b.quantile - quantile).abs() < 1e-9)
    };
    let mut firsts: Vec<&PeriodBound> = pooled(0.05).collect();
    let shown = regions::shown(view.findings);
    let is_shown = |b: &PeriodBound| shown.contains(&b.region_bytes);
    firsts.sort_by_key(|b| (!is_shown(b), b.scope == Scope::Idle, b.region_bytes));
    let shown_count = firsts.iter().filter(|b| is_shown(b)).count();
    let rows = firsts.into_iter().map(|first| {
        let bound = |quantile: f64| {
            let same =
                |b: &&PeriodBound| b.scope == first.scope && b.region_bytes == first.region_bytes;
            let found = pooled(quantile).find(same).and_then(|b| b.bound_s);
            Cell::or_absent(found, Cell::seconds)
        };
        vec![
            Cell::size(first.region_bytes),
            scope_cell(first.scope),
            bound(0.05),
            bound(0.25),
            bound(0.5),
            Cell::count(first.periods_count),
            Cell::share(first.censored_share),
            Cell::text(verdict(first.verdict)),
        ]
    });
    let mut table = Table::new(
        format!("{}bounds", view.prefix),
        "Lower bounds of the length of availability periods",
        vec![
            numbers("region"),
            words("time"),
            numbers("reached by 95 % of periods"),
            numbers("by 75 %"),
            numbers("by 50 %"),
            numbers("periods"),
            numbers("cut short"),
            words("validity"),
        ],
    )
    .with_rows(rows.collect())?;
    // The page omits other sizes: they have similar values.
    if shown_count > 0 {
        table.rows_shown = shown_count;
    }
    Some(table.with_note(
        "The bounds hold with 95 % confidence if periods are complete and independent of each other. The last column gives the result of \
         both checks. Only periods of the minimum length or more count.",
    ))
}

const fn verdict(verdict: BoundVerdict) -> &'static str {
    match verdict {
        BoundVerdict::Holds => "holds: no check failed",
        BoundVerdict::Censored => "may be longer: many periods were cut short",
        BoundVerdict::Dependent => "an indication only: periods on one host are similar",
        BoundVerdict::TooFew => "too few periods for any bound",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::ask;

    fn point(age_s: f64, survival: f64) -> SurvivalPoint {
        SurvivalPoint {
            size_class: "all".into(),
            scope: Scope::All,
            region_bytes: 1 << 30,
            age_s,
            at_risk_count: 10,
            ended_count: 1,
            censored_count: 0,
            survival,
            low: survival - 0.1,
            high: survival + 0.1,
        }
    }

    #[test]
    fn a_curve_begins_with_all_and_its_area_has_steps() {
        let findings = Findings {
            survival_curves: vec![point(600.0, 0.8), point(6000.0, 0.5)],
            ..Findings::default()
        };
        let figure = ask(&findings, None, figure).unwrap();
        let plot = serde_json::to_value(&figure.plot).unwrap();
        assert_eq!(plot["data"][1]["y"], serde_json::json!([100.0, 80.0, 50.0]));
        assert_eq!(plot["data"][1]["line"]["shape"], "hv");
        assert_eq!(
            plot["data"][0]["y"],
            serde_json::json!([70.0, 70.0, 90.0, 90.0])
        );
        assert!(ask(&findings, None, bounds).is_none());
    }

    #[test]
    fn a_bound_that_is_none_says_so() {
        let bound = PeriodBound {
            size_class: "all".into(),
            scope: Scope::All,
            region_bytes: 1 << 30,
            quantile: 0.05,
            confidence: 0.95,
            bound_s: None,
            periods_count: 7,
            censored_share: 0.0,
            autocorrelation: None,
            verdict: BoundVerdict::TooFew,
        };
        let findings = Findings {
            period_bounds: vec![bound],
            ..Findings::default()
        };
        let table = ask(&findings, None, bounds).unwrap();
        assert!(table.rows[0][2].absent);
        assert_eq!(table.rows[0][7].text, "too few periods for any bound");
    }
}
