//! Invented findings on how long memory stays available: two working days by hour, odds that fall with the
//! horizon, forecasts.

use super::GIB;
use gleaner_schemas::findings::*;

const HOURS: i64 = 48;
const AHEAD_S: [f64; 6] = [600.0, 3600.0, 14_400.0, 43_200.0, 86_400.0, 259_200.0];
const SCOPES: [Scope; 2] = [Scope::All, Scope::Idle];

/// Degree to which owners are busy, from 0 at night to 1 at noon.
fn business(hour: i64) -> f64 {
    let from_noon = (hour as f64 - 12.5).abs();
    (1.0 - from_noon / 6.0).max(0.0)
}

/// Probability that a region stays available; smaller for larger regions, longer horizons and idle time.
fn stays(region_bytes: i64, scope: Scope, ahead_s: f64) -> f64 {
    let half_s = match scope {
        Scope::All => 90_000.0,
        Scope::Idle => 9_000.0,
    };
    let size = 1.0 + region_bytes as f64 / (16.0 * GIB);
    (-ahead_s * size / half_s).exp()
}

pub fn fill(f: &mut Findings) {
    for hour in 0..HOURS {
        by_hour(f, 1 + hour / 24, hour % 24);
    }
    for region_bytes in [1, 4, 16].map(|gib| gib << 30) {
        for scope in SCOPES {
            for ahead_s in AHEAD_S {
                f.availability_odds.push(odds(region_bytes, scope, ahead_s));
            }
            f.survival_curves.extend(
                (1..20)
                    .map(|step| point(region_bytes, scope, 600.0 * f64::from(step).exp2() / 2.0)),
            );
            for (quantile, share) in [(0.05, 0.05), (0.25, 0.4), (0.5, 1.0)] {
                f.period_bounds.push(PeriodBound {
                    size_class: "all".into(),
                    scope,
                    region_bytes,
                    quantile,
                    confidence: 0.95,
                    bound_s: (region_bytes < 16 << 30).then_some(share * 9_000.0),
                    periods_count: 61,
                    censored_share: 0.08,
                    autocorrelation: Some(0.1),
                    verdict: match region_bytes >> 30 {
                        1 => BoundVerdict::Holds,
                        4 => BoundVerdict::Censored,
                        _ => BoundVerdict::TooFew,
                    },
                });
            }
            for copies_count in [2, 3] {
                f.copies.push(copies(region_bytes, scope, copies_count));
            }
        }
    }
    forecasts(f);
}

fn by_hour(f: &mut Findings, weekday: i64, hour: i64) {
    let busy = business(hour);
    f.idle_by_hour.push(IdleByHour {
        size_class: "all".into(),
        weekday,
        hour,
        samples_count: 80,
        idle_share: 0.95 - 0.7 * busy,
    });
    for (category, share) in [("available", 0.9), ("harvestable", 0.7)] {
        let mean_share = share - 0.4 * busy;
        f.memory_usage_by_hour.push(MemoryUsageByHour {
            size_class: "all".into(),
            weekday,
            hour,
            category: category.into(),
            samples_count: 80,
            mean_bytes: mean_share * 30.0 * GIB,
            min_bytes: GIB as i64,
            mean_share,
        });
    }
    for (region_bytes, scope) in [1, 4, 16]
        .map(|gib| gib << 30)
        .into_iter()
        .flat_map(|region| SCOPES.map(|scope| (region, scope)))
    {
        let large = region_bytes as f64 / (32.0 * GIB);
        f.availability_by_hour.push(AvailabilityByHour {
            size_class: "all".into(),
            scope,
            region_bytes,
            weekday,
            hour,
            available_share: 1.0 - large - 0.4 * busy,
            // Instants in the last hour cannot be followed for an hour.
            available_1h_probability: (weekday == 1 || hour < 23)
                .then(|| stays(region_bytes, scope, 3600.0) * (1.0 - 0.5 * busy)),
            counted_s: 9_000.0,
        });
    }
}

