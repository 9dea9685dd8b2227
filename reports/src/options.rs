//! Options of a report.

use serde::{Deserialize, Serialize};

/// Options of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Title of the page.
    pub title: String,
    /// IANA name of the time zone of all times in the report.
    pub time_zone: String,
    /// Time at which the report was made, given by the caller so that the same input gives the same page.
    pub made_at_ms: i64,
    /// Requested time; if absent, the report covers all records.
    pub span: Option<Span>,
    /// True to show hosts as numbers instead of their names and ids.
    pub anonymous: bool,
    /// Sites of the hosts, for a page of a whole fleet: it has a table of the sites, but no pages of hosts, and
    /// its size does not depend on the number of hosts. Absent for a report with a page for each host.
    pub sites: Option<Vec<Site>>,
}

/// Site of a fleet: hosts whose report is a page of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// Name for people.
    pub name: String,
    /// Path of the site's page, relative to the fleet's page; absent if there is no page.
    pub page: Option<String>,
    /// Ids of the site's hosts, sorted.
    pub hosts: Vec<String>,
    /// Figures of the site; absent if no host has samples.
    pub figures: Option<SiteFigures>,
}

/// Figures of a site for the table of sites: those of the site's own page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiteFigures {
    /// Physical memory of the site's hosts at their last samples.
    pub physical_bytes: i64,
    /// Mean available memory, as in the headline of the site's page.
    pub available_bytes: f64,
    /// Share of physical memory that was available.
    pub available_share: f64,
    /// Share of the covered time in which hosts were idle; absent if unknown on every host.
    pub idle_share: Option<f64>,
    /// Sample intervals in which a host was short of memory; absent if they were not counted.
    pub short_intervals_count: Option<i64>,
    /// Hosts that are short of memory.
    pub short_hosts_count: i64,
    /// Share of the requested time that samples do not cover.
    pub missing_share: f64,
    /// Hosts without samples.
    pub silent_hosts_count: i64,
}

/// The time that a report covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Label for people: `Week 47 of 2026`.
    pub label: String,
    /// Start, in ms since 1970-01-01 UTC.
    pub from_ms: i64,
    /// End, in ms since 1970-01-01 UTC; not part of the span.
    pub until_ms: i64,
    /// Label of the time before the span, for sentences: `the week before`.
    pub before_label: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            title: "Idle memory".into(),
            time_zone: "UTC".into(),
            made_at_ms: 0,
            span: None,
            anonymous: false,
            sites: None,
        }
    }
}
