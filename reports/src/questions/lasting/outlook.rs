//! From the last samples on: how much stays, how likely; and how good such forecasts were.

use super::coming::{calibration_layout, diagonal, dots};
use super::odds::{SCOPE_NOTE, scope_cell};
use crate::page::Part;
use crate::page::figure::{Figure, Key, Plot};
use crate::page::table::{Cell, Kind, Table, numbers, words};
use crate::view::View;
use crate::wording::{bytes, count, list, seconds, share};
use gleaner_schemas::findings::{Findings, Forecast, ForecastCalibration, ForecastQuality, Scope};
use plotly::Trace;
use plotly::common::MarkerSymbol;
use std::collections::HashSet;

/// Half of each host's memory is what the summary speaks of.
const HALF: f64 = 0.5;

/// A host whose last sample lies further back than this, from the last of all, has been left: nothing is said of it.
const LEFT_MS: i64 = 3_600_000;

/// Probability of memory that the page calls lasting.
const SURE: f64 = 0.9;

/// Bins of fewer instants are not spoken of.
const FEW_INSTANTS: i64 = 30;

/// A calibration slope is spoken of where it is this far from 1, or more.
const SLOPE_OFF: f64 = 0.25;

const AHEAD_S: [i64; 3] = [3600, 14_400, 86_400];

const MODELS: [(&str, &str); 5] = [
    ("gleaner", "these forecasts"),
    ("climatology", "one number for all"),
    ("age", "by age"),
    ("host_rate", "host’s own rate"),
    ("bins", "by state"),
];

pub(super) fn parts(view: &View) -> Vec<Part> {
    let f = view.findings;
    let mut parts = Vec::new();
    if let Some(table) = stays(view) {
        parts.extend(stays_words(view).map(Part::Say));
        parts.push(Part::Table(table));
    }
    parts.extend(quality_words(f).map(Part::Say));
    parts.extend(quality(view).map(Part::Table));
    parts.extend(calibration(view).map(Part::figure));
    parts
}

/// Forecasts for half of a host's memory, of hosts present at the end.
fn current<'a>(view: &'a View) -> Vec<&'a Forecast> {
    let end_ms = view.span_ms().map_or(0, |(_, to)| to);
    let halves = view.findings.forecasts.iter();
    halves
        .filter(|x| x.region_share == Some(HALF) && x.time_ms >= end_ms - LEFT_MS)
        .collect()
}

/// Hosts, and bytes, of one scope that stay for so long.
#[derive(Default)]
struct RemainingMemory {
    hosts: i64,
    bytes: f64,
    sure_hosts: i64,
    sure_bytes: f64,
    /// Sum of the regions, each weighted by its probability.
    expected_bytes: f64,
}

fn sum(current: &[&Forecast], scope: Scope, ahead_s: i64) -> RemainingMemory {
    let mut stays = RemainingMemory::default();
    for x in current
        .iter()
        .filter(|x| x.scope == scope && x.ahead_s == ahead_s)
    {
        let bytes = x.region_bytes as f64;
        stays.hosts += 1;
        stays.bytes += bytes;
        stays.expected_bytes += bytes * x.probability;
        if x.probability >= SURE {
            stays.sure_hosts += 1;
            stays.sure_bytes += bytes;
        }
    }
    stays
}

fn stays_words(view: &View) -> Option<String> {
    let current = current(view);
    let hosts: HashSet<&str> = current.iter().map(|x| x.host.as_str()).collect();
    let end_ms = current.iter().map(|x| x.time_ms).max()?;
    let said: Vec<String> = AHEAD_S
        .iter()
        .filter_map(|ahead_s| {
            let stays = sum(&current, Scope::All, *ahead_s);
            (stays.hosts > 0).then(|| {
                format!(
                    "{} for {}",
                    bytes(stays.sure_bytes),
                    seconds(*ahead_s as f64)
                )
            })
        })
        .collect();
    let known = view.findings.hosts.len() as i64;
    let others = known - hosts.len() as i64;
    let others = match others {
        0 => String::new(),
        n => format!(
            " Of {} nothing is said: less than half of the memory was available at the end, less than a day was traced, or no sample is \
             of the last hour.",
            count(n, "host")
        ),
    };
    Some(format!(
        "From the last samples on ({}): lending half of a host’s memory on each of the {} that have it available, one may count with {} \
         probability, host by host, on {}.{others}",
        view.clock.date_time(end_ms),
        count(hosts.len() as i64, "host"),
        share(SURE),
        list(&said)
    ))
}

