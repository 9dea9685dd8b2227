//! The page as one HTML file.

use crate::ReportError;
use crate::document::Page;
use crate::headline::Headline;
use crate::hosts::HostPage;
use crate::method::{DEPARTURES, GROUPS, Group, SOURCES, advice_rules};
use crate::page::table::Table;
use crate::page::{Part, Section, figure};
use askama::Template;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use miniz_oxide::deflate::compress_to_vec;
use sha2::{Digest, Sha256};

/// SHA-256 of `assets/plotly-cartesian.min.js`, as written in a content security policy.
const PLOTLY_HASH: &str = "sha256-eVQhUIVaUsVnJg4xNwldvit0Tm1wKlyr5n2iRpQvuno=";
/// Compression level: zlib's default.
const DEFLATE_LEVEL: u8 = 6;
const PLOTLY: &str = include_str!("../../assets/plotly-cartesian.min.js");
/// The page's own scripts; each may use those before it.
const SCRIPT: &str = concat!(
    include_str!("../../assets/time.js"),
    include_str!("../../assets/figures.js"),
    include_str!("../../assets/tables.js"),
    include_str!("../../assets/hosts.js"),
    include_str!("../../assets/start.js"),
);
const STYLE: &str = include_str!("../../assets/style.css");

#[derive(Template)]
#[template(path = "page.html")]
struct Document<'a> {
    title: &'a str,
    subject: &'a str,
    period: &'a str,
    made_at: &'a str,
    zone: String,
    headline: &'a Headline,
    sections: &'a [Section],
    /// Page of the only host, shown directly in the report.
    only: Option<Host<'a>>,
    /// Pages of several hosts, each opened on request.
    packed: Vec<PackedHost<'a>>,
    groups: &'a [Group],
    rules: Vec<String>,
    departures: &'a [&'a str],
    sources: &'a [&'a str],
    imported: &'a [Table],
    parameters: &'a Option<Table>,
    assets: Assets,
}

/// A page of figures and tables, with the same assets.
#[derive(Template)]
#[template(path = "figures.html")]
struct FiguresDocument<'a> {
    title: &'a str,
    subject: &'a str,
    period: &'a str,
    question: &'a str,
    headline: &'a Headline,
    sections: &'a [Section],
    assets: Assets,
}

/// Assets that every page contains, so that it needs no network.
struct Assets {
    style: &'static str,
    script: &'static str,
    script_hash: String,
    plotly: &'static str,
    plotly_hash: &'static str,
}

impl Assets {
    fn new() -> Self {
        Self {
            style: STYLE,
            script: SCRIPT,
            script_hash: format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(SCRIPT))),
            plotly: PLOTLY,
            plotly_hash: PLOTLY_HASH,
        }
    }
}

/// A host's page.
#[derive(Template)]
#[template(path = "host.html")]
struct Host<'a> {
    host: &'a HostPage,
}

impl std::ops::Deref for Host<'_> {
    type Target = HostPage;

    fn deref(&self) -> &HostPage {
        self.host
    }
}

/// A compressed page of a host, so that a browser need not parse a thousand pages when it opens the
/// report.
struct PackedHost<'a> {
    id: &'a str,
    name: &'a str,
    summary: &'a str,
    /// Base64 of the deflated HTML (RFC 1951), which `hosts.js` opens.
    deflated: String,
}

impl<'a> PackedHost<'a> {
    fn new(host: &'a HostPage) -> Result<Self, ReportError> {
        let html = Host { host }.render()?;
        Ok(Self {
            id: &host.id,
            name: &host.name,
            summary: &host.summary,
            deflated: BASE64_STANDARD.encode(compress_to_vec(html.as_bytes(), DEFLATE_LEVEL)),
        })
    }
}

/// Renders the page as HTML.
pub(crate) fn render(page: &Page, made_at: &str) -> Result<String, ReportError> {
    let document = Document {
        title: &page.title,
        subject: &page.subject,
        period: &page.period,
        made_at,
        zone: figure::json(&page.zone)?,
        headline: &page.headline,
        sections: &page.sections,
        only: match page.hosts.as_slice() {
            [host] => Some(Host { host }),
            _ => None,
        },
        packed: match page.hosts.as_slice() {
            [_] => Vec::new(),
            hosts => hosts
                .iter()
                .map(PackedHost::new)
                .collect::<Result<_, _>>()?,
        },
        groups: &GROUPS,
        rules: advice_rules(),
        departures: &DEPARTURES,
        sources: &SOURCES,
        imported: &page.sources,
        parameters: &page.parameters,
        assets: Assets::new(),
    };
    Ok(document.render()?)
}

/// Renders a page of figures; the same input gives the same bytes. `about` has the page's title, subject, period and
/// question.
pub(crate) fn figures(
    about: [&str; 4],
    headline: &Headline,
    sections: &[Section],
) -> Result<String, ReportError> {
    let [title, subject, period, question] = about;
    let document = FiguresDocument {
        title,
        subject,
        period,
        question,
        headline,
        sections,
        assets: Assets::new(),
    };
    Ok(document.render()?)
}
