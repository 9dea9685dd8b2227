//! How much memory is idle, and can we count on it?

pub(crate) mod tables;

use super::without;
use crate::page::{Part, Section};
use crate::view::View;

pub(crate) fn section(view: &View) -> Section {
    let tables = tables::usage(view);
    let parts = if tables.is_empty() {
        vec![without(
            view,
            "memory_usage",
            "There are no samples of memory.",
        )]
    } else {
        tables.into_iter().map(Part::Table).collect()
    };
    Section {
        id: "idle".into(),
        title: "How much memory is idle, and can we count on it?",
        answer: String::new(),
        parts,
    }
}
