//! The question "How long does memory stay available?"

mod axes;
mod coming;
mod copies;
mod curves;
mod ends;
mod figures;
mod hours;
mod odds;
mod outlook;
mod regions;
mod tables;

use super::{parts, without};
use crate::imported::with_caveat;
use crate::page::{Part, Section};
use crate::view::View;
use crate::wording::{seconds, size};
use gleaner_schemas::findings::Notion;

pub(crate) fn section(view: &View) -> Section {
    let (unknown, lengths) = stays(view);
    let answer = odds::answer(view).or(unknown).unwrap_or_default();
    let mut all = parts([
        odds::figure(view).map(Part::figure),
        odds::table(view).map(Part::Table),
        odds::intervals(view).map(Part::Table),
        ends::causes(view).map(Part::figure),
        ends::losses(view).map(Part::Table),
    ]);
    if all.is_empty() && !lengths.is_empty() {
        all.push(without(
            view,
            "availability_odds",
            "It is not known how long available memory stays available: no host could be followed for ten minutes.",
        ));
    }
    let mut add = |title: &str, under: Vec<Part>| {
        if !under.is_empty() {
            all.push(Part::Heading(title.into()));
            all.extend(under);
        }
    };
    add("At which hours is memory available?", hours::maps(view));
    add("How long do availability periods last?", lengths);
    add(
        "How much memory is expected in the coming week?",
        coming::parts(view),
    );
    add(
        "How much memory will probably stay available?",
        outlook::parts(view),
    );
    add(
        "Do copies on several hosts help?",
        parts([
            copies::sentence(view).map(Part::Say),
            copies::table(view).map(Part::Table),
        ]),
    );
    Section {
        id: "lasting".into(),
        title: "How long does memory stay available?".into(),
        answer: with_caveat(view, answer),
        parts: all,
    }
}

/// Reason why results on periods are missing (absent if they are not), and the parts of the page on periods.
fn stays(view: &View) -> (Option<String>, Vec<Part>) {
    let periods: Vec<_> = view
        .findings
        .availability_periods
        .iter()
        .filter(|p| p.notion == Notion::Available)
        .collect();
    let minimum_s = view.findings.parameters.minimum_period_s;
    let longest_s = view.longest_trace_s();
    let kept = periods.iter().filter(|p| p.periods_count > 0);
    let largest = kept.clone().max_by_key(|p| p.region_bytes);
    let words = match largest {
        None if longest_s < minimum_s => Some(format!(
            "No result yet: only periods of {} or more count, and the trace is {} long. To learn how long memory stays available, trace for \
             some days that include nights and a weekend.",
            seconds(minimum_s),
            seconds(longest_s)
        )),
        None if periods.is_empty() => Some("No region size was requested.".into()),
        None => Some(format!(
            "No region stayed available for {}, the shortest period that counts.",
            seconds(minimum_s)
        )),
        Some(largest) if kept.clone().all(|p| p.censored_count >= p.periods_count) => {
            Some(format!(
                "No period was observed from start to end: each touches a gap or an end of the trace. The trace therefore does not show how long a \
             region stays available. A region of {} was available for at least {} without interruption.",
                size(largest.region_bytes),
                largest.longest_s.map(seconds).unwrap_or_default()
            ))
        }
        Some(_) => None,
    };
    let figure = words.is_none().then(|| figures::periods(view)).flatten();
    // Without any period, the table would contain only dashes.
    let table = largest.and_then(|_| tables::availability(view));
    let has_odds = odds::answer(view).is_some();
    let lengths = parts([
        // With odds, the section's answer is about them, and the sentence on missing periods comes here.
        words.clone().filter(|_| has_odds).map(Part::Say),
        curves::figure(view).map(Part::figure),
        figure.map(Part::figure),
        curves::bounds(view).map(Part::Table),
        table.map(Part::Table),
    ]);
    (words, lengths)
}
