//! Periods counted as leases, worked by hand: causes that end or cut them, and the resulting estimates.
//!
//! One host of 1 GiB, a sample every 5 minutes, times in minutes; 900 MiB are available unless noted.
//!
//! | minutes   | what happens                                                 | a lease ends by  |
//! | ---       | ---                                                          | ---              |
//! | 0         | the trace begins                                             |                  |
//! | 0-60      | runs; 100 MiB at 30                                          | memory, at 30    |
//! | 60-120    | sleeps                                                       | sleep, at 60     |
//! | 120-180   | runs; then the agent is stopped for 20 minutes               | agent, at 180    |
//! | 200-260   | runs; nothing arrives from 220 to 240                        | network, at 220  |
//! | 260-300   | samples could not be stored: nothing is known                | (cut, at 260)    |
//! | 300-360   | runs; the trace ends                                         | (cut, at 360)    |

use crate::recording::{MIB, NOON, Recording, sample};
use gleaner_schemas::findings::{
    AvailabilityOdds, AvailabilityPeriods, BoundVerdict, EndCause, Findings, Parameters, Scope,
};
use gleaner_schemas::rows::{ClockRow, GapRow, SampleRow};

const RUNS: [(i64, i64); 4] = [(0, 60), (120, 180), (200, 260), (300, 360)];
const GAPS: [(i64, i64, &str); 3] = [
    (60, 120, "sleep"),
    (180, 200, "stopped"),
    (260, 300, "unwritable"),
];

/// The recorded host; its collector's clock is two minutes behind the host's.
pub(crate) fn recorded(host: &str, is_collected: bool) -> Recording {
    let mut r = Recording::new();
    add(&mut r, host, is_collected);
    r
}

fn add(r: &mut Recording, host: &str, is_collected: bool) {
    r.host(host, 300);
    let mut sequence = 0;
    for (from, to) in RUNS {
        if let Some(&(begin, end, cause)) = GAPS.iter().find(|gap| gap.1 == from) {
            sequence += 1;
            let gap = GapRow {
                from_time_ms: NOON + begin * 60_000,
                to_time_ms: NOON + end * 60_000,
                cause: cause.into(),
            };
            r.row(host, sequence, end * 60, &gap);
        }
        for minute in (from..=to).step_by(5) {
            sequence += 1;
            let row = SampleRow {
                owner_idle_ms: Some((minute + 60) * 60_000),
                ..sample(if minute == 30 { 100 } else { 900 })
            };
            r.row(host, sequence, minute * 60, &row);
            if is_collected && !(221..240).contains(&minute) {
                let clock = ClockRow {
                    skew_ms: 120_000,
                    collector: None,
                };
                r.row(host, sequence, minute * 60 - 120, &clock);
            }
        }
    }
}

fn parameters() -> Parameters {
    Parameters {
        region_bytes: vec![512 * MIB],
        curve_points_count: 0,
        ..Parameters::default()
    }
}

fn periods(f: &Findings, scope: Scope) -> &AvailabilityPeriods {
    let all = f.availability_periods.iter();
    all.into_iter()
        .find(|p| p.size_class == "all" && p.scope == scope)
        .unwrap()
}

fn odds(f: &Findings, minutes: i64) -> &AvailabilityOdds {
    let of = |o: &&AvailabilityOdds| {
        o.size_class == "all" && o.scope == Scope::All && o.ahead_s == (minutes * 60) as f64
    };
    f.availability_odds.iter().find(of).unwrap()
}