fn stays(view: &View) -> Option<Table> {
    let current = current(view);
    let rows = [Scope::All, Scope::Idle].into_iter().flat_map(|scope| {
        let current = &current;
        AHEAD_S.into_iter().filter_map(move |ahead_s| {
            let stays = sum(current, scope, ahead_s);
            (stays.hosts > 0).then(|| {
                vec![
                    Cell::seconds(ahead_s as f64),
                    scope_cell(scope),
                    Cell::count(stays.hosts),
                    Cell::bytes(stays.bytes),
                    Cell::count(stays.sure_hosts),
                    Cell::bytes(stays.sure_bytes),
                    Cell::bytes(stays.expected_bytes),
                ]
            })
        })
    });
    let table = Table::new(
        format!("{}outlook", view.prefix),
        "Half of each host’s memory from the last sample on: how much stays available throughout",
        vec![
            numbers("for"),
            words("time"),
            numbers("hosts asked"),
            numbers("asked"),
            numbers("hosts 90 % sure"),
            numbers("90 % sure"),
            numbers("to be expected"),
        ],
    )
    .with_rows(rows.collect())?;
    Some(table.with_note(
        "90 % sure: the regions that each stay with a probability of 90 % or more. To be expected: each region by its probability, \
         which is the mean of many such moments.",
    ))
}

/// The score of one model for half of a host's memory.
fn score(f: &Findings, scope: Scope, ahead_s: i64, model: &str) -> Option<f64> {
    quality_of(f, scope, ahead_s, model).map(|q| q.brier_score)
}

fn quality_of<'a>(
    f: &'a Findings,
    scope: Scope,
    ahead_s: i64,
    model: &str,
) -> Option<&'a ForecastQuality> {
    let mut all = f.forecast_quality.iter();
    all.find(|q| {
        q.scope == scope
            && q.region_share == Some(HALF)
            && q.ahead_s == ahead_s
            && q.model == model
            && q.instants > 0
    })
}

fn quality_words(f: &Findings) -> Option<String> {
    let hour = AHEAD_S[0];
    let own = quality_of(f, Scope::All, hour, "gleaner")?;
    let flat = score(f, Scope::All, hour, "climatology");
    let against_flat = flat.map(|flat| {
        let less = if flat > 0.0 {
            1.0 - own.brier_score / flat
        } else {
            0.0
        };
        if less > 0.02 {
            format!(", {} less than if one number were said of all", share(less))
        } else if less < -0.02 {
            format!(
                ", {} more than if one number were said of all: nothing is gained by them here",
                share(-less)
            )
        } else {
            ", no less than if one number were said of all".into()
        }
    });
    let others = MODELS[2..].iter();
    let best = others
        .filter_map(|(model, label)| Some((score(f, Scope::All, hour, model)?, *label)))
        .min_by(|a, b| a.0.total_cmp(&b.0));
    let best = best.map(|(score, label)| {
        let verdict = if score < 0.98 * own.brier_score {
            "is better"
        } else if score <= 1.02 * own.brier_score {
            "is as good"
        } else {
            "is worse"
        };
        format!(" The best of the simple rules ({label}) {verdict}.")
    });
    Some(format!(
        "Tried on {}, each forecast from what lay before it alone ({}, half of a host’s memory, an hour ahead), the mean square of \
         probability less what came was {:.4}{}.{}{}",
        count(own.origins, "day"),
        count(own.instants, "instant"),
        own.brier_score,
        against_flat.unwrap_or_default(),
        best.unwrap_or_default(),
        own.calibration_slope.map(slope_words).unwrap_or_default()
    ))
}

/// A sentence where the calibration slope is far from 1.
fn slope_words(slope: f64) -> String {
    if slope > 1.0 + SLOPE_OFF {
        format!(
            " They were too cautious (calibration slope {slope:.2}): what was called likely to stay, stayed more often than that, \
             and what was called unlikely less often."
        )
    } else if slope < 1.0 / (1.0 + SLOPE_OFF) {
        format!(
            " They were too sure of themselves (calibration slope {slope:.2}): what was called likely to stay, stayed less often \
             than that, and what was called unlikely more often."
        )
    } else {
        String::new()
    }
}

