//! The question "Which hosts are short of memory, and which have too much?"

pub(crate) mod advice;
mod figures;
mod hosts;
mod programs;
mod tables;

use super::{parts, sentence, without};
use crate::imported::with_caveat;
use crate::page::{Part, Section};
use crate::view::View;
use crate::wording::{bytes, count, share};
use advice::{Advice, LEAST_DAYS, LEAST_TRACED_S, SHORT_SAMPLES_SHARE, SHORT_SHARE, SPARE_BELOW};
use hosts::{Host, hosts, named};

pub(crate) fn section(view: &View) -> Section {
    let found = hosts(view);
    let earlier = view.earlier();
    let before = earlier.as_ref().map(hosts);
    let table = tables::overview(view, &found, before.as_deref());
    let mut said = parts([
        table.map(Part::Table),
        figures::used(view, &found).map(Part::figure),
    ]);
    let when = parts([
        tables::worst(view, &found).map(Part::Table),
        figures::by_hour(view).map(Part::figure),
    ]);
    if !when.is_empty() {
        said.push(Part::Heading(
            "When were hosts short of memory, and what used it?".into(),
        ));
        said.extend(when);
    }
    if let Some(programs) = programs::table(view, earlier.as_ref()) {
        said.push(Part::Heading("Which programs use the memory?".into()));
        said.push(Part::Table(programs));
    } else if !found.is_empty() {
        said.push(without(
            view,
            "top_processes",
            "It is not known which programs use the memory.",
        ));
    }
    Section {
        id: "short".into(),
        title: "Which hosts are short of memory, and which have too much?".into(),
        answer: with_caveat(view, answer(view, &found, before.as_deref())),
        parts: said,
    }
}

/// Number of hosts that are short of memory, and how often hosts were short.
pub(crate) struct Shortage {
    pub hosts_count: i64,
    /// Number of sample intervals in which a host was short; absent if they were not counted on any host.
    pub intervals_count: Option<i64>,
}

/// Shortage of all hosts together.
pub(crate) fn shortage(view: &View) -> Shortage {
    let found = hosts(view);
    let intervals = found.iter().filter_map(|host| host.short_intervals);
    Shortage {
        hosts_count: found.iter().filter(is_short).count() as i64,
        intervals_count: intervals.reduce(|sum, more| sum + more),
    }
}

fn is_short(host: &&Host) -> bool {
    matches!(host.advice, Advice::Add { .. })
}

/// Bytes that a host could spare; absent if it could spare none.
fn spare_bytes(host: &Host) -> Option<f64> {
    match host.advice {
        Advice::Move { bytes } | Advice::Spare { bytes } => Some(bytes),
        _ => None,
    }
}

fn answer(view: &View, found: &[Host], before: Option<&[Host]>) -> String {
    let seen = found.iter().filter(|h| h.seen.is_some()).count() as i64;
    if seen == 0 {
        return "There are no samples of any host’s memory.".into();
    }
    if let ([only], true) = (found, view.only_host().is_some()) {
        return sentence(&only.reason(view, found));
    }
    let unseen = |h: &&Host| h.seen.is_some() && h.advice == Advice::Watch;
    let watched = found.iter().filter(unseen).count() as i64;
    let judged = seen - watched;
    if judged == 0 {
        return format!(
            "None of {} was traced for long enough: advice needs {LEAST_DAYS} days, and {:.0} hours in all.",
            count(seen, "host"),
            LEAST_TRACED_S / 3600.0
        );
    }
    let short: Vec<&Host> = found.iter().filter(is_short).collect();
    let definition = format!(
        "less than {} of their memory available in at least {:.0}\u{a0}% of samples",
        share(SHORT_SHARE),
        SHORT_SAMPLES_SHARE * 100.0
    );
    let names = short.iter().map(|h| h.summary.host_name.clone()).collect();
    let mut said = match short.len() as i64 {
        0 => format!(
            "None of {} was short of memory ({definition})",
            count(judged, "host")
        ),
        n => format!(
            "{n} of {} {} short of memory ({definition}): {}",
            count(judged, "host"),
            if n == 1 { "was" } else { "were" },
            named(names)
        ),
    };
    if let Some(before) = before {
        let then = before.iter().filter(is_short).count() as i64;
        if then != short.len() as i64 {
            let verb = if then == 1 { "was" } else { "were" };
            said.push_str(&format!("; in {} {then} {verb}", view.before_label()));
        }
    }
    said.push('.');
    let spare: Vec<f64> = found.iter().filter_map(spare_bytes).collect();
    match spare.len() as i64 {
        0 => said.push_str(" No host has clearly too much."),
        n => said.push_str(&format!(
            " {} never used {SPARE_BELOW} of {} memory and could spare {} in total.",
            count(n, "host"),
            if n == 1 { "its" } else { "their" },
            bytes(spare.iter().sum::<f64>())
        )),
    }
    if watched > 0 {
        said.push_str(&format!(
            " {} more: traced for too short a time for advice.",
            count(watched, "host")
        ));
    }
    said
}

#[cfg(test)]
mod tests;
