//! List of issued certificates and tokens, for display and as JSON.

use gleaner_trust::{Record, State};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

fn state(record: &Record) -> &'static str {
    match record.state(SystemTime::now()) {
        State::Valid => "valid",
        State::Expired => "expired",
        State::Revoked => "revoked",
    }
}

pub(super) fn table(records: &[Record]) -> String {
    let header = ["serial", "role", "name", "from", "expires", "state"];
    let mut t = gleaner_terminal::table(&header, header.len());
    for r in records {
        t.add_row(vec![
            r.serial.clone(),
            r.role.kind().to_owned(),
            r.role.name(),
            day(r.dates.from),
            day(r.dates.until),
            state(r).to_owned(),
        ]);
    }
    if records.is_empty() {
        "nothing issued yet".to_owned()
    } else {
        t.trim_fmt()
    }
}

pub(super) fn json(records: &[Record]) -> Value {
    let row = |r: &Record| {
        json!({
            "serial": r.serial,
            "role": r.role.kind(),
            "name": r.role.name(),
            "valid_from_time_ms": ms(r.dates.from),
            "expiry_time_ms": ms(r.dates.until),
            "revocation_time_ms": r.revoked.map(ms),
            "state": state(r),
        })
    };
    records.iter().map(row).collect()
}

/// Converts a time to ms since 1970-01-01 UTC.
pub(super) fn ms(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Formats a UTC date.
pub(super) fn day(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time)
        .map_or_else(|_| "—".to_owned(), |t| t.strftime("%Y-%m-%d").to_string())
}
