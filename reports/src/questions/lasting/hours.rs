//! Hours of the week at which memory is available, and at which it stays available.

use super::regions;
use crate::page::Part;
use crate::page::hours::{Map, Measure, Week};
use crate::view::View;
use crate::wording::size;
use gleaner_schemas::findings::{AvailabilityByHour, Findings, Scope};

/// Minimum mean deviation of the cells from their mean: below it, a sentence replaces the map.
const FLAT_SHARE: f64 = 0.01;
/// Minimum number of hours of the week that a map needs.
const LEAST_HOURS: usize = 24;

/// Mean memory of one category per host, by hour of the week.
pub(super) fn memory(findings: &Findings, category: &str) -> Week {
    let hours = findings.memory_usage_by_hour.iter();
    Week::of(
        hours
            .filter(|m| m.size_class == "all" && m.category == category && m.samples_count > 0)
            .map(|m| (m.weekday, m.hour, Some(m.mean_bytes))),
    )
}

/// Share of time in which owners are away, by hour of the week.
pub(super) fn idle(findings: &Findings) -> Week {
    let hours = findings.idle_by_hour.iter();
    Week::of(
        hours
            .filter(|i| i.size_class == "all" && i.samples_count > 0)
            .map(|i| (i.weekday, i.hour, Some(i.idle_share))),
    )
}

/// Availability of regions of one size, by hour of the week.
pub(super) fn region(
    findings: &Findings,
    scope: Scope,
    region_bytes: i64,
    value: impl Fn(&AvailabilityByHour) -> Option<f64>,
) -> Week {
    let hours = findings.availability_by_hour.iter();
    Week::of(
        hours
            .filter(|a| a.size_class == "all" && a.scope == scope && a.region_bytes == region_bytes)
            .map(|a| (a.weekday, a.hour, value(a))),
    )
}

/// Parts with the maps; a sentence replaces a map that would have a single colour.
pub(super) fn maps(view: &View) -> Vec<Part> {
    let f = view.findings;
    let traced = memory(f, "available").known().count();
    if (1..LEAST_HOURS).contains(&traced) {
        return vec![Part::say(format!(
            "Only {traced} of the 168 hours of a week were traced: too few to compare hours."
        ))];
    }
    let mut parts = Vec::new();
    let zone = view.hours_zone();
    let mut add = |id: &str, title: String, week: Week, measure: Measure, said: &str, label| {
        let Some(mean) = week.mean() else {
            return;
        };
        let least = week.hour_words(false);
        let least =
            least.map(|(when, value)| format!(" Minimum: {when}, {}.", measure.words(value)));
        let hours = week.known().count() as f64;
        let off = week.known().map(|(_, _, v)| (v - mean).abs()).sum::<f64>() / hours;
        if measure == Measure::Share && off < FLAT_SHARE {
            let mean = measure.words(mean);
            let least = least.filter(|_| off > 0.0).unwrap_or_default();
            parts.push(Part::say(format!(
                "{said}: {mean} on average, with little difference between hours.{least}"
            )));
            return;
        }
        let sentence = format!(
            "{said}: {}.{}",
            week.parts_words(measure),
            least.unwrap_or_default()
        );
        let map = Map {
            id: format!("{}{id}", view.prefix),
            title: format!("{title}, by hour of the week{zone}"),
            sentence,
            measure,
            colour: "gain",
            label,
        };
        parts.extend(week.figure(map).map(Part::figure));
    };
    add(
        "hours-available",
        "Available memory of a host".into(),
        memory(f, "available"),
        Measure::Bytes,
        "Mean available memory of a host",
        "available",
    );
    add(
        "hours-idle",
        "Owners away".into(),
        idle(f),
        Measure::Share,
        "Share of hosts whose owner is away",
        "owner away",
    );
    if let Some(middle) = regions::middle(f) {
        let name = size(middle);
        add(
            "hours-region",
            format!("A region of {name} is available"),
            region(f, Scope::All, middle, |a| Some(a.available_share)),
            Measure::Share,
            &format!("Share of the time in which a region of {name} is available"),
            "available",
        );
        let scope = if super::odds::idle_is_known(f) {
            Scope::Idle
        } else {
            Scope::All
        };
        let until = match scope {
            Scope::Idle => ", with the owner away throughout",
            Scope::All => "",
        };
        add(
            "hours-stays",
            format!("A region of {name} is still available an hour later{until}"),
            region(f, scope, middle, |a| a.available_1h_probability),
            Measure::Share,
            &format!(
                "Probability that a region of {name} available at that hour is still available an hour later{until}"
            ),
            "still available",
        );
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::ask;
    use gleaner_schemas::findings::IdleByHour;

    fn hour(weekday: i64, hour: i64, idle_share: f64) -> IdleByHour {
        IdleByHour {
            size_class: "all".into(),
            weekday,
            hour,
            samples_count: 40,
            idle_share,
        }
    }

    fn said(findings: &Findings) -> String {
        let text = |part: &Part| match part {
            Part::Say(text) => text.clone(),
            Part::Figure(figure) => format!("[{}] {}", figure.title, figure.sentence),
            _ => String::new(),
        };
        let parts: Vec<String> = ask(findings, None, maps).iter().map(text).collect();
        parts.join("\n").replace('\u{a0}', " ")
    }

    #[test]
    fn a_map_of_one_colour_is_a_sentence() {
        let mut findings = Findings {
            idle_by_hour: vec![hour(1, 9, 0.8), hour(1, 10, 0.803)],
            ..Findings::default()
        };
        assert_eq!(
            said(&findings),
            "Share of hosts whose owner is away: 80 % on average, with little difference between hours. Minimum: Monday from 9:00, 80 %."
        );
        findings.idle_by_hour.push(hour(2, 14, 0.2));
        let text = said(&findings);
        assert!(
            text.starts_with("[Owners away, by hour of the week (UTC time)]"),
            "{text}"
        );
        assert!(
            text.contains("Minimum: Tuesday from 14:00, 20 %."),
            "{text}"
        );
        assert!(said(&Findings::default()).is_empty());
    }
}
