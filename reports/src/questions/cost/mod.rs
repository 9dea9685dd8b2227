//! What would lending cost the owners?

use super::without;
use crate::page::Section;
use crate::view::View;

pub(crate) fn section(view: &View) -> Section {
    Section {
        id: "cost".into(),
        title: "What would lending cost the owners?",
        answer: String::new(),
        parts: vec![without(view, "reclaims", "It was not measured.")],
    }
}
