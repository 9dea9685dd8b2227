//! `gleaner-collector status`: asks a running collector for its status.

use crate::Error;
pub use crate::http::status::{HostStatus, State, Status};
pub use crate::peers::GroupTotals;

use crate::peers::{Group, GroupMember};

use crate::wording::{brief_length, clock, count, short, thousands, utc};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use gleaner_schemas::units::Bytes;
use gleaner_trust::{JsonAnswer, LoopbackServer};
use std::fmt::Write;

const COLLECTOR: LoopbackServer = LoopbackServer {
    kind: "collector",
    program: "gleaner-collector",
    from_elsewhere: "open the page with a reader's certificate",
};

/// Status of a collector, rendered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Text, or the JSON as received.
    pub text: String,
    /// True if the collector works without a fault; hosts may have problems nevertheless.
    pub is_well: bool,
}

/// Asks the collector at `url`, such as `http://127.0.0.1:7480`, for its status.
///
/// # Errors
/// [`Error::Silent`] if there is no answer, or if the answer is not that of a collector.
pub fn ask(url: &str, as_json: bool) -> Result<Answer, Error> {
    let JsonAnswer { text, value } = COLLECTOR.get::<Status>(url, "/v1/status")?;
    Ok(Answer {
        is_well: value.is_well,
        text: if as_json { text + "\n" } else { say(value) },
    })
}

/// Asks the collector at `url` for the state of all collectors of the dataset, without their hosts.
///
/// # Errors
/// [`Error::Silent`], as for [`ask`].
pub fn ask_all(url: &str, as_json: bool) -> Result<Answer, Error> {
    let JsonAnswer { text, value } = COLLECTOR.get::<Group>(url, "/v1/collectors")?;
    Ok(Answer {
        is_well: value.is_well,
        text: if as_json {
            text + "\n"
        } else {
            say_all(&value)
        },
    })
}

/// Fetches the collector's status and parses it.
///
/// # Errors
/// [`Error::Silent`], as for [`ask`].
pub fn status(url: &str) -> Result<Status, Error> {
    Ok(COLLECTOR.get(url, "/v1/status")?.value)
}

fn say(mut status: Status) -> String {
    let mut text = String::new();
    for problem in &status.problems {
        let _ = writeln!(
            text,
            "{}: {}",
            problem.kind.severity().word(),
            plain(&problem.text)
        );
        for line in &problem.hosts {
            let _ = writeln!(text, "  {}", plain(line));
        }
        let _ = writeln!(text, "  {}", problem.remedy);
    }
    if status.problems.is_empty() {
        text.push_str("nothing is wrong\n");
    }
    text.push('\n');
    let _ = writeln!(text, "{}\n", collector(&status));
    status.hosts.sort_by(|a, b| {
        let key = |host: &HostStatus| (host.state, host.known.host_name.clone());
        key(a).cmp(&key(b))
    });
    if !status.hosts.is_empty() {
        let _ = writeln!(text, "{}", hosts(&status));
    }
    text
}

/// Faults and failures of the collectors, a table of them, and their sums.
fn say_all(group: &Group) -> String {
    let mut text = String::new();
    for member in &group.collectors {
        let name = plain(member.label());
        if let Some(reason) = &member.failure {
            let url = member.url.as_deref().unwrap_or_default();
            let since = member.failing_since_time_ms.map(utc).unwrap_or_default();
            let reason = plain(reason);
            let _ = writeln!(
                text,
                "fault: {name}: no answer from {url} since {since} UTC: {reason}"
            );
        }
        let faults = member.present().into_iter().flat_map(|o| &o.faults);
        for fault in faults {
            let _ = writeln!(text, "fault: {name}: {}", plain(fault));
        }
    }
    if text.is_empty() {
        text.push_str("nothing is wrong\n");
    }
    let _ = writeln!(text, "\n{}\n", members(&group.collectors));
    let totals = &group.totals;
    let sums = &totals.sums;
    let _ = writeln!(
        text,
        "{} of {} answer: {} ({} silent), {} batches a minute, {} in the dataset ({})",
        thousands(totals.answering_count),
        count(totals.collectors_count, "collector"),
        count(sums.hosts_count, "host"),
        thousands(sums.hosts_silent_count),
        thousands(sums.batches_per_minute),
        count(sums.dataset_rows_count, "row"),
        Bytes::from(sums.dataset_bytes),
    );
    text
}

