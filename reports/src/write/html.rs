//! The page as one HTML file.

use crate::ReportError;
use crate::headline::Headline;
use crate::hosts::HostPage;
use crate::page::{Page, Part, Section};
use askama::Template;

/// The SHA-256 of `assets/plotly-cartesian.min.js`, as a content policy spells it.
const PLOTLY_HASH: &str = "sha256-eVQhUIVaUsVnJg4xNwldvit0Tm1wKlyr5n2iRpQvuno=";
/// The same of `assets/page.js`.
const SCRIPT_HASH: &str = "sha256-aNWyNfiAqA0FXf5ugzuiEbkYifGSOjwdbhp1/fuErQ4=";
const PLOTLY: &str = include_str!("../../assets/plotly-cartesian.min.js");
const SCRIPT: &str = include_str!("../../assets/page.js");
const STYLE: &str = include_str!("../../assets/style.css");

#[derive(Template)]
#[template(path = "page.html")]
struct Document<'a> {
    title: &'a str,
    subject: &'a str,
    period: &'a str,
    made_at: &'a str,
    headline: &'a Headline,
    sections: &'a [Section],
    hosts: &'a [HostPage],
    style: &'a str,
    script: &'a str,
    script_hash: &'a str,
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
        headline: &page.headline,
        sections: &page.sections,
        hosts: &page.hosts,
        style: STYLE,
        script: SCRIPT,
        script_hash: SCRIPT_HASH,
        plotly: PLOTLY,
        plotly_hash: PLOTLY_HASH,
    };
    Ok(document.render()?)
}
