//! Writers of a page: as HTML, Markdown, CSV, JSON.

pub(crate) mod csv;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod markdown;