#[test]
fn ends_and_cuts() {
    let f = recorded("a", true).analyzed(&parameters()).unwrap();
    let p = periods(&f, Scope::All);
    // Periods as seen: 0-30, 35-60, 120-180, 200-260, 300-360. All are cut by a gap or an end of the trace.
    assert_eq!((p.periods_count, p.censored_count), (5, 5));
    assert_eq!(p.mean_s, Some(47.0 * 60.0));
    // Counted as leases, the fourth period becomes two: 200-220 and 240-260.
    assert_eq!((p.start_censored_count, p.end_censored_count), (2, 2));
    let ended = [
        p.ended_by_owner_count,
        p.ended_by_load_count,
        p.ended_by_memory_count,
        p.ended_by_sleep_or_power_count,
        p.ended_by_network_count,
        p.ended_by_agent_count,
    ];
    assert_eq!(ended, [0, 0, 1, 1, 1, 1]);
    // Lengths of leases: 20 (network), 20 censored, 25 (sleep), 30 cut at its start, 60 (agent), 60 cut at
    // both ends. The surviving share S is 5/6 after 20, 5/6 × 3/4 after 25, 5/16 after 60.
    let curve = f.survival_curves.iter().filter(|c| c.size_class == "all");
    let curve: Vec<_> = curve.filter(|c| c.scope == Scope::All).collect();
    let counts: Vec<_> = curve
        .iter()
        .map(|c| {
            (
                (c.age_s / 60.0) as i64,
                c.at_risk_count,
                c.ended_count,
                c.censored_count,
            )
        })
        .collect();
    assert_eq!(
        counts,
        [(20, 6, 1, 1), (25, 4, 1, 0), (30, 3, 0, 1), (60, 2, 1, 1)]
    );
    let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
    let survival: Vec<f64> = curve.iter().map(|c| c.survival).collect();
    let expected = [5.0 / 6.0, 0.625, 0.625, 0.3125];
    assert!(survival.iter().zip(expected).all(|(a, b)| near(*a, b)));
    assert_eq!(p.median_survival_s, Some(3600.0));
    let mean = 20.0 + 5.0 * 5.0 / 6.0 + 35.0 * 0.625;
    assert!(near(p.restricted_mean_s.unwrap(), mean * 60.0));
    // Without the leases whose start was not seen, 0-30 and 300-360, the lengths are 20, 20 censored, 25 and
    // 60: S is 3/4, then 3/8.
    let mean = 20.0 + 5.0 * 0.75 + 35.0 * 0.375;
    assert!(near(p.restricted_mean_start_seen_s.unwrap(), mean * 60.0));
    // By half an hour, the network has ended 1/6 (at 20), the sleep 5/6 × 1/4 (at 25).
    let by_half_an_hour = |cause| {
        let all = f.period_ends.iter().filter(|e| e.size_class == "all");
        let mut all = all.filter(|e| e.scope == Scope::All && e.cause == cause);
        all.find(|e| e.age_s == 1800.0)
            .unwrap()
            .cumulative_incidence
    };
    assert!(near(by_half_an_hour(EndCause::Network), 1.0 / 6.0));
    assert!(near(by_half_an_hour(EndCause::SleepOrPower), 5.0 / 24.0));
    assert_eq!(by_half_an_hour(EndCause::Memory), 0.0);
    // Six periods give a bound only for the median: the shortest length. Half of the lengths are censored.
    let bounds: Vec<_> = f
        .period_bounds
        .iter()
        .filter(|b| b.size_class == "all" && b.scope == Scope::All)
        .map(|b| (b.quantile, b.bound_s, b.periods_count, b.verdict))
        .collect();
    assert_eq!(
        bounds,
        [
            (0.05, None, 6, BoundVerdict::TooFew),
            (0.25, None, 6, BoundVerdict::TooFew),
            (0.5, Some(1200.0), 6, BoundVerdict::Censored),
        ]
    );
}

#[test]
fn the_owner_is_away_all_the_time() {
    let f = recorded("a", true).analyzed(&parameters()).unwrap();
    // The owner has been away since before the trace, so leases and idle time have the same ends: both scopes
    // agree.
    let (all, idle) = (periods(&f, Scope::All), periods(&f, Scope::Idle));
    assert_eq!(
        (idle.start_censored_count, idle.end_censored_count),
        (all.start_censored_count, all.end_censored_count)
    );
    assert_eq!(idle.restricted_mean_s, all.restricted_mean_s);
    assert_eq!(idle.ended_by_sleep_or_power_count, 1);
}

