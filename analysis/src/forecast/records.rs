//! Findings of the forecasts: the learnt shares and their quality.

use super::calibration::{BOUNDS, Calibration};
use super::counts::Count;
use super::instants::DAY_MS;
use super::region_shares::{LearntRegion, MODELS, Shares};
use super::rolling::{Scores, roll};
use super::{HostPart, Region};
use crate::error::AnalysisError;
use crate::in_order;
use gleaner_policy::forecast::table::{self, Question, Table};
use gleaner_policy::forecast::{AHEAD, AHEAD_S, Bins, SLOTS, TABLE_VERSION};
use gleaner_schemas::findings::{
    Findings, Forecast, ForecastCalibration, ForecastCell, ForecastHabit, ForecastQuality,
    ForecastTableSize, ForecastWeight, MissingMeasure, Parameters, Scope,
};
use gleaner_schemas::units::Seconds;
use std::array::from_fn;
use std::sync::Arc;

/// A region in one scope, and the destination of its records.
#[derive(Clone, Copy, Debug)]
struct Series {
    scope: Scope,
    /// Index of the region among the requested ones.
    index: usize,
    region_bytes: Option<i64>,
    region_share: Option<f64>,
}

/// Writes all records of the hosts, in the order of their ids.
pub(super) fn write(hosts: &[Arc<HostPart>], parameters: &Parameters, findings: &mut Findings) {
    // Sums of floating-point numbers depend on their order.
    let mut hosts = hosts.to_vec();
    hosts.sort_by(|a, b| a.host.cmp(&b.host));
    let hosts = &hosts[..];
    let mut all: Vec<Series> = Vec::new();
    for scope in [Scope::All, Scope::Idle] {
        if hosts.iter().any(|h| !h.counts(scope).is_empty()) {
            let regions = Region::all(parameters).into_iter().enumerate();
            all.extend(regions.map(|(index, region)| Series::new(scope, index, region)));
        }
    }
    let roll = |series: &Series| {
        let counts: Vec<&[Count]> = hosts.iter().map(|h| series.of(h)).collect();
        Ok(roll(&counts, |_, _| {}))
    };
    let mut together: Vec<(Scope, [Calibration; AHEAD])> = Vec::new();
    let mut at = all.iter();
    let written = in_order::each(&all, roll, |(learnt, scores)| {
        if let Some(series) = at.next() {
            series.quality(&scores, findings);
            let own = scores.ahead.map(|score| {
                let [gleaner, ..] = score.calibration;
                gleaner
            });
            for (ahead, calibration) in own.iter().enumerate() {
                findings
                    .forecast_calibration
                    .extend(series.calibration(ahead, calibration));
            }
            series.cells(&learnt, findings);
            series.habits(hosts, &learnt, findings);
            series.weights(&learnt, findings);
            pool(&mut together, series.scope, own);
        }
        Ok::<(), AnalysisError>(())
    });
    debug_assert!(written.is_ok(), "counting cannot fail");
    for (scope, calibrations) in &together {
        let regions = Series {
            scope: *scope,
            index: 0,
            region_bytes: None,
            region_share: None,
        };
        for (ahead, calibration) in calibrations.iter().enumerate() {
            findings
                .forecast_calibration
                .extend(regions.calibration(ahead, calibration));
        }
    }
    findings.forecast_table_size.push(ForecastTableSize::of(
        TABLE_VERSION,
        &findings.forecast_table,
        &findings.forecast_habits,
        &findings.forecast_weights,
    ));
    forecasts(hosts, &all, findings);
    missing(hosts, findings);
}

fn pool(
    together: &mut Vec<(Scope, [Calibration; AHEAD])>,
    scope: Scope,
    calibrations: [Calibration; AHEAD],
) {
    match together.iter_mut().find(|(s, _)| *s == scope) {
        Some((_, pooled)) => {
            for (mine, other) in pooled.iter_mut().zip(&calibrations) {
                mine.add_bins(other);
            }
        }
        None => together.push((scope, calibrations)),
    }
}

