//! Forecasts from complete datasets.

use crate::recording::{MIB, Recording, sample};
use gleaner_schemas::findings::{Findings, ForecastQuality, Parameters, Scope};
use gleaner_schemas::rows::{GapRow, SampleRow};

const DAY_S: i64 = 86_400;

/// Records `days` days of samples, one every ten minutes from noon on; `available` returns the MiB for a
/// second.
fn record(r: &mut Recording, host: &str, days: i64, available: &dyn Fn(i64) -> i64) {
    r.host(host, 600);
    for (at, second) in (0..days * DAY_S).step_by(600).enumerate() {
        let row = SampleRow {
            owner_idle_ms: Some(second * 1000),
            ..sample(available(second))
        };
        r.row(host, at as i64 + 1, second, &row);
    }
}

fn parameters() -> Parameters {
    Parameters {
        region_bytes: vec![256 * MIB],
        region_shares: vec![0.5],
        measures: vec!["forecasts".into()],
        ..Parameters::default()
    }
}

fn quality<'a>(
    found: &'a Findings,
    scope: Scope,
    ahead_s: i64,
    model: &str,
) -> &'a ForecastQuality {
    let mut such = found.forecast_quality.iter().filter(|q| {
        q.scope == scope && q.region_bytes.is_some() && q.ahead_s == ahead_s && q.model == model
    });
    such.next().unwrap()
}

#[test]
fn what_never_fails_is_forecast_to_last() {
    let mut r = Recording::new();
    record(&mut r, "a", 6, &|_| 700);
    record(&mut r, "b", 6, &|_| 700);
    // Host c is observed for only half a day.
    r.host("c", 600)
        .row("c", 1, 0, &sample(700))
        .row("c", 2, DAY_S / 2, &sample(700));
    let found = r.analyzed(&parameters()).unwrap();
    for scope in [Scope::All, Scope::Idle] {
        for model in ["gleaner", "climatology", "age", "host_rate", "bins"] {
            let q = quality(&found, scope, 3600, model);
            assert_eq!((q.brier_score, q.hosts_count), (0.0, 2), "{q:?}");
            // Six days from noon to noon touch seven calendar days. The first four are only learnt from. The
            // last two and a half are scored, without the last hour's instants, whose outcomes are unknown.
            assert_eq!(
                (q.origins_count, q.instants_count),
                (3, 2 * (2 * 144 + 72 - 7)),
                "{q:?}"
            );
        }
    }
    // One region by size and one by share; nine horizons; both scopes; two hosts.
    assert_eq!(found.forecasts.len(), 2 * 9 * 2 * 2);
    assert!(found.forecasts.iter().all(|f| f.probability == 1.0));
    let half = found
        .forecasts
        .iter()
        .find(|f| f.region_share.is_some())
        .unwrap();
    assert_eq!(half.region_bytes, 512 * MIB);
    let missing: Vec<&str> = (found.missing_measures.iter())
        .filter(|n| n.measure == "forecasts")
        .map(|n| n.host_id.as_str())
        .collect();
    assert_eq!(missing, ["c"]);
    let size = &found.forecast_table_size[0];
    assert_eq!(size.cells_count as usize, found.forecast_table.len());
    assert!(size.json_bytes > size.figures_bytes && size.figures_bytes > 0);
}

#[test]
fn habits_of_the_hour_are_learnt() {
    // Each day from 20:00 to 21:00 one of two hosts needs its memory.
    let mut r = Recording::new();
    record(&mut r, "a", 14, &|second| {
        if second % DAY_S / 3600 == 8 { 100 } else { 700 }
    });
    record(&mut r, "b", 14, &|_| 700);
    let found = r.analyzed(&parameters()).unwrap();
    let brier = |model| quality(&found, Scope::All, 14_400, model).brier_score;
    for baseline in ["climatology", "age", "host_rate", "bins"] {
        assert!(
            brier("gleaner") < brier(baseline),
            "{baseline}: {} {}",
            brier("gleaner"),
            brier(baseline)
        );
    }
    // The last sample is at ten minutes to noon: 20:00 to 21:00 is within twelve hours, but not within six.
    let forecast = |host, ahead_s| {
        let mut such = found.forecasts.iter().filter(|f| {
            f.host_id == host
                && f.ahead_s == ahead_s
                && f.scope == Scope::All
                && f.region_share.is_none()
        });
        such.next().unwrap().probability
    };
    assert!(forecast("a", 43_200) < 0.5, "{}", forecast("a", 43_200));
    assert!(forecast("a", 21_600) > forecast("a", 43_200) + 0.2);
    assert!(forecast("b", 43_200) > forecast("a", 43_200) + 0.3);
}

