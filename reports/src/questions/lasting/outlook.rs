//! Forecasts that begin at the hosts' last samples: memory expected to stay available, and the quality of
//! such forecasts.

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

/// Share of each host's memory that the summary is about.
const HALF: f64 = 0.5;

/// Maximum time from a host's last sample to the last sample of all hosts. The summary leaves out hosts whose
/// samples ended earlier.
const LEFT_MS: i64 = 3_600_000;

/// Minimum probability of staying available for memory that the page calls lasting.
const SURE: f64 = 0.9;

/// Minimum number of instants in a bin: a sentence mentions no bin with fewer.
const FEW_INSTANTS: i64 = 30;

/// Minimum difference of a calibration slope from 1: a sentence mentions no smaller difference.
const SLOPE_OFF: f64 = 0.25;

const AHEAD_S: [i64; 3] = [3600, 14_400, 86_400];

const MODELS: [(&str, &str); 5] = [
    ("gleaner", "these forecasts"),
    ("climatology", "one probability for all"),
    ("age", "by age"),
    ("host_rate", "host’s own rate"),
    ("bins", "by state"),
];

pub(super) fn parts(view: &View) -> Vec<Part> {
    let f = view.findings;
    let mut parts = Vec::new();
    if let Some(table) = stays(view) {
        parts.extend(odds_words(view).map(Part::Say));
        parts.push(Part::Table(table));
    }
    parts.extend(quality_words(f).map(Part::Say));
    parts.extend(quality(view).map(Part::Table));
    parts.extend(calibration(view).map(Part::figure));
    parts
}

/// Forecasts for half of a host's memory, for the hosts that had samples until the end.
fn current<'a>(view: &'a View) -> Vec<&'a Forecast> {
    let end_ms = view.span_ms().map_or(0, |(_, to)| to);
    let halves = view.findings.forecasts.iter();
    halves
        .filter(|x| x.region_share == Some(HALF) && x.time_ms >= end_ms - LEFT_MS)
        .collect()
}

/// Hosts and bytes of one scope that are expected to stay available for a time.
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

fn odds_words(view: &View) -> Option<String> {
    let current = current(view);
    let hosts: HashSet<&str> = current.iter().map(|x| x.host_id.as_str()).collect();
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
            " There is no forecast for {}: less than half of the memory was available at the end, less than a day was traced, or there is no \
             sample in the last hour.",
            count(n, "host")
        ),
    };
    Some(format!(
        "Forecast from the last samples on ({}): {} had half of their memory available. If each host lends that half, the memory that \
         stays available with a probability of at least {} is {}.{others}",
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
        "Forecast from the last sample on: half of each host’s memory that stays available throughout",
        vec![
            numbers("duration"),
            words("time"),
            numbers("hosts"),
            numbers("half of their memory"),
            numbers("hosts at 90 %"),
            numbers("memory at 90 %"),
            numbers("expected"),
        ],
    )
    .with_rows(rows.collect())?;
    Some(table.with_note(
        "At 90 %: regions that each stay available with a probability of 90 % or more. Expected: sum of all regions, each weighted by its \
         probability.",
    ))
}

/// Brier score of one model for half of a host's memory.
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
            && q.instants_count > 0
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
            format!(", {} less than with one probability for all", share(less))
        } else if less < -0.02 {
            format!(
                ", {} more than with one probability for all: these forecasts do not help here",
                share(-less)
            )
        } else {
            ", no less than with one probability for all".into()
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
        "The forecasts were tested on {}, each from earlier data only ({}, half of a host’s memory, an hour ahead). Their Brier score, the \
         mean square of probability less outcome, was {:.4}{}.{}{}",
        count(own.origins_count, "day"),
        count(own.instants_count, "instant"),
        own.brier_score,
        against_flat.unwrap_or_default(),
        best.unwrap_or_default(),
        own.calibration_slope.map(slope_words).unwrap_or_default()
    ))
}

