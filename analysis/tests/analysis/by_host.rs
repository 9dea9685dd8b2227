//! Availability periods of each host: those of `leases`, with their times.

use crate::leases::recorded;
use crate::recording::{MIB, NOON, Recording, sample};
use gleaner_analysis::{AnalysisError, availability};
use gleaner_schemas::availability::{AvailabilityQuestion, HostAvailability};
use gleaner_schemas::findings::{EndCause, Parameters, Scope};
use gleaner_schemas::rows::SampleRow;

fn question() -> AvailabilityQuestion {
    let paper = Parameters::default();
    AvailabilityQuestion {
        region_bytes: 512 * MIB,
        scope: Scope::All,
        minimum_period_ms: 0,
        idle_after_s: paper.idle_after_s,
        load_limit: paper.load_limit,
        headroom_share: paper.headroom_share,
        hosts: None,
        from_ms: None,
        until_ms: None,
        has_samples: false,
    }
}

fn asked(recording: Recording, question: &AvailabilityQuestion) -> Vec<HostAvailability> {
    let (_folder, dataset) = recording.dataset();
    let mut answers = Vec::new();
    let taken = availability(&dataset, question, |answer| {
        answers.push(answer);
        Ok::<(), AnalysisError>(())
    });
    taken.unwrap();
    answers
}

/// Begin and end in minutes after noon, whether the start was seen, cause of the end.
type PeriodRow = (i64, i64, bool, Option<EndCause>);

fn told(answer: &HostAvailability) -> Vec<PeriodRow> {
    let minutes = |ms: i64| (ms - NOON) / 60_000;
    let periods = answer.periods.iter();
    let told = periods.map(|p| {
        (
            minutes(p.from_ms),
            minutes(p.to_ms),
            p.is_start_known,
            p.end,
        )
    });
    told.collect()
}

const ALL: [PeriodRow; 6] = [
    (0, 30, false, Some(EndCause::Memory)),
    (35, 60, true, Some(EndCause::SleepOrPower)),
    (120, 180, true, Some(EndCause::Agent)),
    (200, 220, true, Some(EndCause::Network)),
    (240, 260, true, None),
    (300, 360, false, None),
];

#[test]
fn periods_with_their_times_and_ends() {
    let answers = asked(recorded("a", true), &question());
    let [answer] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(told(answer), ALL);
    assert_eq!(answer.host_id, "a");
    assert_eq!(answer.host_name, "name of a");
    assert_eq!(
        (answer.physical_bytes, answer.cpus_count),
        (1024 * MIB, Some(4))
    );
    assert_eq!((answer.from_ms, answer.to_ms), (NOON, NOON + 360 * 60_000));
    assert!(answer.is_told && answer.samples.is_empty());
    // The owner is away all the time, so leases and idle time have the same ends.
    let idle = AvailabilityQuestion {
        scope: Scope::Idle,
        ..question()
    };
    assert_eq!(told(&asked(recorded("a", true), &idle)[0]), ALL);
}

#[test]
fn short_ones_and_other_times_are_left_out() {
    let long = AvailabilityQuestion {
        minimum_period_ms: 25 * 60_000,
        ..question()
    };
    let found = told(&asked(recorded("a", true), &long)[0]);
    assert_eq!(found, [ALL[0], ALL[1], ALL[2], ALL[5]]);
    // A period cut by the question counts like one cut by the trace.
    let between = AvailabilityQuestion {
        from_ms: Some(NOON + 40 * 60_000),
        until_ms: Some(NOON + 150 * 60_000),
        ..question()
    };
    let answer = &asked(recorded("a", true), &between)[0];
    let expected = [
        (40, 60, false, Some(EndCause::SleepOrPower)),
        (120, 150, true, None),
    ];
    assert_eq!(told(answer), expected);
    assert_eq!(answer.to_ms, NOON + 145 * 60_000);
    let never = AvailabilityQuestion {
        until_ms: Some(NOON),
        ..question()
    };
    assert_eq!(asked(recorded("a", true), &never), []);
    let other = AvailabilityQuestion {
        hosts: Some(["b".to_owned()].into()),
        ..question()
    };
    assert_eq!(asked(recorded("a", true), &other), []);
}

#[test]
fn a_host_that_cannot_tell_says_so() {
    let mut r = Recording::new();
    r.host("a", 300);
    for i in 0..5 {
        r.row("a", i + 1, i * 300, &sample(900));
    }
    let idle = AvailabilityQuestion {
        scope: Scope::Idle,
        ..question()
    };
    let answers = asked(r, &idle);
    assert!(!answers[0].is_told && answers[0].periods.is_empty());
}

#[test]
fn time_that_a_clock_tells_twice_is_available_once() {
    let mut r = Recording::new();
    r.host("a", 300);
    // 0 to 30; then the clock is set back to 20 and runs to 40.
    let minutes = (0..=30).step_by(5).chain((20..=40).step_by(5));
    for (sequence, minute) in minutes.enumerate() {
        r.row("a", sequence as i64 + 1, minute * 60, &sample(900));
    }
    let answers = asked(r, &question());
    assert_eq!(
        told(&answers[0]),
        [(0, 30, false, None), (30, 40, false, None)]
    );
}

#[test]
fn samples_say_what_a_policy_could_know() {
    let mut r = Recording::new();
    r.host("a", 300);
    // The owner is active at 0 and away from then on. A gap lies before 30. At 35 the owner's activity is
    // unknown.
    for (i, minute) in [0, 5, 10, 30, 35].into_iter().enumerate() {
        let row = SampleRow {
            owner_idle_ms: (minute < 35).then_some(minute * 60_000),
            ..sample(900)
        };
        r.row("a", i as i64 + 1, minute * 60, &row);
    }
    let with_samples = AvailabilityQuestion {
        has_samples: true,
        ..question()
    };
    let answers = asked(r, &with_samples);
    let samples = &answers[0].samples;
    let known: Vec<_> = samples
        .iter()
        .map(|s| (s.follows_gap, s.is_idle, s.is_in_idle_period))
        .collect();
    let expected = [
        (true, Some(false), Some(true)), // the absence began here, which is known only five minutes later
        (false, Some(true), Some(true)),
        (false, Some(true), Some(true)),
        (true, Some(false), Some(false)), // no state is carried across a gap
        (false, None, None),
    ];
    assert_eq!(known, expected);
    // 15 % of 1024 MiB are not lent, rounded to whole bytes.
    let lent = 900 * MIB - (1024 * MIB) * 15 / 100;
    for (sample, quota) in samples.iter().zip([0, lent, lent, 0, 0]) {
        assert_eq!(sample.available_bytes, 900 * MIB);
        assert_eq!(sample.harvestable_bytes, Some(lent), "{sample:?}");
        assert_eq!(sample.paper_quota_bytes, Some(lent));
        assert_eq!(sample.quota_bytes, Some(quota), "{sample:?}");
    }
}

#[test]
fn nonsense_is_refused_and_who_takes_can_end_it() {
    let (_folder, dataset) = recorded("a", true).dataset();
    let nonsense = AvailabilityQuestion {
        region_bytes: 0,
        ..question()
    };
    let take = |_| -> Result<(), AnalysisError> { panic!("nothing to take") };
    let refused = availability(&dataset, &nonsense, take).unwrap_err();
    assert!(refused.to_string().contains("region_bytes"), "{refused}");
    let ended = availability(&dataset, &question(), |_| {
        Err(AnalysisError::NoSamples { hosts_count: 7 })
    });
    assert!(matches!(
        ended.unwrap_err(),
        AnalysisError::NoSamples { hosts_count: 7 }
    ));
}