fn odds(region_bytes: i64, scope: Scope, ahead_s: f64) -> AvailabilityOdds {
    let available_probability = stays(region_bytes, scope, ahead_s);
    let lost = 1.0 - available_probability;
    let owner = if scope == Scope::Idle {
        0.6 * lost
    } else {
        0.0
    };
    AvailabilityOdds {
        size_class: "all".into(),
        scope,
        notion: Notion::Available,
        region_bytes,
        ahead_s,
        observed_s: 400_000.0,
        available_probability,
        low: Some(available_probability * 0.9),
        high: Some(1.0 - 0.8 * lost),
        lost_to_owner_probability: owner,
        lost_to_load_probability: 0.0,
        lost_to_memory_probability: 0.7 * (lost - owner),
        lost_to_sleep_or_power_probability: 0.3 * (lost - owner),
        lost_to_network_probability: 0.0,
        lost_to_agent_probability: 0.0,
    }
}

fn point(region_bytes: i64, scope: Scope, age_s: f64) -> SurvivalPoint {
    let survival = stays(region_bytes, scope, age_s);
    SurvivalPoint {
        size_class: "all".into(),
        scope,
        region_bytes,
        age_s,
        at_risk_count: (61.0 * survival).ceil() as i64,
        ended_count: 1,
        censored_count: 0,
        survival,
        low: survival * 0.8,
        high: 1.0 - 0.8 * (1.0 - survival),
    }
}

fn copies(region_bytes: i64, scope: Scope, copies_count: i64) -> Copies {
    let one_lost_probability = 1.0 - stays(region_bytes, scope, 3600.0);
    let independent = one_lost_probability.powi(copies_count as i32);
    Copies {
        scope,
        region_bytes,
        ahead_s: 3600.0,
        copies_count,
        one_lost_probability,
        all_lost_probability: 1.5 * independent,
        all_lost_if_independent_probability: independent,
        all_lost_ratio: Some(1.5),
        none_lost_probability: (1.0 - one_lost_probability).powi(copies_count as i32),
        choices_count: 800.0,
    }
}

fn forecasts(f: &mut Findings) {
    for scope in SCOPES {
        for ahead_s in [3600_i64, 14_400, 86_400] {
            for host in &f.hosts {
                f.forecasts.push(Forecast {
                    host_id: host.host_id.clone(),
                    time_ms: host.to_time_ms,
                    scope,
                    region_bytes: host.physical_bytes / 2,
                    region_share: Some(0.5),
                    ahead_s,
                    probability: stays(host.physical_bytes / 16, scope, ahead_s as f64),
                });
            }
            for (model, brier_score) in [
                ("gleaner", 0.012),
                ("climatology", 0.02),
                ("age", 0.018),
                ("host_rate", 0.014),
                ("bins", 0.0121),
            ] {
                f.forecast_quality.push(ForecastQuality {
                    scope,
                    region_bytes: None,
                    region_share: Some(0.5),
                    ahead_s,
                    model: model.into(),
                    brier_score,
                    reliability: 0.0004,
                    resolution: 0.0084,
                    uncertainty: 0.02,
                    calibration_slope: Some(1.1),
                    instants_count: 280,
                    origins_count: 1,
                    hosts_count: 3,
                });
            }
            f.forecast_calibration
                .extend((0..10).map(|bin| ForecastCalibration {
                    scope,
                    region_bytes: None,
                    region_share: None,
                    ahead_s,
                    bin_low: f64::from(bin) / 10.0,
                    bin_high: f64::from(bin + 1) / 10.0,
                    mean_forecast: f64::from(bin) / 10.0 + 0.05,
                    observed_share: (f64::from(bin) / 10.0 + 0.02) * 1.03,
                    instants_count: 20 + i64::from(bin * bin),
                }));
        }
    }
}
