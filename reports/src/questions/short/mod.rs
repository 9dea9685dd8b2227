//! The question "Who is short, who has too much?"

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
        said.push(Part::Heading("When were hosts short, and of what?".into()));
        said.extend(when);
    }
    if let Some(programs) = programs::table(view, earlier.as_ref()) {
        said.push(Part::Heading("Which programs use the memory?".into()));
        said.push(Part::Table(programs));
    } else if !found.is_empty() {
        said.push(without(
            view,
            "top_processes",
            "Which programs use the memory is not known.",
        ));
    }
    Section {
        id: "short".into(),
        title: "Who is short, who has too much?".into(),
        answer: with_caveat(view, answer(view, &found, before.as_deref())),
        parts: said,
    }
}

fn is_short(host: &&Host) -> bool {
    matches!(host.advice, Advice::Add { .. })
}

/// Memory that a host could do without.
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
            "Of none of {} enough was seen to say: it takes {LEAST_DAYS} days, and {:.0} hours in all.",
            count(seen, "host"),
            LEAST_TRACED_S / 3600.0
        );
    }
    let short: Vec<&Host> = found.iter().filter(is_short).collect();
    let definition = format!(
        "less than {} of their memory available in {:.0}\u{a0}% of samples or more",
        share(SHORT_SHARE),
        SHORT_SAMPLES_SHARE * 100.0
    );
    let names = short.iter().map(|h| h.summary.host_name.clone()).collect();
    let mut said = match short.len() as i64 {
        0 => format!("None of {} was short ({definition})", count(judged, "host")),
        n => format!(
            "{n} of {} {} short ({definition}): {}",
            count(judged, "host"),
            if n == 1 { "was" } else { "were" },
            named(names)
        ),
    };
    if let Some(before) = before {
        let then = before.iter().filter(is_short).count() as i64;
        if then != short.len() as i64 {
            let verb = if then == 1 { "was" } else { "were" };
            said.push_str(&format!("; {} {then} {verb}", view.before_label()));
        }
    }
    said.push('.');
    let spare: Vec<f64> = found.iter().filter_map(spare_bytes).collect();
    match spare.len() as i64 {
        0 => said.push_str(" None can be said to have too much."),
        n => said.push_str(&format!(
            " {} never used {SPARE_BELOW} of {} memory and could do without {} together.",
            count(n, "host"),
            if n == 1 { "its" } else { "their" },
            bytes(spare.iter().sum::<f64>())
        )),
    }
    if watched > 0 {
        said.push_str(&format!(
            " Of {} more, too little was seen to advise anything.",
            count(watched, "host")
        ));
    }
    said
}

#[cfg(test)]
mod tests;
