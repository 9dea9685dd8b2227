//! Findings as aligned tables in which each number has its unit.

mod dips;
mod forecasts;
mod lasting;
mod memory;
mod periods;
mod pivot;
mod records;
mod sources;

use gleaner_schemas::findings::Findings;
use gleaner_schemas::units::Bytes;
use gleaner_terminal::{Table, table};
pub(crate) use memory::memory;
use records::Document;
use std::fmt::Write;

fn bytes(value: f64) -> String {
    Bytes(value).to_string()
}

pub(crate) fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "—".to_owned())
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Text of a table, or a note if it has no rows.
fn text(table: &Table) -> String {
    if table.is_empty() {
        "  none".to_owned()
    } else {
        table.trim_fmt()
    }
}

/// Text without control characters: anybody may choose names of hosts and programs.
pub(crate) fn plain(text: &str) -> String {
    let plain = |c: char| {
        if c.is_control() && c != '\n' {
            '\u{fffd}'
        } else {
            c
        }
    };
    text.chars().map(plain).collect()
}

/// Keys of the measures printed by default, in that order.
pub(crate) fn printed() -> Vec<String> {
    let printed = Findings::DECLARATIONS
        .iter()
        .filter_map(|about| Some((about.printed?.at, about.key)));
    let mut printed: Vec<(u16, &str)> = printed.collect();
    printed.sort_unstable();
    let keys = printed.into_iter().map(|(_, key)| key.to_owned());
    keys.collect()
}

/// Heading of a measure's table.
fn heading(key: &str) -> String {
    let about = Findings::DECLARATIONS.iter().find(|about| about.key == key);
    about.and_then(|about| about.printed).map_or_else(
        || key.replace('_', " "),
        |printed| printed.heading.to_owned(),
    )
}

/// Tables of the measures `asked`, or of the default ones if `asked` is empty. Long lists are cut to their
/// first `rows` records.
pub(crate) fn all(findings: &Findings, asked: &[String], rows: usize) -> anyhow::Result<String> {
    let shown = match asked {
        [] => printed(),
        some => some.to_vec(),
    };
    let mut document = Document::new(findings, &shown)?;
    if asked.is_empty() {
        document.keep_representative();
    }
    let mut text = meaning(findings);
    for key in shown {
        let body = match key.as_str() {
            "memory_usage" => memory::by_class(findings),
            "availability_periods" => periods::periods(findings),
            "dip_hosts" => dips::hosts(findings),
            "forecast_quality" => forecasts::quality(findings, rows),
            "availability_odds" => lasting::odds(findings),
            "period_bounds" => lasting::bounds(findings),
            "sources" => sources::columns(findings),
            key => document
                .table(key, rows)
                .unwrap_or_else(|| "  none".to_owned()),
        };
        let _ = writeln!(text, "{}\n{body}\n", heading(&key));
    }
    let mut missing: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for m in &findings.missing_measures {
        let said = missing
            .iter_mut()
            .find(|(measure, reason, _)| *measure == m.measure && *reason == m.reason);
        match said {
            Some((_, _, hosts)) => hosts.push(&m.host_id),
            None => missing.push((&m.measure, &m.reason, vec![&m.host_id])),
        }
    }
    for (measure, reason, hosts) in missing {
        let hosts = match hosts.as_slice() {
            [only] => (*only).to_owned(),
            several => format!("{} hosts", several.len()),
        };
        let _ = writeln!(text, "Not measured ({measure}, {hosts}): {reason}");
    }
    Ok(plain(&text))
}

/// Meaning of the figures of imported hosts, printed before the tables; empty if all hosts were recorded by
/// agents.
fn meaning(findings: &Findings) -> String {
    let mut text = String::new();
    for source in &findings.sources {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "Imported from {} ({} of {} hosts): {}\n",
            source.name,
            source.hosts_count,
            findings.hosts.len(),
            source.meaning()
        );
    }
    text
}

/// Returns false only for the class `all` if all hosts are of one class: its row would repeat the row of that
/// class.
fn is_worth_a_row(findings: &Findings, size_class: &str) -> bool {
    size_class != "all"
        || findings
            .hosts
            .windows(2)
            .any(|pair| pair[0].size_class != pair[1].size_class)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use gleaner_schemas::findings::{ClusterPoint, MissingMeasure, TraceColumn, TraceSource};

    #[test]
    fn what_imported_figures_mean_comes_before_whatever_is_asked_for() {
        let mut findings = Findings::default();
        let asked = ["cluster_over_time".to_owned()];
        assert!(!all(&findings, &asked, 10).unwrap().contains("Imported"));
        findings.sources.push(TraceSource {
            name: "a trace".to_owned(),
            hosts_count: 3,
            available_meaning: "Available memory is an upper bound.".to_owned(),
            physical_meaning: Some("what was provisioned".to_owned()),
            columns: vec![TraceColumn {
                table: "samples".to_owned(),
                column: "physical_bytes".to_owned(),
                origin: "what was provisioned".to_owned(),
            }],
            ..TraceSource::default()
        });
        findings.cluster_over_time.push(ClusterPoint::default());
        let text = all(&findings, &asked, 10).unwrap();
        let said = "Imported from a trace (3 of 0 hosts): Available memory is an upper bound. Physical memory is: what was provisioned.";
        assert!(text.starts_with(said), "{text}");
        assert!(text.contains("physical memory  "), "{text}");
        assert!(!text.contains("installed"), "{text}");
        let text = all(&findings, &["sources".to_owned()], 10).unwrap();
        assert!(
            text.contains("samples.physical_bytes") && !text.contains('{'),
            "{text}"
        );
    }

    #[test]
    fn names_that_a_terminal_would_obey_are_shown_as_text() {
        let mut findings = Findings::default();
        findings.missing_measures.push(MissingMeasure {
            measure: "reclaims".to_owned(),
            host_id: "\x1b[2J\x1b]0;desk\x07\u{9b}1m".to_owned(),
            reason: "no owner".to_owned(),
        });
        let text = all(&findings, &[], 10).unwrap();
        assert!(text.contains("\u{fffd}[2J\u{fffd}]0;desk\u{fffd}\u{fffd}1m"));
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
        assert!(text.lines().count() > 10, "lines stay lines");
    }
}
