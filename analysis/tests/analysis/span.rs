//! An analysis of a span of time equals an analysis of a dataset that holds only that span. This dataset has
//! the full state at its begin.

use crate::recording::{MIB, NOON, Recording, sample};
use gleaner_analysis::{AnalysisError, analyze};
use gleaner_schemas::findings::{Findings, Parameters};
use gleaner_schemas::rows::{
    ActivityRow, ClockRow, FileRow, GapRow, MissingValueRow, ProcessRow, SampleRow,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const STEP: i64 = 20 * MINUTE;
/// Midnight of the first day, in seconds after noon.
const MIDNIGHT: i64 = -12 * HOUR;
const ALL: Range<i64> = i64::MIN..i64::MAX;

/// Times without samples, with their causes; the last is not recorded.
const GAPS: [(Range<i64>, Option<&str>); 3] = [
    (3 * HOUR..7 * HOUR, Some("sleep")),
    (DAY + 10 * HOUR..DAY + 16 * HOUR, Some("stopped")),
    (DAY + 20 * HOUR..DAY + 23 * HOUR, None),
];

/// A pseudorandom number, made from the numbers in `of`.
fn chance(of: impl IntoIterator<Item = i64>) -> i64 {
    let mix = |sum: u64, n: i64| {
        let x = (sum ^ n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x ^ (x >> 29)
    };
    (of.into_iter().fold(7, mix) >> 33) as i64
}

/// Rows that are valid at a time because they were the last of their kind.
#[derive(Default)]
struct StandingRows {
    files: BTreeMap<i64, FileRow>,
    sources: BTreeMap<String, ActivityRow>,
    missing_values: BTreeMap<(String, String), MissingValueRow>,
}

/// Three days of two hosts, and the first hours of a third. Records only the part in `span` (seconds after
/// noon), with the rows that are valid where the span begins.
fn recorded(span: &Range<i64>) -> Recording {
    let mut r = Recording::new();
    for (number, host) in (1..).zip(["a", "b", "c"]) {
        r.host(host, STEP);
        let end = if host == "c" {
            MIDNIGHT + 2 * HOUR
        } else {
            MIDNIGHT + 3 * DAY
        };
        let mut standing = StandingRows::default();
        let mut is_first_in_span = true;
        let mut before = None;
        let offset = number * 17;
        let times = (MIDNIGHT + offset..end).step_by(STEP as usize);
        let times = times.filter(|t| GAPS.iter().all(|(gap, _)| !gap.contains(&(t - offset))));
        for (sequence, t) in (10..).step_by(10).zip(times) {
            let has_gap = before.is_some_and(|before| t - before > STEP);
            if has_gap {
                gap(
                    &mut r,
                    host,
                    sequence - 1,
                    before.unwrap_or(t)..t,
                    offset,
                    span,
                );
            }
            let is_new_day = before.is_none_or(|b| (b - MIDNIGHT) / DAY != (t - MIDNIGHT) / DAY);
            let is_whole = has_gap || is_new_day;
            before = Some(t);
            if is_whole {
                standing = StandingRows::default();
            }
            let slot = (t - MIDNIGHT - offset) / STEP;
            let told = told(number, slot, is_whole);
            let is_told_whole = span.contains(&t) && is_first_in_span;
            if span.contains(&t) {
                is_first_in_span = false;
                let row = SampleRow {
                    owner_idle_ms: (slot % 31 != 5).then_some((slot + number) % 9 * STEP * 1000),
                    load5: Some(if slot % 13 == 0 { 0.5 } else { 0.1 }),
                    is_complete_state: is_whole,
                    file_cache_bytes: chance([number, slot]) % 40 * MIB,
                    ..sample(50 + chance([number, slot / 3, 1]) % 700)
                };
                r.row(host, sequence, t, &row);
                for pid in 0..chance([number, slot, 2]) % 4 {
                    let process = ProcessRow {
                        pid,
                        name: format!("program {pid}"),
                        anon_bytes: Some(chance([pid, slot]) % 90 * MIB),
                        ..ProcessRow::default()
                    };
                    r.row(host, sequence, t, &process);
                }
                if slot % 40 > 9 {
                    r.row(host, sequence, t, &ClockRow::default());
                }
            }
            if is_told_whole {
                tell(&mut r, host, sequence, t, &standing.without(&told));
            }
            if span.contains(&t) {
                tell(&mut r, host, sequence, t, &told);
            }
            standing.take(told);
        }
    }
    r
}

impl StandingRows {
    /// Adds the changes of one sample.
    fn take(&mut self, told: Self) {
        self.files.extend(told.files);
        self.sources.extend(told.sources);
        self.missing_values.extend(told.missing_values);
        self.missing_values
            .retain(|(_, reason), row| reason != "vanished" && row.missing_count > 0);
        for file in self.files.values_mut() {
            file.opens_count = None;
        }
        (self.files).retain(|_, file| file.open_processes_count > 0 || file.cached_bytes.is_some());
    }

    fn without(&self, told: &Self) -> Self {
        let mut rest = Self {
            files: self.files.clone(),
            sources: self.sources.clone(),
            missing_values: self.missing_values.clone(),
        };
        rest.files.retain(|key, _| !told.files.contains_key(key));
        rest.sources
            .retain(|key, _| !told.sources.contains_key(key));
        rest.missing_values
            .retain(|key, _| !told.missing_values.contains_key(key));
        rest
    }
}

/// The changes of a sample, or all valid rows if `is_whole` is true.
fn told(number: i64, slot: i64, is_whole: bool) -> StandingRows {
    let mut told = StandingRows::default();
    for file_id in 0..6 {
        let what = chance([number, slot, file_id, 3]) % 24;
        let open_processes_count = what % 3;
        if (is_whole && open_processes_count > 0) || (!is_whole && what < 6) {
            let row = FileRow {
                file_id,
                open_processes_count,
                opens_count: (what == 3).then_some(2),
                cached_bytes: (what % 5 > 0).then_some((what + slot % 7) * MIB),
                ..FileRow::default()
            };
            told.files.insert(file_id, row);
        }
    }
    for (n, source) in (0..).zip(["input", "logind"]) {
        let what = chance([number, slot, n, 4]) % 20;
        if is_whole || what < 3 {
            let row = ActivityRow {
                source: source.to_owned(),
                // Only the first source is ever denied. A reason names several denied sources in the order of
                // their first appearance, which may differ in a span.
                state: if n == 0 && what % 2 == 1 {
                    "denied"
                } else {
                    "ok"
                }
                .to_owned(),
                ..ActivityRow::default()
            };
            told.sources.insert(source.to_owned(), row);
        }
    }
    for (n, (item, reason)) in (0..).zip([("files", "denied"), ("processes", "vanished")]) {
        let what = chance([number, slot, n, 5]) % 20;
        if (is_whole && what > 5) || what < 4 {
            let row = MissingValueRow {
                item: item.to_owned(),
                reason: reason.to_owned(),
                detail: "why".to_owned(),
                missing_count: what % 3,
            };
            told.missing_values
                .insert((item.to_owned(), reason.to_owned()), row);
        }
    }
    told
}

fn tell(r: &mut Recording, host: &str, sequence: i64, t: i64, told: &StandingRows) {
    for row in told.files.values() {
        r.row(host, sequence, t, row);
    }
    for row in told.sources.values() {
        r.row(host, sequence, t, row);
    }
    for row in told.missing_values.values() {
        r.row(host, sequence, t, row);
    }
}

/// Records the part of a gap that lies in the span, if the gap is recorded.
fn gap(
    r: &mut Recording,
    host: &str,
    sequence: i64,
    gap: Range<i64>,
    offset: i64,
    span: &Range<i64>,
) {
    let is_it =
        |(known, _): &&(Range<i64>, Option<&str>)| known.contains(&(gap.end - STEP - offset));
    let cause = GAPS.iter().find(is_it).and_then(|(_, cause)| *cause);
    let inside = gap.start.max(span.start)..gap.end.min(span.end);
    if let (Some(cause), false) = (cause, inside.is_empty()) {
        let row = GapRow {
            from_time_ms: NOON + inside.start * 1000,
            to_time_ms: NOON + inside.end * 1000,
            cause: cause.to_owned(),
        };
        r.row(host, sequence, gap.end, &row);
    }
}

fn parameters() -> Parameters {
    Parameters {
        bootstrap_count: 20,
        region_bytes: vec![64 * MIB, 256 * MIB],
        dip_threshold_bytes: vec![128 * MIB],
        ..Parameters::default()
    }
}

/// Findings in a span of the whole recording.
fn found_in(span: &Range<i64>) -> Result<Findings, AnalysisError> {
    let parameters = Parameters {
        from_time_ms: Some(NOON + span.start * 1000),
        until_time_ms: Some(NOON + span.end * 1000),
        ..parameters()
    };
    recorded(&ALL).analyzed(&parameters)
}

fn found_of(span: &Range<i64>) -> Findings {
    let mut found = recorded(span).analyzed(&parameters()).unwrap();
    found.parameters.from_time_ms = Some(NOON + span.start * 1000);
    found.parameters.until_time_ms = Some(NOON + span.end * 1000);
    for missing in &mut found.missing_measures {
        if missing.reason == "it has no samples" {
            missing.reason = "it has no samples in the span of time".to_owned();
        }
    }
    found
}

fn assert_same(found: &Findings, expected: &Findings, span: &Range<i64>) {
    let lists = |f: &Findings| {
        let mut f = f.clone();
        // Sorted, because the order of first appearance depends on the rows valid at the span's first sample.
        f.activity_sources
            .sort_by_key(|a| (a.host_id.clone(), a.source.clone(), a.state.clone()));
        f.missing_values
            .sort_by_key(|a| (a.host_id.clone(), a.item.clone()));
        serde_json::to_value(f).unwrap()
    };
    let (found, expected) = (lists(found), lists(expected));
    for key in found.as_object().unwrap().keys() {
        assert_eq!(found[key], expected[key], "{key} in {span:?}");
    }
}

#[test]
fn a_span_of_utc_days_is_a_dataset_of_these_days() {
    let span = MIDNIGHT + DAY..MIDNIGHT + 2 * DAY;
    let found = found_in(&span).unwrap();
    assert_same(&found, &found_of(&span), &span);
    // The findings use rows of every table.
    assert!(found.hosts.len() == 2 && !found.idle_periods.is_empty());
    assert!(!found.top_files.is_empty() && !found.top_processes.is_empty());
    assert!(!found.live_file_cache.is_empty() && !found.gaps.is_empty());
    assert!(found.missing_values.len() >= 4 && found.activity_sources.len() >= 6);
    // Host c has samples only on the day before.
    let missing: Vec<_> = found
        .missing_measures
        .iter()
        .filter(|n| n.host_id == "c")
        .collect();
    assert_eq!(missing.len(), 1);
    assert_eq!(missing[0].reason, "it has no samples in the span of time");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5, failure_persistence: None, ..ProptestConfig::default() })]

    /// Tries spans that begin and end inside a day, a gap or an absence.
    #[test]
    fn any_span_is_a_dataset_that_is_whole_where_it_begins(
        from in MIDNIGHT + HOUR..MIDNIGHT + 2 * DAY,
        length in 2 * HOUR..2 * DAY,
    ) {
        let span = from..from + length;
        match found_in(&span) {
            Ok(found) => assert_same(&found, &found_of(&span), &span),
            Err(AnalysisError::NoSamplesInSpan { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn gaps_over_the_edges_are_cut_there() {
    // The span reaches from the middle of the sleep to the middle of the stop.
    let span = 5 * HOUR..DAY + 12 * HOUR;
    let found = found_in(&span).unwrap();
    let gaps: Vec<_> = (found.gaps.iter().filter(|g| g.host_id == "a"))
        .map(|g| {
            (
                (g.from_time_ms - NOON) / 1000,
                (g.to_time_ms - NOON) / 1000,
                &*g.cause,
            )
        })
        .collect();
    let last = DAY + 10 * HOUR - STEP + 17;
    assert_eq!(
        gaps,
        [
            (5 * HOUR, 7 * HOUR + 17, "sleep"),
            (last, DAY + 12 * HOUR, "stopped"),
        ]
    );
    assert_same(&found, &found_of(&span), &span);
    let hosts: Vec<_> = found
        .hosts
        .iter()
        .map(|h| (h.host_id.as_str(), h.to_time_ms))
        .collect();
    assert_eq!(hosts[0], ("a", NOON + last * 1000));
}

#[test]
fn an_absence_over_the_edges_is_cut_there() {
    let mut r = Recording::new();
    r.host("a", 600);
    for i in 0..60 {
        let row = SampleRow {
            owner_idle_ms: Some(i * 600_000),
            ..sample(500)
        };
        r.row("a", 1 + i, i * 600, &row);
    }
    let span = Parameters {
        from_time_ms: Some(NOON + 2 * HOUR * 1000),
        until_time_ms: Some(NOON + 4 * HOUR * 1000),
        ..Parameters::default()
    };
    let f = r.analyzed(&span).unwrap();
    assert_eq!(f.hosts[0].samples_count, 12);
    let idle = &f.idle_periods[..];
    assert_eq!(idle.len(), 1);
    let minutes = |ms: i64| (ms - NOON) / 60_000;
    assert_eq!(
        (minutes(idle[0].from_time_ms), minutes(idle[0].to_time_ms)),
        (120, 230)
    );
    assert!(idle[0].is_start_censored && idle[0].is_end_censored);
}

#[test]
fn spans_that_hold_nothing_say_so() {
    let (_folder, dataset) = recorded(&ALL).dataset();
    let refused = |from, until| {
        let parameters = Parameters {
            from_time_ms: from,
            until_time_ms: until,
            measures: vec!["hosts".to_owned()],
            ..parameters()
        };
        analyze(&dataset, &parameters, &mut |_| ())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refused(Some(NOON), Some(NOON)),
        "no time lies from 2026-11-20T12:00:00Z to before 2026-11-20T12:00:00Z: let it end after it begins"
    );
    let covers = "the dataset's samples go from 2026-11-20T00:00:17Z to 2026-11-22T23:40:34Z";
    let said = refused(Some(NOON + 3 * DAY * 1000), None);
    assert_eq!(
        said,
        format!("no host has a sample from 2026-11-23T12:00:00Z on: {covers}")
    );
    let said = refused(None, Some(NOON - DAY * 1000));
    assert_eq!(
        said,
        format!("no host has a sample before 2026-11-19T12:00:00Z: {covers}")
    );
    // All hosts are asleep in this span.
    let (from, until) = (NOON + 4 * HOUR * 1000, NOON + 5 * HOUR * 1000);
    assert!(refused(Some(from), Some(until)).ends_with(covers));
}

#[test]
fn what_stood_before_is_told_at_the_first_sample() {
    let mut r = Recording::new();
    r.host("a", 600);
    for i in 0..6 {
        let row = SampleRow {
            owner_idle_ms: Some(0),
            is_complete_state: i == 0,
            file_cache_bytes: 10 * MIB,
            ..sample(500)
        };
        r.row("a", 1 + i, i * 600, &row);
    }
    let file = |file_id, open_processes_count, cached_mib, opens_count| FileRow {
        file_id,
        open_processes_count,
        opens_count,
        cached_bytes: Some(cached_mib * MIB),
        ..FileRow::default()
    };
    let absence = |item: &str, reason: &str, missing_count| MissingValueRow {
        item: item.into(),
        reason: reason.into(),
        missing_count,
        ..MissingValueRow::default()
    };
    let input = ActivityRow {
        source: "input".into(),
        state: "ok".into(),
        ..ActivityRow::default()
    };
    r.row("a", 1, 0, &file(1, 1, 10, None))
        .row("a", 1, 0, &file(2, 1, 40, None))
        .row("a", 2, 600, &file(2, 0, 40, None))
        // A file opened, read and closed between two samples.
        .row("a", 3, 1200, &file(3, 0, 5, Some(2)))
        .row("a", 1, 0, &absence("files", "denied", 1))
        .row("a", 1, 0, &absence("numa_nodes", "denied", 1))
        .row("a", 2, 600, &absence("numa_nodes", "denied", 0))
        .row("a", 3, 1200, &absence("processes", "vanished", 1))
        .row("a", 1, 0, &input);
    let f = r
        .analyzed(&Parameters {
            from_time_ms: Some(NOON + 1_800_000),
            ..Parameters::default()
        })
        .unwrap();
    assert_eq!(f.hosts[0].samples_count, 3);
    let missing_values: Vec<_> = (f.missing_values.iter())
        .map(|a| (&*a.item, a.samples_count))
        .collect();
    assert_eq!(missing_values, [("files", 3)], "the others are over");
    let sources: Vec<_> = (f.activity_sources.iter())
        .map(|a| (&*a.source, a.samples_count))
        .collect();
    assert_eq!(sources, [("input", 3)]);
    let files: Vec<_> = f
        .top_files
        .iter()
        .map(|t| (&*t.file, t.samples_count))
        .collect();
    assert_eq!(files, [("1", 3)]);
    // File 3 is not opened again in the span, so it is not live.
    assert_eq!(f.live_file_cache[0].max_bytes, 10 * MIB);
}
