//! Checks of the trace and of its shipping, with the output of `gleaner-agent status`.

use crate::command::{ProgramOutput, ask};
use crate::finding::Finding;
use crate::message::Message;
use crate::place::quoted;
use gleaner_schemas::units::{Bytes, Seconds};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Records that were not shipped count as a backlog only if they are at least this old. Younger ones may be
/// waiting for the next batch.
const LEAST_BACKLOG_MS: i64 = 600_000;
/// The age that counts as a backlog is also at least this number of batch intervals.
const BACKLOG_INTERVALS: i64 = 3;

/// Part of the output of `gleaner-agent status --json` that the doctor uses.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Trace {
    pub(crate) database_bytes: u64,
    pub(crate) database_id: Option<String>,
    pub(crate) host_id: Option<String>,
    samples_count: i64,
    sample_interval_ms: Option<i64>,
    last_sample_age_ms: Option<i64>,
    is_healthy: bool,
    pub(crate) is_running: bool,
    shipping: ShippingPart,
    damaged_databases: Vec<PathBuf>,
    missing_values: Vec<MissingItem>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct ShippingPart {
    acknowledged_sequence: Option<i64>,
    pending_records_count: i64,
    lag_ms: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct MissingItem {
    item: String,
    reason: String,
    remedy: Option<String>,
}

/// Runs the agent's program. An error contains the program's message.
pub(crate) fn read(program: &Path, database: &Path) -> Result<Trace, String> {
    let path = database.display().to_string();
    let said = ask(program, &["status", "--json", "--database", &path])?;
    told(&said)
}

/// Parses the program's output. Exit code 3 means that no sample was written recently; the program prints its
/// document in this case too.
fn told(said: &ProgramOutput) -> Result<Trace, String> {
    match said.code {
        Some(0 | 3) => serde_json::from_str(&said.output).map_err(|e| {
            format!("gleaner-agent status printed something that this version does not know: {e}")
        }),
        _ => Err(said
            .errors
            .trim()
            .trim_start_matches("gleaner-agent: ")
            .to_owned()),
    }
}

/// Judges the trace. `start`: command that restarts the agent. `may_read`: this user may read the trace.
/// `is_there`: the file of the trace exists.
pub(crate) fn judge(
    trace: &Result<Trace, String>,
    database: &Path,
    may_read: bool,
    is_there: bool,
    start: &str,
) -> Vec<Finding> {
    let shown = database.display();
    let trace = match trace {
        Ok(trace) => trace,
        Err(_) if !may_read => {
            let found = format!("this user may not read {shown}");
            return vec![
                Finding::of(Message::TraceUnseen, "trace", found)
                    .remedy("sudo gleaner doctor agent"),
            ];
        }
        Err(_) if !is_there => {
            let found = format!("there is no {shown}: the agent has not run with it");
            return vec![Finding::of(Message::TraceMissing, "trace", found).remedy(start)];
        }
        Err(why) => return vec![Finding::of(Message::TraceFails, "trace", why)],
    };
    let mut findings = vec![newest(trace, database, start)];
    for damaged in &trace.damaged_databases {
        let found = format!("{} was damaged and set aside", damaged.display());
        let command = format!(
            "sudo gleaner-agent export --database {} ./rescued",
            quoted(damaged)
        );
        findings.push(Finding::of(Message::TraceDamaged, "trace", found).remedy(command));
    }
    findings
}

fn newest(trace: &Trace, database: &Path, start: &str) -> Finding {
    let every = trace
        .sample_interval_ms
        .map_or_else(|| "?".to_owned(), |ms| Seconds::from_ms(ms).to_string());
    let said = |age_ms: i64| {
        format!(
            "{}: {} samples, {}; the newest {} old, one every {every}",
            database.display(),
            trace.samples_count,
            Bytes::from(trace.database_bytes),
            Seconds::from_ms(age_ms)
        )
    };
    match (trace.last_sample_age_ms, trace.is_healthy, trace.is_running) {
        (Some(age_ms), true, _) => Finding::ok("trace", said(age_ms)),
        (Some(age_ms), false, true) => {
            let found = format!("{}: the agent runs, but stores nothing", said(age_ms));
            Finding::of(Message::TraceOld, "trace", found).remedy(start)
        }
        (Some(age_ms), false, false) => {
            let found = format!("{}: no agent writes it", said(age_ms));
            Finding::of(Message::TraceOld, "trace", found).remedy(start)
        }
        (None, _, true) => Finding::of(
            Message::TraceEmpty,
            "trace",
            format!("{} has no sample yet", database.display()),
        ),
        (None, _, false) => {
            let found = format!(
                "{} has no sample, and no agent writes it",
                database.display()
            );
            Finding::of(Message::TraceOld, "trace", found).remedy(start)
        }
    }
}

/// Judges the mode of the trace's file: not every user may read its records.
pub(crate) fn judge_mode(database: &Path, mode: Option<u32>) -> Option<Finding> {
    let mode = mode.filter(|mode| mode & 0o004 != 0)?;
    let found = format!(
        "{} (mode {mode:04o}) is open to every user of this host",
        database.display()
    );
    let remedy = format!("sudo chmod o-rwx {}", quoted(database));
    Some(Finding::of(Message::TraceOpen, "trace", found).remedy(remedy))
}

/// Judges the values that the last sample lacks. Some need a permission, which the command `grant` gives;
/// others do not exist on this host.
pub(crate) fn judge_missing_values(trace: &Trace, grant: &str) -> Vec<Finding> {
    let (denied, others): (Vec<_>, Vec<_>) = trace
        .missing_values
        .iter()
        .partition(|missing| missing.reason == "denied");
    let names = |of: &[&MissingItem]| {
        let mut names: Vec<&str> = of.iter().map(|missing| missing.item.as_str()).collect();
        names.dedup();
        names.join(", ")
    };
    let mut findings = Vec::new();
    if !denied.is_empty() {
        let mut remedies: Vec<&str> = denied.iter().filter_map(|m| m.remedy.as_deref()).collect();
        remedies.dedup();
        let because = match remedies.as_slice() {
            [] => String::new(),
            some => format!(": {}", some.join("; ")),
        };
        let found = format!("the agent may not read {}{because}", names(&denied));
        findings.push(Finding::of(Message::NotGranted, "readable", found).remedy(grant));
    }
    let there: Vec<&MissingItem> = others
        .into_iter()
        .filter(|missing| missing.reason == "unsupported")
        .collect();
    if denied.is_empty() && trace.samples_count > 0 {
        findings.push(Finding::ok(
            "readable",
            match there.as_slice() {
                [] => "the last sample lacks nothing".to_owned(),
                some => format!("all that this host has; it has no {}", names(some)),
            },
        ));
    }
    findings
}

/// Judges the shipping. `interval_ms` is the interval between batches, `try_now` the command that ships once.
pub(crate) fn judge_shipping(trace: &Trace, interval_ms: i64, try_now: &str) -> Finding {
    let shipping = &trace.shipping;
    let count = shipping.pending_records_count;
    let limit = LEAST_BACKLOG_MS.max(interval_ms.saturating_mul(BACKLOG_INTERVALS));
    let lag = shipping
        .lag_ms
        .map(|ms| Seconds::from_ms(ms).to_string())
        .unwrap_or_default();
    match (shipping.acknowledged_sequence, shipping.lag_ms) {
        (None, Some(_)) => {
            let found = format!(
                "the collector has acknowledged nothing yet; {count} records wait, the oldest for {lag}"
            );
            Finding::of(Message::NeverShipped, "backlog", found).remedy(try_now)
        }
        (_, Some(lag_ms)) if lag_ms > limit => {
            let found = format!("{count} records wait, the oldest for {lag}");
            Finding::of(Message::Backlog, "backlog", found).remedy(try_now)
        }
        (_, Some(_)) => Finding::ok(
            "backlog",
            format!("{count} records wait, the oldest for {lag}"),
        ),
        (_, None) => Finding::ok("backlog", "none: the collector has every record"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(age_ms: Option<i64>, is_healthy: bool, is_running: bool) -> Trace {
        Trace {
            samples_count: 7,
            sample_interval_ms: Some(90_000),
            last_sample_age_ms: age_ms,
            is_healthy,
            is_running,
            ..Trace::default()
        }
    }

    #[test]
    fn the_newest_sample_says_whether_tracing_works() {
        let path = Path::new("/x/trace.db");
        let judged = |trace: Result<Trace, String>, may_read, is_there| {
            judge(&trace, path, may_read, is_there, "start").remove(0)
        };
        for (trace, may_read, is_there, message) in [
            (Ok(trace(Some(5_000), true, true)), true, true, None),
            (
                Ok(trace(Some(500_000), false, true)),
                true,
                true,
                Some(Message::TraceOld),
            ),
            (
                Ok(trace(Some(500_000), false, false)),
                true,
                true,
                Some(Message::TraceOld),
            ),
            (
                Ok(trace(None, false, true)),
                true,
                true,
                Some(Message::TraceEmpty),
            ),
            (
                Ok(trace(None, false, false)),
                true,
                true,
                Some(Message::TraceOld),
            ),
            (
                Err("x".to_owned()),
                true,
                false,
                Some(Message::TraceMissing),
            ),
            (Err("x".to_owned()), false, true, Some(Message::TraceUnseen)),
            (
                Err("another host's".to_owned()),
                true,
                true,
                Some(Message::TraceFails),
            ),
        ] {
            let finding = judged(trace.clone(), may_read, is_there);
            assert_eq!(finding.message, message, "{trace:?}");
        }
        let mut damaged = trace(Some(1), true, true);
        damaged.damaged_databases = vec!["/x/trace.db.damaged-1".into()];
        let findings = judge(&Ok(damaged), path, true, true, "start");
        assert_eq!(findings[1].message, Some(Message::TraceDamaged));
    }

    #[test]
    fn what_could_be_granted_is_told_apart_from_what_is_not_there() {
        let mut trace = trace(Some(1), true, true);
        let missing = |item: &str, reason: &str, remedy: Option<&str>| MissingItem {
            item: item.to_owned(),
            reason: reason.to_owned(),
            remedy: remedy.map(str::to_owned),
        };
        trace.missing_values = vec![
            missing("psi", "unsupported", None),
            missing("x", "vanished", None),
        ];
        let found = judge_missing_values(&trace, "grant");
        assert_eq!((found.len(), found[0].message), (1, None));
        assert!(found[0].text.ends_with("it has no psi"), "{found:?}");
        trace
            .missing_values
            .push(missing("files", "denied", Some("root reads them")));
        trace
            .missing_values
            .push(missing("processes", "denied", Some("root reads them")));
        let found = judge_missing_values(&trace, "grant");
        assert_eq!(
            (found.len(), found[0].message),
            (1, Some(Message::NotGranted))
        );
        assert!(
            found[0].text.contains("files, processes: root reads them"),
            "{found:?}"
        );
    }

    #[test]
    fn a_backlog_is_what_shipping_does_not_explain() {
        let shipped = |acknowledged_sequence, lag_ms| Trace {
            shipping: ShippingPart {
                acknowledged_sequence,
                pending_records_count: 3,
                lag_ms,
            },
            ..Trace::default()
        };
        for (trace, message) in [
            (shipped(None, None), None),
            (shipped(None, Some(1)), Some(Message::NeverShipped)),
            (shipped(Some(4), Some(600_000)), None),
            (shipped(Some(4), Some(600_001)), Some(Message::Backlog)),
            (shipped(Some(4), None), None),
        ] {
            assert_eq!(
                judge_shipping(&trace, 90_000, "try").message,
                message,
                "{trace:?}"
            );
        }
        assert_eq!(
            judge_shipping(&shipped(Some(4), Some(600_001)), 3_600_000, "try").message,
            None
        );
    }

    #[test]
    fn the_agents_document_is_read_with_fields_that_are_not_known() {
        let said = |code, output: &str| ProgramOutput {
            code: Some(code),
            output: output.to_owned(),
            errors: "gleaner-agent: no trace\n".to_owned(),
        };
        assert_eq!(
            told(&said(3, "{\"samples_count\": 3, \"colour\": 1}"))
                .unwrap()
                .samples_count,
            3
        );
        assert_eq!(told(&said(1, "")), Err("no trace".to_owned()));
        assert!(told(&said(0, "{")).is_err());
    }
}
