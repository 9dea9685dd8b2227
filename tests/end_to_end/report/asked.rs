//! Tests of the time that a report covers, and of the time with which it is compared.

use super::{fortnight, json, made, report, said, synth, text};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const HOUR_MS: i64 = 3_600_000;

/// The JSON document of a report with these arguments.
fn asked(dataset: &Path, args: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let mut command = report(dataset, args);
    made(
        command
            .args(["--also", "json", "-o"])
            .arg(&page)
            .output()
            .unwrap(),
    );
    json(page.with_extension("json"))
}

fn at(text: &str) -> i64 {
    gleaner_dataset::instant_ms(text).unwrap()
}

/// Number of samples, and time of the first and last sample, of the only host.
fn coverage(report: &Value) -> (i64, i64, i64) {
    let row = &report["tables"]["coverage"]["rows"][0];
    let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}")) as i64;
    (
        number("samples"),
        number("first_sample_time_ms"),
        number("last_sample_time_ms"),
    )
}

#[test]
fn weeks_in_which_clocks_change_have_the_hours_that_they_had() {
    let folder = tempfile::tempdir().unwrap();
    for (week, start, hours, from, until) in [
        (
            "2026-W13",
            "2026-03-15",
            167,
            "2026-03-23T00:00:00+01:00",
            "2026-03-30T00:00:00+02:00",
        ),
        (
            "2026-W43",
            "2026-10-12",
            169,
            "2026-10-19T00:00:00+02:00",
            "2026-10-26T00:00:00+01:00",
        ),
    ] {
        let dataset = folder.path().join(week);
        synth(
            &dataset,
            &[
                "--hosts",
                "1",
                "--always-on",
                "--start",
                start,
                "--interval",
                "30m",
            ],
        );
        let berlin = ["--week", week, "--time-zone", "Europe/Berlin"];
        let (samples, first, last) = coverage(&asked(&dataset, &berlin));
        assert_eq!((at(until) - at(from)) / HOUR_MS, hours);
        // The host has a sample every half hour, with a small jitter: one more or less may be in the week.
        assert!((samples - 2 * hours).abs() <= 1, "{week}: {samples}");
        assert!(
            (at(from)..at(from) + HOUR_MS / 2).contains(&first),
            "{week}: {first}"
        );
        assert!(
            (at(until) - HOUR_MS / 2..at(until)).contains(&last),
            "{week}: {last}"
        );
        let (samples, ..) = coverage(&asked(&dataset, &["--week", week]));
        assert!((samples - 2 * 168).abs() <= 1, "{week} in UTC: {samples}");
    }
}

#[test]
fn a_week_is_compared_with_the_week_before_where_there_is_one() {
    let compared = |report: &Value| report["lead"].as_str().unwrap().contains("the week before");
    let week = asked(fortnight(), &["--week", "2026-W47"]);
    assert!(compared(&week), "{}", week["lead"]);
    assert!(
        week["period"]
            .as_str()
            .unwrap()
            .starts_with("Week 47 of 2026: "),
        "{}",
        week["period"]
    );
    let alone = asked(fortnight(), &["--week", "2026-W47", "--no-comparison"]);
    assert!(!compared(&alone), "{}", alone["lead"]);
    let first = asked(fortnight(), &["--week", "2026-W46"]);
    assert!(!compared(&first), "{}", first["lead"]);
    // The comparison does not change the findings of the week itself.
    assert_eq!(coverage(&week), coverage(&alone));
}

#[test]
fn a_time_before_with_nothing_or_little_is_not_compared() {
    let nothing = ["--from", "2026-11-09T00:00:01Z", "--until", "2026-11-12"];
    let little = ["--from", "2026-11-10", "--until", "2026-11-16"];
    for time in [nothing, little] {
        let report = asked(fortnight(), &time);
        let lead = report["lead"].as_str().unwrap();
        assert!(!lead.contains("before"), "{lead}");
    }
    // A second between two samples has no samples, although the day has: exit code 3.
    let moment = [
        "--from",
        "2026-11-10T12:00:00Z",
        "--until",
        "2026-11-10T12:00:01Z",
    ];
    let output = report(fortnight(), &moment).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
}

#[test]
fn any_other_time_is_compared_with_as_much_before() {
    let days = asked(
        fortnight(),
        &["--from", "2026-11-12", "--until", "2026-11-15"],
    );
    let (lead, period) = (
        days["lead"].as_str().unwrap(),
        days["period"].as_str().unwrap(),
    );
    assert!(
        lead.contains("the 3 days before") && period.starts_with("3 days: "),
        "{lead} {period}"
    );
    let whole = asked(fortnight(), &[]);
    assert!(
        !whole["lead"].as_str().unwrap().contains("before"),
        "{}",
        whole["lead"]
    );
    let open = asked(fortnight(), &["--from", "2026-11-20"]);
    let (_, first, last) = coverage(&open);
    assert!(
        first >= at("2026-11-20") && last >= at("2026-11-22"),
        "{first} {last}"
    );
}

#[test]
fn last_is_the_last_week_that_is_over_where_the_fleet_is() {
    let folder = tempfile::tempdir().unwrap();
    let program = report(fortnight(), &["--week", "last"]);
    let at = |moment: &str, zone: &str| {
        let mut command = Command::new("faketime");
        command
            .arg(moment)
            .arg(program.get_program())
            .args(program.get_args());
        command
            .args(["--time-zone", zone])
            .env("TZ", "UTC")
            .current_dir(folder.path());
        command.output().unwrap()
    };
    made(at("2026-11-22 23:30:00", "Europe/Berlin"));
    assert!(text(folder.path().join("2026-W47.html")).contains("Week 47 of 2026"));
    made(at("2026-11-22 23:30:00", "UTC"));
    assert!(text(folder.path().join("2026-W46.html")).contains("Week 46 of 2026"));
    let later = at("2026-12-24 12:00:00", "UTC");
    assert_eq!(later.status.code(), Some(3), "{}", said(&later));
}

#[test]
fn what_cannot_be_reported_is_refused_with_what_can() {
    let folder = tempfile::tempdir().unwrap();
    for (args, code, words) in [
        (
            &["--week", "2026-W60"][..],
            2,
            &["no week 60 in 2026", "W53"][..],
        ),
        (
            &["--week", "2026-W47", "--from", "2026-11-01"],
            2,
            &["--from"],
        ),
        (
            &["--week", "2026-W40"],
            3,
            &["Week 40 of 2026", "2026-11-09 00:0", "2026-W46, 2026-W47"],
        ),
        (
            &["--until", "2020-01-01"],
            3,
            &["nothing was recorded", "2026-W46"],
        ),
        (
            &["--from", "2026-11-20", "--until", "2026-11-20"],
            1,
            &["not after --from"],
        ),
        (
            &["--week", "2026-W47", "--time-zone", "Europe/Atlantis"],
            1,
            &["Europe/Atlantis", "IANA"],
        ),
        (&["--also", "md", "-o", "-"], 1, &["-o FILE"]),
        (&["--folder", "x"], 2, &["--week"]),
        (
            &["--week", "2026-W47", "--folder", "x", "-o", "y"],
            2,
            &["--folder", "--output"],
        ),
        (&["--mail", "nobody"], 2, &["nobody"]),
    ] {
        let output = report(fortnight(), args)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = said(&output);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        for word in words {
            assert!(said.contains(word), "{args:?}: {word} is missing in {said}");
        }
    }
    assert_eq!(
        super::names(folder.path()),
        Vec::<String>::new(),
        "nothing was written"
    );
}
