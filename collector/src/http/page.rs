//! The status page: `GET /`. It is one file, and loads nothing except from this collector.

mod collectors;
mod summary;

use super::App;
use super::refusal::Refusal;
use super::status::{self, HostStatus, Problem, Severity, State, Status};
use crate::peers::GroupTotals;
use crate::wording::{brief_length, clock, short, thousands, utc};
use askama::Template;
use axum::extract::{Extension, Query, State as Shared};
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use collectors::CollectorRow;
use gleaner_daemon::listen::Caller;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::cmp::Ordering;
use std::sync::{Arc, LazyLock};

const STYLE: &str = include_str!("../../assets/status.css");
const SCRIPT: &str = include_str!("../../assets/status.js");
/// Maximum number of hosts on one page, some 100 KB.
const PAGE_HOSTS: usize = 200;
/// Maximum length of a filter, which a person types.
const FILTER_CHARS: usize = 200;

/// Content security policy of the page: it may run its own script and send requests to this collector,
/// nothing else.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; connect-src 'self'; img-src data:; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
});

fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    format!("sha256-{}", BASE64_STANDARD.encode(digest))
}

/// Query of the status page: selection and order of hosts.
#[derive(Debug, Default, Deserialize)]
pub(super) struct PageQuery {
    /// Filter: part of a host's name, id, version or cause of a gap.
    #[serde(default)]
    q: String,
    /// State of the requested hosts.
    #[serde(default)]
    state: String,
    /// Column to sort by; a `-` before the column's key requests descending order.
    #[serde(default)]
    sort: String,
    /// Number of the page, from 1.
    #[serde(default)]
    page: String,
}

/// A column by which hosts can be sorted.
struct Column {
    key: &'static str,
    title: &'static str,
    is_number: bool,
    compare: fn(&HostStatus, &HostStatus) -> Ordering,
}

/// Columns of the table; unknown values sort first, as if smallest.
const COLUMNS: [Column; 8] = [
    column("name", "Host", false, |a, b| {
        let name = |host: &HostStatus| host.known.host_name.as_deref().map(str::to_lowercase);
        name(a).cmp(&name(b))
    }),
    column("state", "State", false, |a, b| a.state.cmp(&b.state)),
    column("seen", "Last seen (UTC)", false, |a, b| {
        a.known
            .last_received_time_ms
            .cmp(&b.known.last_received_time_ms)
    }),
    column("lag", "Lag", true, |a, b| a.lag_ms.cmp(&b.lag_ms)),
    column("clock", "Clock", true, |a, b| {
        let error = |host: &HostStatus| host.known.skew_ms.map(i64::unsigned_abs);
        error(a).cmp(&error(b))
    }),
    column("gaps", "Gaps", true, |a, b| {
        a.known.gaps_count.cmp(&b.known.gaps_count)
    }),
    column("version", "Agent", false, |a, b| {
        a.known.agent_version.cmp(&b.known.agent_version)
    }),
    column("rows", "Rows", true, |a, b| {
        a.known.rows_count.cmp(&b.known.rows_count)
    }),
];

const fn column(
    key: &'static str,
    title: &'static str,
    is_number: bool,
    compare: fn(&HostStatus, &HostStatus) -> Ordering,
) -> Column {
    Column {
        key,
        title,
        is_number,
        compare,
    }
}

/// A link of the page. Its address keeps all other parameters of the present query.
struct Link {
    id: String,
    address: String,
    text: String,
    is_here: bool,
}

struct Header {
    link: Link,
    is_number: bool,
    /// `ascending`, `descending` or empty.
    direction: &'static str,
}

/// A host as a row of the page's table.
struct Row {
    name: String,
    host_id: String,
    short_id: String,
    state: State,
    seen: String,
    seen_utc: String,
    lag: String,
    clock: String,
    gaps: String,
    gap_cause: String,
    version: String,
    rows: String,
    /// Reason of the host's last rejection; empty if there is none.
    why: String,
}

