//! The page as one HTML file.

use crate::ReportError;
use crate::headline::Headline;
use crate::hosts::HostPage;
use crate::page::{Page, Part, Section, figure};
use askama::Template;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use sha2::{Digest, Sha256};

/// The SHA-256 of `assets/plotly-cartesian.min.js`, as a content policy spells it.
const PLOTLY_HASH: &str = "sha256-eVQhUIVaUsVnJg4xNwldvit0Tm1wKlyr5n2iRpQvuno=";
const PLOTLY: &str = include_str!("../../assets/plotly-cartesian.min.js");
/// The page's own scripts, in the order in which they need each other.
const SCRIPT: &str = concat!(
    include_str!("../../assets/time.js"),
    include_str!("../../assets/page.js"),
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
    hosts: &'a [HostPage],
    style: &'a str,
    script: &'a str,
    script_hash: String,
    plotly: &'a str,
    plotly_hash: &'a str,
}

/// The page.
pub(crate) fn render(page: &Page, made_at: &str) -> Result<String, ReportError> {
    let document = Document {
        title: &page.title,
        subject: &page.subject,
        period: &page.period,
        made_at,
        zone: figure::json(&page.zone)?,
        headline: &page.headline,
        sections: &page.sections,
        hosts: &page.hosts,
        style: STYLE,
        script: SCRIPT,
        script_hash: format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(SCRIPT))),
        plotly: PLOTLY,
        plotly_hash: PLOTLY_HASH,
    };
    Ok(document.render()?)
}