/// Sentence on a calibration slope that is far from 1.
fn slope_words(slope: f64) -> String {
    if slope > 1.0 + SLOPE_OFF {
        format!(
            " They were too cautious (calibration slope {slope:.2}): regions with a high forecast stayed available more often than forecast, \
             and regions with a low forecast less often."
        )
    } else if slope < 1.0 / (1.0 + SLOPE_OFF) {
        format!(
            " They were too sure (calibration slope {slope:.2}): regions with a high forecast stayed available less often than forecast, \
             and regions with a low forecast more often."
        )
    } else {
        String::new()
    }
}

/// Table of the Brier scores of all models, and the calibration of these forecasts.
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
            row.push(Cell::count(own.instants_count));
            Some(row)
        })
    });
    let mut columns = vec![numbers("ahead"), words("time")];
    columns.extend(MODELS.map(|(_, label)| numbers(label)));
    columns.extend(["reliability", "slope", "instants"].map(numbers));
    let table = Table::new(
        format!("{}forecast-quality", view.prefix),
        "Quality of the forecasts for half of a host’s memory: Brier score, lower is better",
        columns,
    )
    .with_rows(rows.collect())?;
    Some(table.with_note(
        format!(
            "Brier score: mean square of probability less outcome (1 or 0), on days after all data used for learning. 0 is perfect; a \
             constant forecast of 50 % scores 0.25. By age: from how long the region was available. By state: from that time, from the \
             further available memory, and from the day’s minimum. Reliability and slope are for these forecasts. Reliability is the \
             part of the score that is due to wrong probabilities: 0 is perfect. Slope: above 1, forecasts are too close together; \
             below 1, too far apart. {SCOPE_NOTE}"
        ),
    ))
}

/// Figure of forecast against observed share, for three horizons; absent without forecasts.
fn calibration(view: &View) -> Option<Figure> {
    const MARKS: [(&str, MarkerSymbol, &str); 3] = [
        ("size-1", MarkerSymbol::Circle, "dot"),
        ("size-2", MarkerSymbol::Square, "area"),
        ("size-3", MarkerSymbol::Diamond, "diamond"),
    ];
    let all = view.findings.forecast_calibration.iter();
    let pooled: Vec<&ForecastCalibration> = all
        .filter(|c| c.region_bytes.is_none() && c.region_share.is_none() && c.instants_count > 0)
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
            let weight = c.instants_count as f64;
            (
                n + weight,
                off + weight * (c.mean_forecast - c.observed_share).abs(),
            )
        });
        said.get_or_insert_with(|| {
            let sure = bins
                .iter()
                .filter(|c| c.instants_count >= FEW_INSTANTS || bins.len() == 1)
                .max_by(|a, b| a.bin_low.total_cmp(&b.bin_low));
            let sure = sure.map(|c| {
                format!(
                    "with a forecast of {} to {}, {} ahead, {} stayed available",
                    share(c.bin_low),
                    share(c.bin_high),
                    seconds(ahead_s as f64),
                    share(c.observed_share)
                )
            });
            format!(
                "On the dotted line, forecast and observed share are equal{}. On average, forecasts differ from it by {}{}.",
                sure.map(|s| format!("; {s}")).unwrap_or_default(),
                share(off / n).replace('%', "points"),
                if scope == Scope::Idle {
                    "; the owner’s return counts as a loss"
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
                        c.instants_count as f64,
                        format!(
                            "{} ahead, {}",
                            seconds(ahead_s as f64),
                            count(c.instants_count, "instant")
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
            "Forecast and observed probability, for regions of all sizes; larger dots stand for more regions"
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
            host_id: host.into(),
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
            instants_count: 100,
            origins_count: 3,
            hosts_count: 2,
        }
    }

    #[test]
    fn what_is_sure_is_summed_over_hosts_that_are_still_there() {
        let findings = Findings {
            hosts: ["a", "b", "c"]
                .map(|host| HostSummary {
                    host_id: host.into(),
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
        let text = ask(&findings, None, odds_words)
            .unwrap()
            .replace('\u{a0}', " ");
        assert!(text.contains("2 hosts had half of their memory"), "{text}");
        assert!(text.contains("is 8.0 GiB for 1 h."), "{text}");
        assert!(text.contains("There is no forecast for 1 host"), "{text}");
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
            bad.contains("do not help here") && bad.contains("is better"),
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