#[derive(Template)]
#[template(path = "status.html")]
struct Page<'a> {
    style: &'a str,
    script: &'a str,
    now: String,
    /// Name of the collector, after a blank; empty if it has none.
    name: String,
    version: &'a str,
    lead: String,
    support: String,
    problems: &'a [Problem],
    only_notices: bool,
    is_empty: bool,
    cards: Vec<(&'static str, String, String)>,
    /// The collectors of the dataset; empty unless peers are configured.
    collectors: Vec<CollectorRow>,
    collectors_caption: String,
    wanted: &'a PageQuery,
    states: Vec<(State, String, bool)>,
    caption: String,
    headers: Vec<Header>,
    rows: Vec<Row>,
    pages: Vec<Link>,
    here: String,
}

/// Answers `GET /`.
pub(super) async fn page(
    Shared(app): Shared<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Query(mut wanted): Query<PageQuery>,
) -> Result<Response, Refusal> {
    app.may_see_status(&caller)?;
    wanted.q = wanted.q.trim().chars().take(FILTER_CHARS).collect();
    let work = move || render(status::read(&app), &wanted);
    let html = tokio::task::spawn_blocking(work).await;
    let html = html.map_err(|e| Refusal::internal(e.to_string()))?;
    let html = html.map_err(|e| Refusal::internal(e.to_string()))?;
    let headers = [
        (header::CONTENT_SECURITY_POLICY, POLICY.as_str()),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    Ok((headers, Html(html)).into_response())
}

fn render(mut status: Status, wanted: &PageQuery) -> askama::Result<String> {
    let all = std::mem::take(&mut status.hosts);
    let known_count = all.len() as u64;
    let mut hosts: Vec<HostStatus> = all.into_iter().filter(|h| wanted.includes(h)).collect();
    wanted.sort(&mut hosts);
    let last = hosts.len().div_ceil(PAGE_HOSTS).max(1);
    let number = wanted.page.parse().unwrap_or(1).clamp(1, last);
    let first = (number - 1) * PAGE_HOSTS;
    let shown = hosts.iter().skip(first).take(PAGE_HOSTS);
    let rows: Vec<Row> = shown.map(|host| row(host, status.time_ms)).collect();
    let page = Page {
        style: STYLE,
        script: SCRIPT,
        now: utc(status.time_ms),
        name: status
            .name
            .as_ref()
            .map_or(String::new(), |name| format!(" {name}")),
        version: &status.version,
        lead: summary::lead(&status),
        support: summary::support(&status),
        only_notices: status.problems.iter().all(is_notice),
        is_empty: known_count == 0,
        cards: summary::cards(&status),
        collectors: if status.collectors.len() > 1 {
            status.collectors.iter().map(CollectorRow::of).collect()
        } else {
            Vec::new()
        },
        collectors_caption: collectors::caption(&GroupTotals::of(&status.collectors)),
        states: State::ALL
            .iter()
            .map(|&state| {
                let hosts = thousands(status.in_state(state));
                let text = format!("{} ({hosts})", state.word());
                (state, text, wanted.state == state.name())
            })
            .collect(),
        caption: summary::caption(hosts.len() as u64, known_count, first, rows.len()),
        headers: COLUMNS.iter().map(|column| wanted.header(column)).collect(),
        rows,
        pages: wanted.pages(number, last),
        here: wanted.address(&wanted.sort, number),
        wanted,
        problems: &status.problems,
    };
    page.render()
}

fn is_notice(problem: &Problem) -> bool {
    problem.severity == Severity::Notice
}

impl PageQuery {
    fn includes(&self, host: &HostStatus) -> bool {
        if !self.state.is_empty() && self.state != host.state.name() {
            return false;
        }
        let q = self.q.to_lowercase();
        let known = &host.known;
        let has = |text: &str| text.to_lowercase().contains(&q);
        q.is_empty()
            || host.host_id.contains(&q)
            || [
                &known.host_name,
                &known.agent_version,
                &known.last_gap_cause,
            ]
            .iter()
            .any(|text| text.as_deref().is_some_and(has))
    }

    /// Sorts by the requested column, or by problems if none is requested. Equal hosts are sorted by name.
    fn sort(&self, hosts: &mut [HostStatus]) {
        let by_name = COLUMNS[0].compare;
        hosts.sort_by(by_name);
        let (key, from_largest) = self.order();
        let Some(column) = COLUMNS.iter().find(|column| column.key == key) else {
            return;
        };
        if from_largest {
            hosts.sort_by(|a, b| (column.compare)(b, a));
        } else {
            hosts.sort_by(column.compare);
        }
    }

    /// Key of the column to sort by, and true for descending order.
    fn order(&self) -> (&str, bool) {
        match self.sort.strip_prefix('-') {
            Some(key) => (key, true),
            None if self.sort.is_empty() => ("state", false),
            None => (&self.sort, false),
        }
    }

    fn header(&self, column: &Column) -> Header {
        let (key, from_largest) = self.order();
        let is_here = key == column.key;
        // A first click shows the largest values, or the beginning of the alphabet.
        let next_from_largest = if is_here {
            !from_largest
        } else {
            column.is_number
        };
        let sign = if next_from_largest { "-" } else { "" };
        Header {
            link: Link {
                id: format!("sort-{}", column.key),
                address: self.address(&format!("{sign}{}", column.key), 1),
                text: column.title.to_owned(),
                is_here,
            },
            is_number: column.is_number,
            direction: match (is_here, from_largest) {
                (false, _) => "",
                (true, false) => "ascending",
                (true, true) => "descending",
            },
        }
    }

    /// Links to the first page, to the last page, and to pages near the present one.
    fn pages(&self, number: usize, last: usize) -> Vec<Link> {
        if last == 1 {
            return Vec::new();
        }
        let link = |id: String, text: String, page: usize| Link {
            id,
            address: self.address(&self.sort, page),
            text,
            is_here: page == number,
        };
        let mut links = Vec::new();
        if number > 1 {
            links.push(link("previous".into(), "Previous".into(), number - 1));
        }
        let near =
            (1..=last).filter(|&page| page == 1 || page == last || page.abs_diff(number) <= 2);
        links.extend(near.map(|page| link(format!("page-{page}"), page.to_string(), page)));
        if number < last {
            links.push(link("next".into(), "Next".into(), number + 1));
        }
        links
    }

    fn address(&self, sort: &str, page: usize) -> String {
        let page = if page > 1 {
            page.to_string()
        } else {
            String::new()
        };
        let pairs = [
            ("q", self.q.as_str()),
            ("state", &self.state),
            ("sort", sort),
            ("page", &page),
        ];
        let query: Vec<String> = pairs
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(key, value)| format!("{key}={}", percent(value)))
            .collect();
        match query.is_empty() {
            true => "/".to_owned(),
            false => format!("/?{}", query.join("&")),
        }
    }
}