/// Forecasts for each host at its last sample, from the table as written.
fn forecasts(hosts: &[Arc<HostPart>], all: &[Series], findings: &mut Findings) {
    let Some(table) = Table::of(findings) else {
        return; // cannot happen: the table was just written
    };
    for host in hosts.iter().filter(|h| h.covered_ms >= DAY_MS) {
        for series in all {
            let counts = host.counts(series.scope).get(series.index);
            let region = table::Region::of(series.region_bytes, series.region_share);
            let (Some(state), Some(region)) = (counts.and_then(|c| c.last), region) else {
                continue;
            };
            findings
                .forecasts
                .extend(AHEAD_S.iter().filter_map(|&ahead_s| {
                    let probability = table.probability(&Question {
                        host: &host.host,
                        scope: series.scope,
                        region,
                        state,
                        hour_of_week: host.hour_of_week,
                        ahead_s,
                    })?;
                    Some(Forecast {
                        host_id: host.host.clone(),
                        time_ms: host.time_ms,
                        scope: series.scope,
                        region_bytes: state.region_bytes,
                        region_share: series.region_share,
                        ahead_s,
                        probability: rounded(probability),
                    })
                }));
        }
    }
}

/// Notes the findings that cannot be given, with the reason.
fn missing(hosts: &[Arc<HostPart>], findings: &mut Findings) {
    let quality_is_empty = findings.forecast_quality.is_empty();
    let mut say = |measure: &str, host: &str, reason: String| {
        findings.missing_measures.push(MissingMeasure {
            measure: measure.to_owned(),
            host_id: host.to_owned(),
            reason,
        });
    };
    for host in hosts.iter().filter(|h| h.covered_ms < DAY_MS) {
        let covered = Seconds::from_ms(host.covered_ms);
        let reason = format!("its samples cover {covered}, and a forecast needs a day of them");
        say("forecasts", &host.host, reason);
    }
    if hosts.iter().all(|h| h.idle.is_empty()) {
        let reason = "in idle time: of no host can it be told when it was idle";
        say("forecasts", "all", reason.to_owned());
    }
    if quality_is_empty {
        let reason = "no region was available on days that lay ahead of all that was learnt from: \
                      it takes three days at least";
        say("forecast_quality", "all", reason.to_owned());
    }
}

impl Series {
    fn new(scope: Scope, index: usize, region: Region) -> Self {
        let (region_bytes, region_share) = match region {
            Region::Bytes(bytes) => (Some(bytes), None),
            Region::Share(share) => (None, Some(share)),
        };
        Self {
            scope,
            index,
            region_bytes,
            region_share,
        }
    }

    /// Counts of the series on one host.
    fn of(self, host: &HostPart) -> &[Count] {
        let counts = host.counts(self.scope).get(self.index);
        counts.map_or(&[], |c| &c.counts)
    }

    fn quality(self, scores: &Scores, findings: &mut Findings) {
        for (score, ahead_s) in scores.ahead.iter().zip(AHEAD_S) {
            if score.instants == 0 {
                continue;
            }
            let models = MODELS.iter().zip(score.squares).zip(&score.calibration);
            let scored = models.filter_map(|((model, squares), calibration)| {
                let parts = calibration.parts()?;
                Some(ForecastQuality {
                    scope: self.scope,
                    region_bytes: self.region_bytes,
                    region_share: self.region_share,
                    ahead_s,
                    model: (*model).to_owned(),
                    brier_score: squares / score.instants as f64,
                    reliability: parts.reliability,
                    resolution: parts.resolution,
                    uncertainty: parts.uncertainty,
                    calibration_slope: calibration.slope(),
                    instants_count: score.instants as i64,
                    origins_count: score.origins as i64,
                    hosts_count: score.hosts_count as i64,
                })
            });
            findings.forecast_quality.extend(scored);
        }
    }

    fn calibration(
        self,
        ahead: usize,
        calibration: &Calibration,
    ) -> impl Iterator<Item = ForecastCalibration> {
        let bins = calibration.bins.iter().zip(BOUNDS.windows(2));
        bins.filter(|(bin, _)| bin.instants > 0)
            .map(move |(bin, bounds)| ForecastCalibration {
                scope: self.scope,
                region_bytes: self.region_bytes,
                region_share: self.region_share,
                ahead_s: AHEAD_S[ahead],
                bin_low: bounds[0],
                bin_high: bounds[1],
                mean_forecast: bin.forecast / bin.instants as f64,
                observed_share: bin.stayed as f64 / bin.instants as f64,
                instants_count: bin.instants as i64,
            })
    }

