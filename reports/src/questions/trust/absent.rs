//! Missing hosts and missing measures.

use super::named;
use super::time::HostTime;
use crate::page::table::{Cell, Table, numbers, words as words_column};
use crate::questions::sentence;
use crate::view::View;
use crate::wording::count;
use gleaner_schemas::findings::HostSummary;
use std::collections::{BTreeMap, HashSet};

/// The measure under which the analysis lists hosts without samples.
const HOSTS: &str = "hosts";

/// Hosts of the week before that are missing in this week.
pub(super) fn gone<'a>(view: &View<'a>) -> Vec<&'a HostSummary> {
    let here: HashSet<&str> = view
        .findings
        .hosts
        .iter()
        .map(|h| h.host_id.as_str())
        .collect();
    let listed: HashSet<&str> = without_samples(view).into_iter().collect();
    let before = view.before.into_iter().flat_map(|before| &before.hosts);
    before
        .filter(|h| !here.contains(h.host_id.as_str()) && !listed.contains(h.host_id.as_str()))
        .collect()
}

/// Ids of hosts that the dataset lists without samples.
pub(super) fn without_samples<'a>(view: &View<'a>) -> Vec<&'a str> {
    let missing = view.findings.missing_measures.iter();
    missing
        .filter(|n| n.measure == HOSTS)
        .map(|n| n.host_id.as_str())
        .collect()
}

pub(super) fn words(view: &View, times: &[HostTime]) -> Vec<String> {
    let silent: Vec<String> = times
        .iter()
        .filter(|t| t.silent_since_ms.is_some())
        .map(|t| t.host.host_name.clone())
        .collect();
    let gone = gone(view);
    let is_traced = gone.iter().any(|host| host.source.is_none());
    let gone: Vec<String> = gone.iter().map(|h| h.host_name.clone()).collect();
    let empty = without_samples(view).len() as i64;
    let before = view.before_label();
    let mut said = Vec::new();
    if !gone.is_empty() {
        said.push(format!(
            "{} sent samples in {before} but none now: {}.{}",
            count(gone.len() as i64, "host"),
            named(&gone),
            match is_traced {
                true => " Check that they are still on the network and that the agent still runs.",
                false => "",
            }
        ));
    }
    if empty > 0 {
        said.push(
            format!(
                "{} are listed in the dataset without a sample.",
                count(empty, "host")
            )
            .replace("1\u{a0}host are", "1\u{a0}host is"),
        );
    }
    if !silent.is_empty() {
        said.push(format!(
            "{} sent no samples at the end: {}. They may be switched off; the cause is known only once they send samples again.",
            count(silent.len() as i64, "host"),
            named(&silent)
        ));
    }
    if said.is_empty() && view.before.is_some() {
        said.push(format!(
            "No host is missing: every host of {before} is in this report, and all sent samples until its end."
        ));
    }
    said
}

/// Table of missing hosts, and of hosts that stopped sending samples.
pub(super) fn hosts(view: &View, times: &[HostTime]) -> Option<Table> {
    let mut rows: Vec<Vec<Cell>> = gone(view)
        .into_iter()
        .map(|host| {
            vec![
                Cell::text(&host.host_name),
                Cell::text("no sample now"),
                Cell::moment(view.clock.moment(host.to_time_ms), host.to_time_ms),
            ]
        })
        .collect();
    rows.extend(without_samples(view).into_iter().map(|id| {
        let before = view.before.into_iter().flat_map(|before| &before.hosts);
        let name = before
            .filter(|h| h.host_id == id)
            .map(|h| h.host_name.clone())
            .next();
        vec![
            Cell::text(name.unwrap_or_else(|| id.to_owned())),
            Cell::text("listed without a sample"),
            Cell::absent(),
        ]
    }));
    let mut silent: Vec<&HostTime> = times.iter().collect();
    silent.sort_by_key(|time| time.silent_since_ms);
    rows.extend(silent.into_iter().filter_map(|time| {
        let since = time.silent_since_ms?;
        Some(vec![
            view.host_cell(&time.host.host_id),
            Cell::text("no samples at the end"),
            Cell::moment(view.clock.moment(since), since),
        ])
    }));
    Table::new(
        "missing-hosts".into(),
        "Hosts that are missing, or that stopped sending samples",
        vec![
            words_column("host"),
            words_column("finding"),
            words_column("last sample"),
        ],
    )
    .with_rows(rows)
}

/// Table of missing measures, grouped by reason.
pub(super) fn missing_measures(view: &View) -> Option<Table> {
    let mut groups: BTreeMap<(&str, String), Vec<(&str, &str)>> = BTreeMap::new();
    for missing in view
        .findings
        .missing_measures
        .iter()
        .filter(|n| n.measure != HOSTS)
    {
        let key = (missing.measure.as_str(), without_numbers(&missing.reason));
        let told = (missing.host_id.as_str(), missing.reason.as_str());
        groups.entry(key).or_default().push(told);
    }
    let rows = groups.into_iter().map(|((measure, form), told)| {
        let all = told.iter().any(|(host, _)| *host == "all");
        let hosts: HashSet<&str> = told.iter().map(|(host, _)| *host).collect();
        // If the reasons of a group differ in their numbers, the text without numbers applies to all hosts.
        let same = told.iter().all(|(_, reason)| *reason == told[0].1);
        let reason = if same { told[0].1.to_owned() } else { form };
        let whole = if all {
            view.findings.hosts.len()
        } else {
            hosts.len()
        };
        vec![
            Cell::text(measure.replace('_', " ")),
            Cell::count(whole as i64),
            Cell::text(sentence(&reason)),
        ]
    });
    Table::new(
        "missing-measures".into(),
        "Measures that could not be calculated",
        vec![
            words_column("measure"),
            numbers("hosts"),
            words_column("reason"),
        ],
    )
    .with_rows(rows.collect())
}

/// Sentence for a report in which nothing is missing.
pub(super) fn nothing(view: &View) -> Option<String> {
    let f = view.findings;
    let nothing =
        f.missing_values.is_empty() && f.missing_measures.is_empty() && !f.hosts.is_empty();
    nothing.then(|| "All data could be read, and every measure could be calculated.".into())
}

/// The reason with every number replaced by `…`.
fn without_numbers(reason: &str) -> String {
    let mut text = String::with_capacity(reason.len());
    for c in reason.chars() {
        if !c.is_ascii_digit() {
            text.push(c);
        } else if !text.ends_with('…') {
            text.push('…');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use gleaner_schemas::findings::{Findings, MissingMeasure};

    #[test]
    fn a_thousand_hosts_with_one_reason_are_one_row() {
        let missing = |host: usize| MissingMeasure {
            measure: "idle_periods".into(),
            host_id: host.to_string(),
            reason: format!("the load is unknown in {host} of 6720 samples"),
        };
        let findings = Findings {
            missing_measures: (0..1000).map(missing).collect(),
            ..Findings::default()
        };
        let clock = Clock::new("UTC").unwrap();
        let table = missing_measures(&View::new(&findings, None, &clock, None)).unwrap();
        assert_eq!(table.rows.len(), 1);
        let told: Vec<&str> = table.rows[0].iter().map(|c| c.text.as_str()).collect();
        assert_eq!(
            told,
            [
                "idle periods",
                "1,000",
                "The load is unknown in … of … samples."
            ]
        );
    }
}