/// Brier scores of all models, and the calibration of these forecasts.
fn quality(view: &View) -> Option<Table> {
    let f = view.findings;
    let rows = [Scope::All, Scope::Idle].into_iter().flat_map(|scope| {
        [600].into_iter().chain(AHEAD_S).filter_map(move |ahead_s| {
            let own = quality_of(f, scope, ahead_s, "gleaner")?;
            let mut row = vec![Cell::seconds(ahead_s as f64), scope_cell(scope)];
            row.extend(MODELS.map(|(model, _)| {
                Cell::or_absent(score(f, scope, ahead_s, model), |score| {
                    Cell::of(Kind::Number, format!("{score:.4}"), "", score)
                })
            }));
            row.push(Cell::of(
                Kind::Number,
                format!("{:.5}", own.reliability),
                "",
                own.reliability,
            ));
            row.push(Cell::or_absent(own.calibration_slope, |slope| {
                Cell::of(Kind::Number, format!("{slope:.2}"), "", slope)
            }));
            row.push(Cell::count(own.instants));
            Some(row)
        })
    });
    let mut columns = vec![numbers("ahead"), words("time")];
    columns.extend(MODELS.map(|(_, label)| numbers(label)));
    columns.extend(["reliability", "slope", "instants"].map(numbers));
    let table = Table::new(
        format!("{}forecast-quality", view.prefix),
        "How good forecasts of half a host’s memory were: Brier score, lower is better",
        columns,
    )
    .with_rows(rows.collect())?;
    Some(table.with_note(
        format!(
            "Brier score: the mean square of the probability less what came, 1 or 0, on days that lay ahead of all that was learnt from. 0 is perfect; to say 50 % of everything makes 0.25. By age: by how long the region was \
             available. By state: by that, by how much more was available, and by the least of the day. Reliability and slope are of \
             these forecasts. Reliability is the part of their score that comes of forecasts which do not come true as often as they \
             say: 0 is perfect. Slope: above 1 forecasts are too close together, below 1 too far apart. {SCOPE_NOTE}"
        ),
    ))
}

