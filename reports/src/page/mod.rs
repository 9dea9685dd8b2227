//! Parts of a page, in a form independent of the output format.

pub(crate) mod figure;
pub(crate) mod hours;
pub(crate) mod table;

use figure::Figure;
use std::borrow::Cow;
use table::Table;

/// A question with its answer.
pub(crate) struct Section {
    pub id: String,
    pub title: Cow<'static, str>,
    /// Answer in one or two sentences, for readers who read no further.
    pub answer: String,
    pub parts: Vec<Part>,
}

/// A part of a section.
pub(crate) enum Part {
    /// A heading within the section.
    Heading(String),
    /// A paragraph of text.
    Say(String),
    Table(Table),
    Figure(Box<Figure>),
}

impl Part {
    pub(crate) fn say(text: impl Into<String>) -> Self {
        Self::Say(text.into())
    }

    pub(crate) fn figure(figure: Figure) -> Self {
        Self::Figure(Box::new(figure))
    }
}
