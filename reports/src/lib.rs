//! Turns findings into a report: one self-contained HTML page, and its companions (Markdown, CSV, JSON).
//!
//! ```text
//! Findings (this week's, and the week's before) ─► View ─► document: its content in parts (page/) ─► write: HTML, Markdown, CSV, JSON
//!                                                   │        headline, questions/ (five), hosts/ (a page each), method/
//!                                                   └ change: against the week before
//! ```
//!
//! [`Comparison`] and [`LinePage`] make other pages from the same parts: one compares policies by gain and cost, the
//! other one has figures of lines.
//!
//! A page is a list of sections, each for one reader's question; a section is a list of sentences, figures
//! and tables ([`page`]). The writers know nothing about memory. CSV and JSON have every table of the sections
//! with all rows; Markdown is a short form.
//!
//! A fleet of many hosts is divided into sites: a report of each site, and a page of all hosts with a table of the
//! sites (`sites`).
//!
//! Rooms, from the top; each uses only those after it: `anonymous`, `lines`, `comparison`, `index`, `write`,
//! `document`, `headline`, `hosts`, `method`, `sites`, `questions`, `change`, `fleet`, `imported`, `view`, `clock`,
//! `names`, `options`, `page`, `wording`.

mod anonymous;
mod change;
mod clock;
mod comparison;
mod document;
mod fleet;
mod headline;
mod hosts;
mod imported;
mod index;
mod lines;
mod method;
mod names;
mod options;
mod page;
mod questions;
mod sites;
mod view;
mod wording;
mod write;

pub use anonymous::numbered;
use clock::Clock;
pub use comparison::{ComparedGroup, ComparedMeasure, ComparedRow, ComparedUnit, Comparison};
use document::Page;
use gleaner_schemas::findings::Findings;
pub use index::{IndexEntry, index};
pub use lines::{FigureLine, LineAxis, LineCell, LinePage, LineSection};
pub use options::{Options, Site, SiteFigures, Span};
pub use sites::site_figures;
pub use write::csv::TableFile;

/// A report, ready to be written as a page and companions.
pub struct Report {
    page: Page,
    made_at: String,
}

/// Reason why a report could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The time zone is unknown.
    #[error(
        "time zone `{name}` is not known here: give an IANA name such as Europe/Berlin, or UTC"
    )]
    TimeZone {
        /// Name as requested.
        name: String,
        /// Error of jiff.
        source: jiff::Error,
    },
    /// A template could not be filled in, or a figure could not be written as JSON.
    #[error("the page could not be rendered")]
    Template(#[from] askama::Error),
}

/// A report's line in an index of reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Title of the page.
    pub title: String,
    /// Hosts of the report: `40 hosts`.
    pub subject: String,
    /// Period that the report covers.
    pub period: String,
    /// Headline of the report.
    pub lead: String,
}

impl Report {
    /// Makes a report from the findings of a period and, if known, of the period before.
    ///
    /// # Errors
    /// [`ReportError::TimeZone`] if the time zone is unknown.
    pub fn new(
        findings: &Findings,
        before: Option<&Findings>,
        options: &Options,
    ) -> Result<Self, ReportError> {
        let clock = Clock::new(&options.time_zone)?;
        let mut findings = std::borrow::Cow::Borrowed(findings);
        let mut before = before.map(std::borrow::Cow::Borrowed);
        if options.anonymous {
            anonymous::rename(findings.to_mut(), before.as_mut().map(|b| b.to_mut()));
        }
        Ok(Self {
            page: Page::new(&findings, before.as_deref(), &clock, options),
            made_at: format!(
                "{} {}",
                clock.date_time(options.made_at_ms),
                clock.zone_at(options.made_at_ms)
            ),
        })
    }

    /// Returns one self-contained HTML page: it contains its styles, Plotly and data, and its content policy
    /// forbids every request.
    ///
    /// # Errors
    /// A number cannot be written as JSON.
    pub fn html(&self) -> Result<String, ReportError> {
        write::html::render(&self.page, &self.made_at)
    }

    /// Returns the headline, short forms of the five answers, and their small tables as Markdown, for mail or
    /// chat.
    #[must_use]
    pub fn markdown(&self) -> String {
        write::markdown::render(&self.page)
    }

    /// Returns every table of the page, with all rows, as CSV; tables of hosts' pages are left out.
    #[must_use]
    pub fn tables(&self) -> Vec<TableFile> {
        write::csv::files(&self.page)
    }

    /// Returns headline, sentences and all tables as one JSON document.
    #[must_use]
    pub fn json(&self) -> String {
        write::json::render(&self.page)
    }

    /// Returns the report's line in an index of reports.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary {
            title: self.page.title.clone(),
            subject: self.page.subject.clone(),
            period: self.page.period.clone(),
            lead: self.page.headline.lead_alone(),
        }
    }
}
