//! The page: what is on it, and how it becomes HTML.

use crate::clock::Clock;
use crate::figures::Figure;
use crate::headline::{Headline, headline};
use crate::sections::sections;
use crate::tables::Table;
use crate::view::View;
use crate::wording::{bytes, count, share};
use crate::{Options, ReportError};
use askama::Template;
use gleaner_schemas::findings::Findings;

/// Hosts that get a part of their own; more would make a page that no browser likes.
const HOSTS_SHOWN: usize = 100;

/// The SHA-256 of `assets/plotly-cartesian.min.js`, as a content policy spells it.
const PLOTLY_HASH: &str = "sha256-eVQhUIVaUsVnJg4xNwldvit0Tm1wKlyr5n2iRpQvuno=";
/// The same of `assets/page.js`.
const SCRIPT_HASH: &str = "sha256-KCsNf7Ls0ohGko9pmmiM4RSt5r84/j4glKFL6Dr+1X8=";
const PLOTLY: &str = include_str!("../assets/plotly-cartesian.min.js");
const SCRIPT: &str = include_str!("../assets/page.js");
const STYLE: &str = include_str!("../assets/style.css");

/// A question and its answer.
pub(crate) struct Section {
    pub id: String,
    pub title: &'static str,
    pub parts: Vec<Part>,
}

/// A piece of an answer.
pub(crate) enum Part {
    /// A paragraph.
    Say(String),
    Table(Table),
    Figure(Box<Figure>),
}

impl Part {
    pub(crate) fn figure(figure: Figure) -> Self {
        Self::Figure(Box::new(figure))
    }
}

/// One host's part of a page about several.
struct HostPart {
    id: String,
    name: String,
    summary: String,
    headline: Headline,
    sections: Vec<Section>,
}

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    title: &'a str,
    subject: String,
    period: String,
    made_at: String,
    headline: Headline,
    sections: Vec<Section>,
    hosts: Vec<HostPart>,
    hosts_note: String,
    style: &'a str,
    script: &'a str,
    script_hash: &'a str,
    plotly: &'a str,
    plotly_hash: &'a str,
}

/// The page.
pub(crate) fn render(
    findings: &Findings,
    clock: &Clock,
    options: &Options,
) -> Result<String, ReportError> {
    let view = View::all(findings, clock);
    let several = findings.hosts.len() > 1;
    let hosts: Vec<HostPart> = (0..findings.hosts.len().min(HOSTS_SHOWN))
        .filter(|_| several)
        .filter_map(|index| host_part(findings, index, clock))
        .collect();
    let period = view
        .span_ms()
        .map(|(from, to)| format!("{}, {}", clock.span(from, to), clock.zone_at(from)));
    let page = Page {
        title: &options.title,
        subject: subject(&view),
        period: period.unwrap_or_else(|| "no samples".into()),
        made_at: format!(
            "{} {}",
            clock.date_time(options.made_at_ms),
            clock.zone_at(options.made_at_ms)
        ),
        headline: headline(&view),
        sections: sections(&view),
        hosts_note: match findings.hosts.len() {
            n if n > HOSTS_SHOWN => format!(
                "The first {HOSTS_SHOWN} of {n} hosts have a part here; report on fewer hosts to see the others."
            ),
            _ => "Open a host to see its memory over time, who used it, and what is missing from its trace.".into(),
        },
        hosts,
        style: STYLE,
        script: SCRIPT,
        script_hash: SCRIPT_HASH,
        plotly: PLOTLY,
        plotly_hash: PLOTLY_HASH,
    };
    Ok(page.render()?)
}

fn host_part(findings: &Findings, index: usize, clock: &Clock) -> Option<HostPart> {
    let view = View::of_host(findings, index, clock)?;
    let host = view.only_host()?;
    let summary = match view.memory_of(host) {
        Some(memory) => format!(
            "{} of {} available",
            share(memory.available_share()),
            bytes(memory.physical_bytes)
        ),
        None => "no samples".into(),
    };
    Some(HostPart {
        id: format!("{}part", view.prefix),
        name: host.host_name.clone(),
        summary,
        headline: headline(&view),
        sections: sections(&view),
    })
}

/// Whom the page is about.
fn subject(view: &View) -> String {
    match view.only_host() {
        Some(host) => host.host_name.clone(),
        None => count(view.findings.hosts.len() as i64, "host"),
    }
}