    /// Adds a record for every observed state, and for the coarser states that it refines.
    fn cells(self, learnt: &LearntRegion, findings: &mut Findings) {
        let mut cell =
            |bins: [Option<u8>; 3], shares: &Shares, lost: &dyn Fn(usize) -> Option<f64>| {
                for (ahead, share) in shares.iter().enumerate().filter(|(_, s)| s.instants > 0) {
                    findings
                        .forecast_table
                        .extend(lost(ahead).map(|lost| ForecastCell {
                            scope: self.scope,
                            region_bytes: self.region_bytes,
                            region_share: self.region_share,
                            age_bin: bins[0].map(i64::from),
                            margin_bin: bins[1].map(i64::from),
                            low_bin: bins[2].map(i64::from),
                            ahead_s: AHEAD_S[ahead],
                            probability: rounded(1.0 - lost),
                            instants_count: share.instants as i64,
                        }));
                }
            };
        cell([None; 3], &learnt.all, &|ahead| learnt.climatology(ahead));
        let [ages, margins, lows] = Bins::COUNTS.map(|count| 0..count as u8);
        for (age, shares) in ages.zip(&learnt.by_age) {
            cell([Some(age), None, None], shares, &|ahead| {
                learnt.of_age(age.into(), ahead)
            });
            for margin in margins.clone() {
                let any_low = Bins {
                    age,
                    margin,
                    low: 0,
                };
                let (by_margin, by_bins) = super::region_shares::places(any_low);
                cell(
                    [Some(age), Some(margin), None],
                    &learnt.by_margin[by_margin],
                    &|ahead| learnt.of_margin(any_low, ahead),
                );
                for low in lows.clone() {
                    let bins = Bins { low, ..any_low };
                    cell(
                        [Some(age), Some(margin), Some(low)],
                        &learnt.by_bins[by_bins + usize::from(low)],
                        &|ahead| learnt.state(bins, ahead),
                    );
                }
            }
        }
    }

    /// Adds the habits of every host at any time of the week; for a host that ever lost such a region, also
    /// those at each observed time of the week.
    fn habits(self, hosts: &[Arc<HostPart>], learnt: &LearntRegion, findings: &mut Findings) {
        for (index, part) in hosts.iter().enumerate() {
            let of_host = &learnt.hosts[index];
            if of_host.iter().all(|s| s.instants == 0) {
                continue;
            }
            let habit = |slot: Option<u8>, shares: &Shares, lost: [Option<f64>; AHEAD]| {
                ForecastHabit {
                    scope: self.scope,
                    region_bytes: self.region_bytes,
                    region_share: self.region_share,
                    host_id: part.host.clone(),
                    slot: slot.map(i64::from),
                    instants_count: shares[0].instants as i64,
                    ..ForecastHabit::default()
                }
                .with_lost(lost.map(|lost| lost.map(rounded)))
            };
            let any_time = from_fn(|ahead| learnt.habit(index, None, ahead));
            findings
                .forecast_habits
                .push(habit(None, of_host, any_time));
            self.states(index, part, learnt, findings);
            for slot in 0..SLOTS as u8 {
                let shares = &learnt.slots[index][usize::from(slot)];
                let lost: [Option<f64>; AHEAD] = from_fn(|ahead| {
                    let is_told = of_host[ahead].lost > 0 && shares[ahead].instants > 0;
                    let lost = is_told.then(|| learnt.habit(index, Some(slot), ahead));
                    lost.flatten()
                });
                if lost.iter().any(Option::is_some) {
                    findings
                        .forecast_habits
                        .push(habit(Some(slot), shares, lost));
                }
            }
        }
    }

    /// Adds a record for every state observed on one host in which the host's share differs from that of all
    /// hosts.
    fn states(self, index: usize, part: &HostPart, learnt: &LearntRegion, findings: &mut Findings) {
        for (&by_bins, shares) in &learnt.host_cells[index] {
            let bins = super::region_shares::bins_at(by_bins);
            let lost: [Option<f64>; AHEAD] = from_fn(|ahead| {
                let own = learnt.state_on(index, bins, ahead).map(rounded)?;
                let is_told = shares[ahead].instants > 0
                    && learnt.state(bins, ahead).map(rounded) != Some(own);
                is_told.then_some(own)
            });
            if lost.iter().all(Option::is_none) {
                continue;
            }
            let of_state = ForecastHabit {
                scope: self.scope,
                region_bytes: self.region_bytes,
                region_share: self.region_share,
                host_id: part.host.clone(),
                age_bin: Some(bins.age.into()),
                margin_bin: Some(bins.margin.into()),
                low_bin: Some(bins.low.into()),
                instants_count: shares[0].instants as i64,
                ..ForecastHabit::default()
            };
            findings.forecast_habits.push(of_state.with_lost(lost));
        }
    }