fn members(collectors: &[GroupMember]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header([
        "STATE",
        "COLLECTOR",
        "ADDRESS",
        "HOSTS",
        "SILENT",
        "BATCHES/MIN",
        "MAX LAG",
        "ROWS",
        "DISK FREE",
        "VERSION",
    ]);
    for member in collectors {
        let state = match (&member.failure, &member.overview) {
            (Some(_), _) => "no answer",
            (None, None) => "not asked yet",
            (None, Some(_)) if member.is_well() => "well",
            (None, Some(_)) => "fault",
        };
        let mut cells = vec![
            state.to_owned(),
            plain(member.label()),
            member.url.as_deref().map_or("this one".into(), plain),
        ];
        match member.present() {
            None => cells.extend(std::iter::repeat_n("-".to_owned(), 7)),
            Some(overview) => cells.extend([
                thousands(overview.sums.hosts_count),
                thousands(overview.sums.hosts_silent_count),
                thousands(overview.sums.batches_per_minute),
                overview
                    .max_lag_ms
                    .map_or("-".into(), |ms| brief_length(ms.max(0))),
                thousands(overview.sums.dataset_rows_count),
                Bytes::from(overview.disk_free_bytes).to_string(),
                plain(&overview.version),
            ]),
        }
        table.add_row(cells);
    }
    for numbers in 3..=8 {
        if let Some(column) = table.column_mut(numbers) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    tidy(table)
}

fn collector(status: &Status) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    let age = |ms: i64| format!("{} ago", brief_length(status.time_ms.saturating_sub(ms)));
    let sealed = match (&status.seal.failure, status.seal.last_sealed_time_ms) {
        (Some(_), _) => "cannot be written".to_owned(),
        (None, Some(last_ms)) if status.dataset_files_count > 0 => {
            format!("last written {}", age(last_ms))
        }
        (None, _) => "not written yet".to_owned(),
    };
    let rate = status.dataset_bytes_per_day;
    let left = status.days_until_disk_full;
    let rows = [
        ("version", status.version.clone()),
        (
            "running",
            format!("since {} UTC", utc(status.started_time_ms)),
        ),
        (
            "dataset",
            format!(
                "{}, {} in {}; {sealed}",
                Bytes::from(status.dataset_bytes),
                count(status.dataset_rows_count, "row"),
                count(status.dataset_files_count, "file"),
            ),
        ),
        (
            "growth",
            rate.map_or("not known yet".into(), |r| {
                format!("{} a day", Bytes::from(r))
            }),
        ),
        ("journal", Bytes::from(status.journal_bytes).to_string()),
        (
            "disk",
            format!(
                "{} free, {} in reserve{}",
                Bytes::from(status.smallest_free_bytes()),
                Bytes::from(status.reserve_bytes),
                left.map_or(String::new(), |days| format!(
                    "; enough for {}",
                    brief_length((days * 86_400_000.0) as i64)
                )),
            ),
        ),
        (
            "certificate",
            status
                .certificate_expiry_time_ms
                .map_or("none: this machine only".into(), |until| {
                    format!("until {} UTC", utc(until))
                }),
        ),
        ("connections", status.connections_count.to_string()),
        ("hosts", {
            let counts = status.hosts_by_state.iter().filter(|(_, n)| **n > 0);
            let counts: Vec<_> = counts
                .map(|(state, n)| format!("{} {}", thousands(*n), state.word()))
                .collect();
            format!("{}: {}", thousands(status.hosts_count), counts.join(", "))
                .trim_end_matches(": ")
                .to_owned()
        }),
    ];
    for (name, value) in rows {
        table.add_row([name, &value]);
    }
    tidy(table)
}

fn hosts(status: &Status) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header([
        "STATE",
        "HOST",
        "ID",
        "LAST SEEN",
        "LAG",
        "CLOCK",
        "GAPS",
        "LAST GAP",
        "AGENT",
        "ROWS",
    ]);
    for host in &status.hosts {
        let known = &host.known;
        let word = |text: &Option<String>| text.as_deref().map_or("-".into(), plain);
        let seen = known.last_received_time_ms.map_or("never".into(), |last| {
            format!(
                "{} ago",
                brief_length(status.time_ms.saturating_sub(last).max(0))
            )
        });
        table.add_row([
            host.state.word().to_owned(),
            word(&known.host_name),
            short(&host.host_id).to_owned(),
            seen,
            host.lag_ms.map_or("-".into(), |ms| brief_length(ms.max(0))),
            known.skew_ms.map_or("-".into(), clock),
            thousands(known.gaps_count),
            word(&known.last_gap_cause),
            word(&known.agent_version),
            thousands(known.rows_count),
        ]);
    }
    for numbers in [4, 6, 9] {
        if let Some(column) = table.column_mut(numbers) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    tidy(table)
}

/// Renders a table without empty space at the edges of its lines.
fn tidy(mut table: Table) -> String {
    table.set_content_arrangement(comfy_table::ContentArrangement::Disabled);
    if let Some(first) = table.column_mut(0) {
        first.set_padding((0, 1));
    }
    let lines: Vec<String> = table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    lines.join("\n")
}

/// Replaces control characters in a host's text.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}