#[test]
fn odds_over_calendar_time() {
    let f = recorded("a", true).analyzed(&parameters()).unwrap();
    // Observation ends at 260 and 360. Followed for ten minutes, instants in 0-30, 35-60, 120-180, 200-220,
    // 240-250 and 300-350 count: 195 minutes. Before each of the four ends, the last ten minutes are lost.
    let ten = odds(&f, 10);
    assert_eq!(ten.observed_s, 195.0 * 60.0);
    let lost = 10.0 / 195.0;
    assert_eq!(
        [
            ten.lost_to_memory_probability,
            ten.lost_to_sleep_or_power_probability,
            ten.lost_to_agent_probability,
            ten.lost_to_network_probability
        ],
        [lost; 4]
    );
    assert_eq!(
        (ten.lost_to_owner_probability, ten.lost_to_load_probability),
        (0.0, 0.0)
    );
    assert!((ten.available_probability + 4.0 * lost - 1.0).abs() < 1e-12);
    assert_eq!((ten.low, ten.high), (None, None)); // one host
    // Followed for an hour, no instant of the last run counts, and those of the earlier runs only up to 200:
    // 0-30, 35-60 and 120-180, all lost.
    let hour = odds(&f, 60);
    assert_eq!(
        (hour.observed_s, hour.available_probability),
        (115.0 * 60.0, 0.0)
    );
    assert_eq!(hour.lost_to_agent_probability, 60.0 / 115.0);
    // No instant can be followed for half a day.
    let half_a_day = f.availability_odds.iter().find(|o| o.ahead_s == 43_200.0);
    assert_eq!(half_a_day, None);
}

#[test]
fn without_a_collector_the_network_is_not_measured() {
    let f = recorded("a", false).analyzed(&parameters()).unwrap();
    let p = periods(&f, Scope::All);
    assert_eq!((p.ended_by_network_count, p.end_censored_count), (0, 2));
    let said = |f: &Findings| {
        let all = f.missing_measures.iter();
        all.filter(|n| n.measure == "period_ends").count()
    };
    assert_eq!(said(&f), 1);
    let mut both = recorded("a", true);
    assert_eq!(
        said(&recorded("a", true).analyzed(&parameters()).unwrap()),
        0
    );
    add(&mut both, "b", false);
    let f = both.analyzed(&parameters()).unwrap();
    let reason = f
        .missing_measures
        .iter()
        .find(|n| n.measure == "period_ends");
    assert!(reason.unwrap().reason.contains("of 1 of 2 hosts"));
}

#[test]
fn hosts_that_are_alike_leave_no_doubt_and_none_is_asked_for() {
    let fleet = || {
        let mut fleet = recorded("a", true);
        add(&mut fleet, "b", true);
        fleet
    };
    let f = fleet().analyzed(&parameters()).unwrap();
    let ten = odds(&f, 10);
    assert_eq!(ten.low, Some(ten.available_probability));
    assert_eq!(ten.high, Some(ten.available_probability));
    let p = periods(&f, Scope::All);
    assert_eq!((p.mean_low_s, p.mean_high_s), (p.mean_s, p.mean_s));
    let without = Parameters {
        bootstrap_count: 0,
        ..parameters()
    };
    let f = fleet().analyzed(&without).unwrap();
    assert_eq!(odds(&f, 10).low, None);
    assert_eq!(periods(&f, Scope::All).mean_low_s, None);
}

#[test]
fn out_of_sight_is_a_cut() {
    // The owner has been away since before the trace. From minute 40 on, the owner's activity is unknown.
    let mut r = Recording::new();
    r.host("a", 300);
    for (i, minute) in (0..=60).step_by(5).enumerate() {
        let row = SampleRow {
            owner_idle_ms: (minute < 40).then_some((minute + 60) * 60_000),
            ..sample(900)
        };
        r.row("a", i as i64 + 1, minute * 60, &row);
    }
    let f = r.analyzed(&parameters()).unwrap();
    let idle = periods(&f, Scope::Idle);
    assert_eq!((idle.start_censored_count, idle.end_censored_count), (1, 1));
    assert_eq!(idle.restricted_mean_s, Some(35.0 * 60.0));
    let odds = f.availability_odds.iter();
    let mut odds = odds.filter(|o| o.size_class == "all" && o.scope == Scope::Idle);
    let ten = odds.find(|o| o.ahead_s == 600.0).unwrap();
    assert_eq!(
        (ten.observed_s, ten.available_probability),
        (25.0 * 60.0, 1.0)
    );
}
