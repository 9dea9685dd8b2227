//! Findings → one HTML page that needs nothing else: styles, Plotly and data are inside, and its
//! content policy lets nothing be fetched.
//!
//! A page is a list of sections, each a question that a reader has; a section is a list of
//! sentences, figures and tables ([`page`]). What is said in words comes from [`headline`] and
//! [`sections`], what is drawn from [`figures`], what is counted from [`tables`].

mod clock;
mod figures;
mod headline;
mod markdown;
mod page;
mod sections;
mod tables;
mod view;
mod wording;

use gleaner_schemas::findings::Findings;

/// How a report is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Title of the page.
    pub title: String,
    /// IANA name of the time zone that times are shown in.
    pub time_zone: String,
    /// When the report was made, told by the caller so that the same input gives the same page.
    pub made_at_ms: i64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            title: "Idle memory".into(),
            time_zone: "UTC".into(),
            made_at_ms: 0,
        }
    }
}

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// No such time zone.
    #[error(
        "time zone `{name}` is not known here: give an IANA name such as Europe/Berlin, or UTC"
    )]
    TimeZone {
        /// As asked for.
        name: String,
        /// What jiff says.
        source: jiff::Error,
    },
    /// A template could not be filled in, or a figure not be written as JSON.
    #[error("the page could not be put together")]
    Template(#[from] askama::Error),
}

/// The report as one self-contained HTML page.
///
/// # Errors
/// When the time zone is not known, or a number cannot be written as JSON.
pub fn html(findings: &Findings, options: &Options) -> Result<String, ReportError> {
    let clock = clock::Clock::new(&options.time_zone)?;
    page::render(findings, &clock, options)
}

/// The headline, the figures beside it and the use by category as Markdown, for mail or chat.
///
/// # Errors
/// When the time zone is not known.
pub fn markdown(findings: &Findings, options: &Options) -> Result<String, ReportError> {
    let clock = clock::Clock::new(&options.time_zone)?;
    Ok(markdown::render(findings, &clock, options))
}
