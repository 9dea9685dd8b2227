//! The five questions that the page answers, in order: one module each, with sentences, figures and
//! tables.

pub(crate) mod cost;
pub(crate) mod idle;
pub(crate) mod lasting;
pub(crate) mod short;
pub(crate) mod trust;

use crate::page::{Part, Section};
use crate::view::View;

/// Sections with the answers.
pub(crate) fn questions(view: &View) -> Vec<Section> {
    vec![
        idle::section(view),
        short::section(view),
        lasting::section(view),
        cost::section(view),
        trust::section(view),
    ]
}

/// Text in place of a missing measure: the analysis' reason if it gives one, otherwise `otherwise`.
pub(crate) fn without(view: &View, measure: &str, otherwise: &str) -> Part {
    Part::Say(
        view.reason_without(measure)
            .map_or_else(|| otherwise.to_owned(), sentence),
    )
}

/// Turns a reason into a sentence.
pub(crate) fn sentence(reason: &str) -> String {
    let mut letters = reason.trim().trim_end_matches('.').chars();
    match letters.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), letters.as_str()),
        None => String::new(),
    }
}

pub(crate) fn parts<const N: usize>(parts: [Option<Part>; N]) -> Vec<Part> {
    parts.into_iter().flatten().collect()
}
