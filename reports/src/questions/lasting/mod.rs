//! How long does it last?

mod figures;
mod tables;

use super::parts;
use crate::page::{Part, Section};
use crate::view::View;
use crate::wording::{seconds, size};
use gleaner_schemas::findings::Notion;

pub(crate) fn section(view: &View) -> Section {
    Section {
        id: "lasting".into(),
        title: "How long does it last?",
        answer: String::new(),
        parts: stays(view),
    }
}

fn stays(view: &View) -> Vec<Part> {
    let periods: Vec<_> = view
        .findings
        .availability_periods
        .iter()
        .filter(|p| p.notion == Notion::Available)
        .collect();
    let minimum_s = view.findings.parameters.minimum_period_s;
    let longest_s = view.longest_trace_s();
    let kept = periods.iter().filter(|p| p.periods > 0);
    let largest = kept.clone().max_by_key(|p| p.region_bytes);
    let words = match largest {
        None if longest_s < minimum_s => Some(format!(
            "Nothing to show yet: only periods of {} or more count, and the trace is {} long. Trace for some days, with nights \
             and a weekend in them, to learn how long memory stays available.",
            seconds(minimum_s),
            seconds(longest_s)
        )),
        None if periods.is_empty() => Some("No size of region was asked about.".into()),
        None => Some(format!(
            "No region stayed available for {}, the shortest that counts.",
            seconds(minimum_s)
        )),
        Some(largest) if kept.clone().all(|p| p.censored >= p.periods) => Some(format!(
            "No period was seen whole: each touches a gap or an end of the trace, so how long a region stays available cannot be \
             told from it. A region of {} was available for at least {} at a stretch.",
            size(largest.region_bytes),
            largest.longest_s.map(seconds).unwrap_or_default()
        )),
        Some(_) => None,
    };
    let figure = words.is_none().then(|| figures::periods(view)).flatten();
    // Without a single period the table would be rows of dashes.
    let table = largest.and_then(|_| tables::availability(view));
    parts([
        words.map(Part::Say),
        figure.map(Part::figure),
        table.map(Part::Table),
    ])
}
