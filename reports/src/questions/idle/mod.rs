//! The question "How much memory is idle, and can we count on it?"

mod dependable_memory;
mod notions;
mod over_time;
mod sharing;
pub(crate) mod tables;

use super::without;
use crate::fleet::Fleet;
use crate::imported::with_caveat;
use crate::page::{Part, Section};
use crate::view::View;
use crate::wording::{bytes, share};

pub(crate) fn section(view: &View) -> Section {
    let mut parts = Vec::new();
    let over_time = over_time::figure(view).map(Part::figure);
    let together = dependable_memory::together(view).map(Part::Table);
    parts.extend(over_time);
    parts.extend(together);
    under(
        &mut parts,
        "How much memory stayed available, and for how long?",
        [
            dependable_memory::figure(view).map(Part::figure),
            dependable_memory::guarantees(view).map(Part::Table),
        ],
    );
    under(
        &mut parts,
        "Which hosts have the available memory?",
        [
            sharing::ranks(view).map(Part::figure),
            tables::classes(view).map(Part::Table),
            sharing::pooling_sentence(view).map(Part::Say),
            sharing::pooling(view).map(Part::Table),
        ],
    );
    under(
        &mut parts,
        "How is the memory used?",
        [
            tables::usage(view).map(Part::Table),
            notions::table(view).map(Part::Table),
        ],
    );
    if parts.is_empty() {
        parts.push(without(
            view,
            "memory_usage",
            "There are no samples of memory.",
        ));
    }
    Section {
        id: "idle".into(),
        title: "How much memory is idle, and can we count on it?".into(),
        answer: with_caveat(view, answer(view)),
        parts,
    }
}

/// Adds a heading and the parts under it; adds nothing without parts.
fn under<const N: usize>(parts: &mut Vec<Part>, heading: &str, beneath: [Option<Part>; N]) {
    let beneath: Vec<Part> = beneath.into_iter().flatten().collect();
    if !beneath.is_empty() {
        parts.push(Part::Heading(heading.into()));
        parts.extend(beneath);
    }
}

fn answer(view: &View) -> String {
    let Some(fleet) = Fleet::of(view) else {
        return String::new();
    };
    let much = format!(
        "{} of {} was available on average ({})",
        bytes(fleet.available_bytes),
        bytes(fleet.physical_bytes),
        share(fleet.available_share)
    );
    match (dependable_memory::answer(view), fleet.dependable_bytes) {
        (Some(counted_on), _) => format!("{much}. {counted_on}"),
        (None, Some(least)) => format!(
            "{much}, and at least {} for 95\u{a0}% of the time.",
            bytes(least)
        ),
        (None, None) => {
            format!("{much}. The trace is too short to show how much memory can be counted on.")
        }
    }
}

#[cfg(test)]
mod tests;
