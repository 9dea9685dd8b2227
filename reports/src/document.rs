//! The whole report, in a form independent of the output format.

use crate::clock::{Clock, Offset};
use crate::headline::{Headline, headline};
use crate::hosts::{self, HostPage};
use crate::imported;
use crate::method;
use crate::options::Options;
use crate::page::table::{ROWS_SHOWN, Table};
use crate::page::{Part, Section};
use crate::questions::questions;
use crate::sites;
use crate::view::View;
use crate::wording::count;
use gleaner_schemas::findings::Findings;
use serde::Serialize;

/// The report as a document.
pub(crate) struct Page {
    pub title: String,
    /// Hosts of the report: the name of the only host, or the number of hosts.
    pub subject: String,
    /// Period that the report covers.
    pub period: String,
    /// Time zone of the report: its name, and its offsets from UTC around the period.
    pub zone: Zone,
    pub headline: Headline,
    pub sections: Vec<Section>,
    pub hosts: Vec<HostPage>,
    /// Meaning of imported hosts' figures, for the method page.
    pub sources: Vec<Table>,
    /// Limits used for the figures, for the method page.
    pub parameters: Option<Table>,
}

/// Data of the report's time zone that the figures' time axes need.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Zone {
    pub name: String,
    pub offsets: Vec<Offset>,
}

impl Page {
    pub(crate) fn new(
        findings: &Findings,
        before: Option<&Findings>,
        clock: &Clock,
        options: &Options,
    ) -> Self {
        let view = View::new(findings, before, clock, options.span.as_ref());
        let view = match &options.sites {
            Some(sites) => view.in_sites(sites),
            None => view,
        };
        let told = view
            .span_ms()
            .map(|(from, to)| format!("{}, {}", clock.span(from, to), clock.zone_over(from, to)));
        Self {
            title: options.title.clone(),
            subject: match view.only_host() {
                Some(host) => host.host_name.clone(),
                None => count(findings.hosts.len() as i64, "host"),
            },
            period: match (&options.span, told) {
                (Some(span), _) => format!(
                    "{}: {}, {}",
                    span.label,
                    clock.days(span.from_ms, span.until_ms),
                    clock.zone_over(span.from_ms, span.until_ms)
                ),
                (None, Some(told)) => told,
                (None, None) => "no samples".into(),
            },
            zone: Zone {
                name: options.time_zone.clone(),
                offsets: {
                    let (from, to) = view.span_ms().unwrap_or_default();
                    clock.offsets(from, to)
                },
            },
            headline: headline(&view),
            sections: match &options.sites {
                Some(sites) => std::iter::once(sites::section(sites))
                    .chain(questions(&view).into_iter().map(shortened))
                    .collect(),
                None => questions(&view)
                    .into_iter()
                    .chain(hosts::overview(&view))
                    .collect(),
            },
            hosts: match &options.sites {
                Some(_) => Vec::new(),
                None => hosts::pages(&view),
            },
            sources: [imported::sources(&view), imported::columns(&view)]
                .into_iter()
                .flatten()
                .collect(),
            parameters: method::parameters(&view),
        }
    }
}

/// The section with at most the usual number of rows in each table. A fleet may have too many hosts for a page;
/// the CSV and JSON files have all rows.
fn shortened(mut section: Section) -> Section {
    for part in &mut section.parts {
        if let Part::Table(table) = part {
            table.rows_shown = table.rows_shown.min(ROWS_SHOWN);
        }
    }
    section
}
