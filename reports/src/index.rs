//! A page that lists reports.

use crate::ReportError;
use crate::wording::count;
use askama::Template;

/// A report in an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// Path of the report's page, relative to the index.
    pub page: String,
    /// Companions of the report: name and path of each.
    pub companions: Vec<(String, String)>,
    /// Sites of the report with pages of their own: name and path of each.
    pub sites: Vec<(String, String)>,
    /// Title of the page.
    pub title: String,
    /// Hosts of the report: `40 hosts`.
    pub subject: String,
    /// Period that the report covers.
    pub period: String,
    /// Headline of the report.
    pub lead: String,
}

impl IndexEntry {
    /// Returns the title, with the subject appended unless the title contains it.
    fn about(&self) -> String {
        let plain = |text: &str| text.replace('\u{a0}', " ");
        if plain(&self.title).contains(&plain(&self.subject)) {
            self.title.clone()
        } else {
            format!("{}: {}", self.title, self.subject)
        }
    }

    /// Returns the number of sites: `12 sites`.
    fn sites_count(&self) -> String {
        count(self.sites.len() as i64, "site").replace('\u{a0}', " ")
    }
}

#[derive(Template)]
#[template(path = "index.html")]
struct Document<'a> {
    style: &'a str,
    entries: &'a [IndexEntry],
}

/// Returns one self-contained page that lists reports in the order given; the same entries give the
/// same page.
///
/// # Errors
/// The template cannot be filled in.
pub fn index(entries: &[IndexEntry]) -> Result<String, ReportError> {
    let style = include_str!("../assets/style.css");
    Ok(Document { style, entries }.render()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_listed_and_their_words_stay_words() {
        let entry = IndexEntry {
            page: "2026-W47.html".into(),
            companions: vec![("CSV".into(), "2026-W47-tables/".into())],
            sites: vec![("lab & co".into(), "2026-W47-sites/lab.html".into())],
            title: "Memory of <script>alert(1)</script>".into(),
            subject: "4 hosts".into(),
            period: "Week 47 of 2026".into(),
            lead: "Half & more is idle.".into(),
        };
        let page = index(&[entry]).unwrap();
        assert!(
            page.contains("<a href=\"2026-W47.html\">Week 47 of 2026</a>"),
            "{page}"
        );
        assert!(page.contains("href=\"2026-W47-tables/\""));
        assert!(
            page.contains("<a href=\"2026-W47-sites/lab.html\">lab &#38; co</a>"),
            "{page}"
        );
        assert!(page.contains("<summary>1 site</summary>"), "{page}");
        assert!(page.contains("Half &#38; more is idle."));
        assert!(!page.contains("<script"));
        assert!(page.contains("&#60;/script&#62;: 4 hosts</p>"), "{page}");
        assert!(index(&[]).unwrap().contains("No report yet"));
    }
}