/// Forecast against what came, for three times ahead; absent without any.
fn calibration(view: &View) -> Option<Figure> {
    const MARKS: [(&str, MarkerSymbol, &str); 3] = [
        ("size-1", MarkerSymbol::Circle, "dot"),
        ("size-2", MarkerSymbol::Square, "area"),
        ("size-3", MarkerSymbol::Diamond, "diamond"),
    ];
    let all = view.findings.forecast_calibration.iter();
    let pooled: Vec<&ForecastCalibration> = all
        .filter(|c| c.region_bytes.is_none() && c.region_share.is_none() && c.instants > 0)
        .collect();
    let scope = if pooled.iter().any(|c| c.scope == Scope::Idle) {
        Scope::Idle
    } else {
        Scope::All
    };
    let mut data: Vec<Box<dyn Trace>> = vec![diagonal()];
    let mut key = Vec::new();
    let mut said = None;
    for (ahead_s, (colour, symbol, mark)) in AHEAD_S.into_iter().zip(MARKS) {
        let bins: Vec<&&ForecastCalibration> = pooled
            .iter()
            .filter(|c| c.scope == scope && c.ahead_s == ahead_s)
            .collect();
        if bins.is_empty() {
            continue;
        }
        let (n, off) = bins.iter().fold((0.0, 0.0), |(n, off), c| {
            let weight = c.instants as f64;
            (
                n + weight,
                off + weight * (c.mean_forecast - c.observed_share).abs(),
            )
        });
        said.get_or_insert_with(|| {
            let sure = bins
                .iter()
                .filter(|c| c.instants >= FEW_INSTANTS || bins.len() == 1)
                .max_by(|a, b| a.bin_low.total_cmp(&b.bin_low));
            let sure = sure.map(|c| {
                format!(
                    "of what was given {} to {}, {} ahead, {} stayed",
                    share(c.bin_low),
                    share(c.bin_high),
                    seconds(ahead_s as f64),
                    share(c.observed_share)
                )
            });
            format!(
                "On the dotted line what is forecast comes true{}. On average forecasts were {} off it{}.",
                sure.map(|s| format!(": {s}")).unwrap_or_default(),
                share(off / n).replace('%', "points"),
                if scope == Scope::Idle {
                    ", the owner’s return counting as a loss"
                } else {
                    ""
                }
            )
        });
        data.push(dots(
            colour,
            symbol,
            bins.iter()
                .map(|c| {
                    (
                        c.mean_forecast,
                        c.observed_share,
                        c.instants as f64,
                        format!(
                            "{} ahead, {}",
                            seconds(ahead_s as f64),
                            count(c.instants, "instant")
                        ),
                    )
                })
                .collect(),
        ));
        key.push(Key {
            colour,
            mark,
            label: format!("{} ahead", seconds(ahead_s as f64)),
            value: String::new(),
        });
    }
    Some(Figure {
        id: format!("{}forecast-calibration", view.prefix),
        title:
            "Whether forecasts came true: regions of all sizes, the larger the dot the more of them"
                .into(),
        sentence: said?,
        key,
        height_px: 360,
        plot: Plot {
            times: Vec::new(),
            data,
            layout: calibration_layout("stayed available"),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::ask;
    use gleaner_schemas::findings::HostSummary;

    const HOUR_MS: i64 = 3_600_000;

    fn forecast(host: &str, hours_ago: i64, probability: f64) -> Forecast {
        Forecast {
            host: host.into(),
            time_ms: 100 * HOUR_MS - hours_ago * HOUR_MS,
            scope: Scope::All,
            region_bytes: 8 << 30,
            region_share: Some(0.5),
            ahead_s: 3600,
            probability,
        }
    }

    fn score_of(model: &str, brier_score: f64) -> ForecastQuality {
        ForecastQuality {
            scope: Scope::All,
            region_bytes: None,
            region_share: Some(0.5),
            ahead_s: 3600,
            model: model.into(),
            brier_score,
            reliability: 0.001,
            resolution: 0.002,
            uncertainty: 0.02,
            calibration_slope: None,
            instants: 100,
            origins: 3,
            hosts_count: 2,
        }
    }

    #[test]
    fn what_is_sure_is_summed_over_hosts_that_are_still_there() {
        let findings = Findings {
            hosts: ["a", "b", "c"]
                .map(|host| HostSummary {
                    host: host.into(),
                    to_time_ms: 100 * HOUR_MS,
                    ..HostSummary::default()
                })
                .to_vec(),
            forecasts: vec![
                forecast("a", 0, 0.95),
                forecast("b", 0, 0.5),
                forecast("c", 9, 0.99),
            ],
            ..Findings::default()
        };
        let text = ask(&findings, None, stays_words)
            .unwrap()
            .replace('\u{a0}', " ");
        assert!(text.contains("the 2 hosts that have it"), "{text}");
        assert!(text.contains("on 8.0 GiB for 1 h."), "{text}");
        assert!(text.contains("Of 1 host nothing is said"), "{text}");
        let table = ask(&findings, None, stays).unwrap();
        let row: Vec<Option<f64>> = table.rows[0].iter().map(|c| c.value).collect();
        let gib = |n: f64| Some(n * 1_073_741_824.0);
        assert_eq!(
            row[2..],
            [Some(2.0), gib(16.0), Some(1.0), gib(8.0), gib(11.6)]
        );
    }

    #[test]
    fn forecasts_no_better_than_simple_ones_are_called_so() {
        let words = |own, flat, rate| {
            let findings = Findings {
                forecast_quality: vec![
                    score_of("gleaner", own),
                    score_of("climatology", flat),
                    score_of("host_rate", rate),
                ],
                ..Findings::default()
            };
            quality_words(&findings).unwrap().replace('\u{a0}', " ")
        };
        let good = words(0.01, 0.02, 0.015);
        assert!(
            good.contains("50 % less than") && good.contains("(host’s own rate) is worse"),
            "{good}"
        );
        let bad = words(0.03, 0.02, 0.02);
        assert!(
            bad.contains("nothing is gained") && bad.contains("is better"),
            "{bad}"
        );
        assert_eq!(quality_words(&Findings::default()), None);
    }

    #[test]
    fn calibration_stands_beside_the_score_and_is_called_what_it_is() {
        let of = |calibration_slope| Findings {
            forecast_quality: vec![ForecastQuality {
                calibration_slope,
                ..score_of("gleaner", 0.01)
            }],
            ..Findings::default()
        };
        let row = |slope| {
            let table = ask(&of(slope), None, quality).unwrap();
            let columns: Vec<String> = (table.columns.iter())
                .map(|c| c.label.to_string())
                .collect();
            let row: Vec<Option<f64>> = table.rows[0].iter().map(|c| c.value).collect();
            let of = |label: &str| row[columns.iter().position(|c| c == label).unwrap()];
            (of("reliability"), of("slope"))
        };
        assert_eq!(row(Some(1.5)), (Some(0.001), Some(1.5)));
        assert_eq!(row(None), (Some(0.001), None));
        let words = |slope| quality_words(&of(slope)).unwrap();
        assert!(words(Some(1.5)).contains("too cautious"));
        assert!(words(Some(0.5)).contains("too sure"));
        for unremarkable in [Some(1.1), Some(0.9), None] {
            assert!(!words(unremarkable).contains("too "));
        }
    }
}
