use super::*;
use crate::report::week::week;

fn asked(text: &str, zone_name: &str) -> RequestedTime {
    let Ok(Week::Of(of)) = week(text) else {
        panic!("{text}")
    };
    of_week(of, &zone(zone_name).unwrap()).unwrap()
}

fn hours(asked: &RequestedTime) -> (i64, i64) {
    let span = asked.span.as_ref().unwrap();
    let before = span.from_ms - asked.before_from_ms.unwrap();
    ((span.until_ms - span.from_ms) / HOUR_MS, before / HOUR_MS)
}

fn at(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_millisecond()
}

#[test]
fn a_week_begins_on_monday_where_the_fleet_is() {
    let week = asked("2026-W47", "Europe/Berlin");
    let span = week.span.as_ref().unwrap();
    assert_eq!(span.from_ms, at("2026-11-16T00:00:00+01:00"));
    assert_eq!(span.until_ms, at("2026-11-23T00:00:00+01:00"));
    assert_eq!(week.before_from_ms, Some(at("2026-11-09T00:00:00+01:00")));
    assert_eq!(
        (week.name.as_str(), span.label.as_str()),
        ("2026-W47", "Week 47 of 2026")
    );
}

#[test]
fn weeks_in_which_the_clocks_change_have_an_hour_less_or_more() {
    assert_eq!(hours(&asked("2026-W13", "Europe/Berlin")), (167, 168));
    assert_eq!(hours(&asked("2026-W14", "Europe/Berlin")), (168, 167));
    assert_eq!(hours(&asked("2026-W43", "Europe/Berlin")), (169, 168));
    assert_eq!(hours(&asked("2026-W43", "UTC")), (168, 168));
    // In Beirut the clocks are set forward at 00:00 on the Sunday of this week. Only that day does not begin
    // at 00:00.
    assert_eq!(hours(&asked("2026-W13", "Asia/Beirut")), (167, 168));
}

#[test]
fn the_year_of_a_week_is_that_of_its_thursday() {
    let first = asked("2026-W01", "UTC").span.unwrap();
    assert_eq!(first.from_ms, at("2025-12-29T00:00:00Z"));
    let last = asked("2026-W53", "UTC").span.unwrap();
    assert_eq!(last.until_ms, at("2027-01-04T00:00:00Z"));
}

#[test]
fn the_last_week_is_over_where_the_fleet_is() {
    let last = |zone_name, now: &str| {
        name(last_week(&zone(zone_name).unwrap(), now.parse().unwrap()).unwrap())
    };
    assert_eq!(last("UTC", "2026-11-22T23:59:59Z"), "2026-W46");
    assert_eq!(last("UTC", "2026-11-23T00:00:00Z"), "2026-W47");
    assert_eq!(last("Europe/Berlin", "2026-11-22T23:00:00Z"), "2026-W47");
    assert_eq!(last("America/New_York", "2026-11-23T04:59:59Z"), "2026-W46");
    assert_eq!(last("UTC", "2027-01-05T00:00:00Z"), "2026-W53");
}

#[test]
fn what_is_no_week_is_refused_with_what_is() {
    assert_eq!(
        week("2026-W60"),
        Err("there is no week 60 in 2026: its weeks are W01 to W53".to_owned())
    );
    assert!(week("2025-W53").unwrap_err().ends_with("W01 to W52"));
    for wrong in [
        "", "47", "2026-47", "2026W47", "2026-W", "2026-W7", "26-W47", "2026-W+7", "-026-W01",
        "2026-W00",
    ] {
        assert!(week(wrong).is_err(), "{wrong}");
    }
    assert_eq!(week("last"), Ok(Week::Last));
}

#[test]
fn other_times_go_by_their_length() {
    let of = |hours: i64| {
        let asked = between(0, hours * HOUR_MS).unwrap();
        let span = asked.span.unwrap();
        (span.label, span.before_label, asked.before_from_ms)
    };
    let said =
        |label: &str, before: &str, from: i64| (label.into(), before.into(), Some(from * HOUR_MS));
    assert_eq!(of(72), said("3 days", "the 3 days before", -72));
    assert_eq!(of(24), said("1 day", "the day before", -24));
    assert_eq!(of(36), said("36 hours", "the 36 hours before", -36));
    assert_eq!(length(90_000), "2 minutes");
    assert!(between(5, 5).is_err());
}