    fn weights(self, learnt: &LearntRegion, findings: &mut Findings) {
        for (ahead, &ahead_s) in AHEAD_S.iter().enumerate() {
            if learnt.all[ahead].instants > 0 {
                findings.forecast_weights.push(ForecastWeight {
                    scope: self.scope,
                    region_bytes: self.region_bytes,
                    region_share: self.region_share,
                    ahead_s,
                    habit_weight: rounded(learnt.habit_weight(ahead)),
                    spread_about: learnt.spread(ahead).map(|(about, _)| about),
                    spread: learnt.spread(ahead).map(|(_, by)| rounded(by)),
                });
            }
        }
    }
}

/// Rounds to the digits that the numbers of instants justify, which keeps the table small.
fn rounded(probability: f64) -> f64 {
    (probability * 1e5).round() / 1e5
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::counts::Counts;
    use gleaner_policy::forecast::State;
    use proptest::prelude::*;

    fn count() -> impl Strategy<Value = Count> {
        let bins = (0..4u8, 0..6u8, 0..6u8);
        let fates = prop::array::uniform9((0..100u8, 0..100u8));
        (0..4i32, 0..3u8, 0..12u8, bins, fates).prop_map(
            |(day, days_until_known, slot, (age, margin, low), fates)| Count {
                day,
                days_until_known,
                slot,
                bins: Bins { age, margin, low },
                instants: fates.map(|(instants, _)| instants),
                lost: fates.map(|(instants, lost)| lost.min(instants)),
            },
        )
    }

    /// An example of a state that falls into these bins.
    fn state(bins: Bins) -> State {
        let region_bytes = 1_000_000;
        let of = |parts: [f64; 6], bin: u8| (parts[usize::from(bin)] * 1e6) as i64;
        State {
            age_s: [0, 1800, 14_400, 86_400][usize::from(bins.age)],
            available_bytes: of([1.0, 1.1, 1.25, 1.5, 2.0, 4.0], bins.margin),
            low_bytes: of([0.1, 0.8, 1.0, 1.25, 1.5, 2.0], bins.low),
            region_bytes,
        }
    }

    proptest! {
        /// A reader of the table computes the same forecasts that were scored.
        #[test]
        fn the_table_says_what_was_scored(
            hosts in prop::collection::vec(prop::collection::vec(count(), 1..20), 1..4)
        ) {
            let slices: Vec<&[Count]> = hosts.iter().map(Vec::as_slice).collect();
            let (learnt, _) = roll(&slices, |_, _| {});
            let parts: Vec<Arc<HostPart>> = (0..hosts.len())
                .map(|i| Arc::new(HostPart {
                    host: format!("host {i}"),
                    time_ms: 0,
                    hour_of_week: 0,
                    covered_ms: DAY_MS,
                    all: vec![Counts::default()],
                    idle: Vec::new(),
                }))
                .collect();
            let series = Series::new(Scope::All, 0, Region::Share(0.5));
            let mut found = Findings::default();
            series.cells(&learnt, &mut found);
            series.habits(&parts, &learnt, &mut found);
            series.weights(&learnt, &mut found);
            let table = Table::new(
                &found.forecast_table, &found.forecast_habits, &found.forecast_weights,
            );
            for (host, counts) in hosts.iter().enumerate() {
                for count in counts {
                    for (ahead, ahead_s) in AHEAD_S.into_iter().enumerate() {
                        let scored = learnt.probabilities(host, count.slot, count.bins, ahead);
                        let said = table.probability(&Question {
                            host: &parts[host].host,
                            scope: Scope::All,
                            region: table::Region::Millionths(500_000),
                            state: state(count.bins),
                            hour_of_week: count.slot / 6 * 120 + count.slot % 6 * 4,
                            ahead_s,
                        });
                        // The table's figures are rounded to 10⁻⁵ before the odds are spread. Spreading at
                        // most doubles a distance of log-odds.
                        let close = scored.zip(said).map(|(scored, said)| {
                            let of = |p: f64| p * (1.0 - p);
                            let scale = of(scored.models[0]) / of(scored.mixed).max(1e-5);
                            let spread = if scored.models[0] == scored.mixed { 1.0 } else { 2.0 * scale };
                            (1.0 - scored.models[0] - said).abs() < 6e-5 * (1.0 + spread)
                        });
                        prop_assert!(
                            close.unwrap_or(scored.is_none() && said.is_none()), "{scored:?} {said:?}"
                        );
                    }
                }
            }
        }
    }
}
