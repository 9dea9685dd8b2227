//! The question "Can the data be trusted?": covered time, missing data and its causes, and the cost of tracing.

mod absent;
mod cost;
mod estimates;
mod tables;
mod time;

use crate::page::{Part, Section};
use crate::view::View;
use crate::wording::{count, list, share};
use time::HostTime;

/// Maximum number of hosts named in a sentence.
const NAMED: usize = 3;

pub(crate) fn section(view: &View) -> Section {
    let times = time::times(view);
    Section {
        id: "trust".into(),
        title: "Can the data be trusted?".into(),
        answer: verdict(view, &times),
        parts: parts(view, &times),
    }
}

/// Share of the requested time that samples do not cover, on the hosts with samples.
pub(crate) fn missing_share(view: &View) -> f64 {
    let times = time::times(view);
    let asked_s: f64 = times.iter().map(|t| t.asked_s).sum();
    let covered_s: f64 = times.iter().map(|t| t.covered_s).sum();
    if asked_s > 0.0 {
        1.0 - covered_s / asked_s
    } else {
        0.0
    }
}

/// Number of hosts without samples in the requested time.
pub(crate) fn silent_hosts_count(view: &View) -> i64 {
    absent::without_samples(view).len() as i64
}

/// Answer: the number of hosts with trustworthy data, and the reasons for the others.
fn verdict(view: &View, times: &[HostTime]) -> String {
    let (trusted, doubtful): (Vec<&HostTime>, Vec<&HostTime>) =
        times.iter().partition(|t| t.is_trusted());
    let gone = absent::gone(view).len() + absent::without_samples(view).len();
    let all = times.len() + gone;
    if times.is_empty() {
        return "There are no samples.".into();
    }
    let sum = |take: fn(&HostTime) -> f64| trusted.iter().map(|t| take(t)).sum::<f64>();
    let asked_s = sum(|t| t.asked_s).max(1.0);
    let covered = sum(|t| t.covered_s) / asked_s;
    let yes = match (trusted.len(), all) {
        (0, _) => "Only after a check".to_owned(),
        (n, all) if n == all && all == 1 => "Yes".into(),
        (n, all) if n == all => format!("Yes, for all {}", count(all as i64, "host")),
        (n, all) => format!("Yes, for {n} of {}", count(all as i64, "host")),
    };
    let mut text = match trusted.len() {
        0 => format!("{yes}: "),
        _ => format!(
            "{yes}: samples cover {} of the requested time",
            share(covered)
        ),
    };
    if sum(|t| t.off_s) > 0.0 {
        text.push_str(", and the gaps include sleep or power-off");
    }
    let silent = trusted
        .iter()
        .filter(|t| t.silent_since_ms.is_some())
        .count();
    if silent > 0 {
        text.push_str(&format!("; {silent} of them sent no samples at its end"));
    }
    let mut rest = Vec::new();
    if !doubtful.is_empty() {
        let names: Vec<String> = doubtful.iter().map(|t| t.host.host_name.clone()).collect();
        rest.push(format!(
            "for {}, more than {} of the time is missing without sleep or power-off, or more than {} lies before the first sample or after the last",
            named(&names),
            share(time::UNKNOWN_LIMIT),
            share(time::OUTSIDE_LIMIT),
        ));
    }
    if gone > 0 {
        rest.push(format!(
            "{} sent no samples at all",
            count(gone as i64, "host")
        ));
    }
    match (trusted.is_empty(), rest.is_empty()) {
        (true, _) => text + &rest.join("; and ") + ".",
        (false, true) => text + ".",
        (false, false) => {
            let rest = rest.join("; and ");
            let mut letters = rest.chars();
            let first = letters.next().map(|c| c.to_uppercase().to_string());
            format!("{text}. {}{}.", first.unwrap_or_default(), letters.as_str())
        }
    }
}

/// Names in words: `birch, cedar and 4 others`.
fn named(names: &[String]) -> String {
    if names.len() <= NAMED + 1 {
        return list(names);
    }
    let mut told: Vec<String> = names[..NAMED].to_vec();
    told.push(format!("{} others", names.len() - NAMED));
    list(&told)
}

fn parts(view: &View, times: &[HostTime]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut put =
        |heading: &str, said: Vec<String>, tables: Vec<Option<crate::page::table::Table>>| {
            let tables: Vec<_> = tables.into_iter().flatten().collect();
            if said.is_empty() && tables.is_empty() {
                return;
            }
            parts.push(Part::Heading(heading.into()));
            parts.extend(said.into_iter().map(Part::Say));
            parts.extend(tables.into_iter().map(Part::Table));
        };
    put(
        "Time covered by samples",
        tables::coverage_words(view, times).into_iter().collect(),
        vec![tables::coverage(view, times), tables::gaps(view)],
    );
    put(
        "Missing hosts",
        absent::words(view, times),
        vec![absent::hosts(view, times)],
    );
    put(
        "Data that could not be read or measured",
        absent::nothing(view).into_iter().collect(),
        vec![
            tables::sources(view),
            tables::missing_values(view),
            absent::missing_measures(view),
        ],
    );
    put(
        "Cost of tracing",
        cost::words(view),
        vec![cost::table(view)],
    );
    put("Figures based on estimates", estimates::words(view), vec![]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use gleaner_schemas::findings::{Findings, HostSummary};

    fn host(name: &str, to_s: i64) -> HostSummary {
        HostSummary {
            host_id: format!("id-{name}"),
            host_name: name.into(),
            from_time_ms: 0,
            to_time_ms: to_s * 1000,
            coverage_share: 1.0,
            ..HostSummary::default()
        }
    }

    fn said(now: &[HostSummary], before: Option<&[HostSummary]>) -> String {
        let of = |hosts: &[HostSummary]| Findings {
            hosts: hosts.to_vec(),
            ..Findings::default()
        };
        let (now, before) = (of(now), before.map(of));
        let clock = Clock::new("UTC").unwrap();
        let view = View::new(&now, before.as_ref(), &clock, None);
        verdict(&view, &time::times(&view)).replace('\u{a0}', " ")
    }

    #[test]
    fn the_verdict_counts_hosts() {
        let whole = ["a", "b", "c"].map(|name| host(name, 1000));
        assert_eq!(
            said(&whole, None),
            "Yes, for all 3 hosts: samples cover 100 % of the requested time."
        );
        assert_eq!(
            said(&whole[..1], None),
            "Yes: samples cover 100 % of the requested time."
        );
        let mut short = whole.to_vec();
        short[1].to_time_ms = 300_000;
        assert_eq!(
            said(&short, Some(&[host("d", 5), host("a", 5)])),
            "Yes, for 2 of 4 hosts: samples cover 100 % of the requested time. For b, more than 10 % of the time is missing without \
             sleep or power-off, or more than 50 % lies before the first sample or after the last; and 1 host sent no samples at all."
        );
        assert_eq!(said(&[], None), "There are no samples.");
    }

    #[test]
    fn many_names_become_a_number() {
        let names: Vec<String> = ["a", "b", "c", "d", "e"].map(String::from).to_vec();
        assert_eq!(named(&names), "a, b, c and 2 others");
        assert_eq!(named(&names[..4]), "a, b, c and d");
    }
}