/// A pseudorandom number from 0 to 2⁶⁴ − 1: splitmix64.
fn scattered(seed: u64) -> u64 {
    let mut z = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[test]
fn hosts_that_fare_otherwise_in_one_state_are_told_apart() {
    // Both hosts alternate between little and much available memory, every five hours, so the time of day has
    // no influence. Host a loses the region in one of eight instants while it has little memory, host b while
    // it has much.
    let fares = |seed: u64, loses_with_little: bool| {
        move |second: i64| {
            let has_little = second / 18_000 % 2 == 0;
            let is_lost = has_little == loses_with_little
                && scattered(seed + second as u64).is_multiple_of(8);
            match (is_lost, has_little) {
                (true, _) => 100,
                (false, true) => 300,
                (false, false) => 700,
            }
        }
    };
    let mut r = Recording::new();
    record(&mut r, "a", 20, &fares(1 << 40, true));
    record(&mut r, "b", 20, &fares(1 << 41, false));
    let found = r.analyzed(&parameters()).unwrap();
    for ahead_s in [3600, 7200] {
        let of = |model| quality(&found, Scope::All, ahead_s, model);
        let gleaner = of("gleaner");
        // The baselines use all hosts' share in a state, or one host's share over all states: both are equal
        // for the two hosts.
        for pooled in ["climatology", "age", "host_rate", "bins"] {
            let pooled = of(pooled).brier_score;
            assert!(gleaner.brier_score < 0.9 * pooled, "{gleaner:?} {pooled}");
        }
        // The forecasts of the two hosts are as far apart as the outcomes.
        let slope = gleaner.calibration_slope.unwrap();
        assert!((0.8..1.25).contains(&slope), "{gleaner:?}");
        assert!(gleaner.reliability < 0.005, "{gleaner:?}");
        let parts = gleaner.reliability - gleaner.resolution + gleaner.uncertainty;
        assert!((parts - gleaner.brier_score).abs() < 0.01, "{gleaner:?}");
    }
}

#[test]
fn a_sleep_loses_regions_and_an_unexplained_gap_does_not() {
    let with_gaps = |cause: Option<&str>| {
        let mut r = Recording::new();
        r.host("a", 600);
        let mut sequence = 0;
        for second in (0..6 * DAY_S).step_by(600) {
            // From the second day on, the first six hours of each day have no samples.
            if second % DAY_S < 6 * 3600 && second >= DAY_S {
                continue;
            }
            sequence += 1;
            r.row("a", sequence, second, &sample(700));
            if let (Some(cause), true, true) = (cause, second >= DAY_S, second % DAY_S == 6 * 3600)
            {
                let gap = GapRow {
                    from_time_ms: crate::recording::NOON + (second - 6 * 3600 - 600) * 1000,
                    to_time_ms: crate::recording::NOON + second * 1000,
                    cause: cause.into(),
                };
                sequence += 1;
                r.row("a", sequence, second, &gap);
            }
        }
        r.analyzed(&parameters()).unwrap()
    };
    let lost = |found: &Findings, ahead_s| {
        let any = found
            .forecast_table
            .iter()
            .find(|c| c.age_bin.is_none() && c.region_bytes.is_some() && c.ahead_s == ahead_s);
        any.map(|c| 1.0 - c.probability)
    };
    let unexplained = with_gaps(None);
    assert_eq!(lost(&unexplained, 14_400), Some(0.0));
    // Only the first day's run is long enough for this horizon, but it ends exactly there.
    assert_eq!(lost(&unexplained, 86_400), None);
    let asleep = with_gaps(Some("sleep"));
    let hour = lost(&asleep, 3600).unwrap();
    assert!(hour > 0.03 && hour < 0.09, "{hour}");
    assert!(lost(&asleep, 86_400).unwrap() > 0.99);
}

#[test]
fn too_little_is_no_forecast() {
    let mut r = Recording::new();
    r.host("a", 600).row("a", 1, 0, &sample(700));
    let found = r.analyzed(&parameters()).unwrap();
    assert!(found.forecasts.is_empty() && found.forecast_quality.is_empty());
    assert!(found.forecast_table.is_empty());
    let of = |measure| {
        found
            .missing_measures
            .iter()
            .filter(move |n| n.measure == measure)
            .count()
    };
    // Both scopes have no forecast: the trace is too short, and it has no idle time.
    assert_eq!((of("forecasts"), of("forecast_quality")), (2, 1));
}