/// Percent-encodes characters that the query of an address may not contain (RFC 3986, section 2.3).
fn percent(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

fn row(host: &HostStatus, now_ms: i64) -> Row {
    let known = &host.known;
    let seen = known.last_received_time_ms;
    let rejection = known.last_rejection.as_ref();
    Row {
        name: known.host_name.clone().unwrap_or_else(|| "unnamed".into()),
        short_id: short(&host.host_id).to_owned(),
        host_id: host.host_id.clone(),
        state: host.state,
        seen: seen.map_or("never".into(), |seen| ago(now_ms.saturating_sub(seen))),
        seen_utc: seen.map(utc).unwrap_or_default(),
        lag: host.lag_ms.map(lag).unwrap_or_default(),
        clock: known.skew_ms.map(clock).unwrap_or_default(),
        gaps: thousands(known.gaps_count),
        gap_cause: known.last_gap_cause.clone().unwrap_or_default(),
        version: known.agent_version.clone().unwrap_or_default(),
        rows: thousands(known.rows_count),
        why: rejection.map(|r| r.reason.clone()).unwrap_or_default(),
    }
}

fn ago(ms: i64) -> String {
    format!("{} ago", brief_length(ms.max(0)))
}

/// Formats a lag. A lag may be negative if clocks differ a little.
fn lag(ms: i64) -> String {
    brief_length(ms.max(0))
}
