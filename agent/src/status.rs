//! State of tracing, and values that the agent may not read.

use crate::Error;
use crate::ship::mark::ShippingProgress;
use crate::state_files::beside;
use crate::trace::damage;
use crate::trace::database::{meta, open_to_read};
use gleaner_schemas::units::{Bytes, Seconds};
use rusqlite::{Connection, OptionalExtension};
use serde::Serialize;
use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// State of tracing, from the database.
#[derive(Debug, Serialize)]
pub struct Status {
    /// Path of the database.
    pub database: PathBuf,
    /// Size of the database and its log, in bytes.
    pub database_bytes: u64,
    /// Id of the database.
    pub database_id: Option<String>,
    /// Id of the host.
    pub host_id: Option<String>,
    /// Number of samples in the database.
    pub samples_count: i64,
    /// Number of gaps in the database.
    pub gaps_count: i64,
    /// Time between samples as last recorded, in ms; before the first sample, as configured.
    pub sample_interval_ms: Option<i64>,
    /// Time since the last sample, in ms.
    pub last_sample_age_ms: Option<i64>,
    /// True if the last sample is at most two intervals old.
    pub is_healthy: bool,
    /// True while an agent works on the database.
    pub is_running: bool,
    /// Progress of shipping.
    pub shipping: ShippingProgress,
    /// Damaged databases that were set aside.
    pub damaged_databases: Vec<PathBuf>,
    /// Values that the last sample could not read.
    pub missing_values: Vec<MissingValue>,
}

/// A value that the last sample could not read.
#[derive(Debug, Serialize)]
pub struct MissingValue {
    /// Name of the value.
    pub item: String,
    /// Reason of the absence.
    pub reason: String,
    /// Details, such as the system's error text.
    pub detail: String,
    /// Number of failed reads in the sample.
    pub missing_count: i64,
    /// Remedy, if there is one.
    pub remedy: Option<&'static str>,
}

/// Reads the status of the trace at `path`, whose agent is configured to take a sample every `interval_ms`.
///
/// # Errors
/// [`Error::NoDatabase`] without a trace; [`Error::Database`] if it cannot be read.
pub fn read(path: &Path, interval_ms: i64, now_ms: i64) -> Result<Status, Error> {
    let connection = open_to_read(path)?;
    let size = |path: PathBuf| std::fs::metadata(path).map_or(0, |m| m.len());
    let database_bytes = size(path.to_owned()) + size(beside(path, "-wal"));
    let mut status =
        query(&connection, path, database_bytes, now_ms).map_err(Error::database(path))?;
    status.sample_interval_ms = status.sample_interval_ms.or(Some(interval_ms));
    Ok(status)
}

fn query(
    connection: &Connection,
    path: &Path,
    database_bytes: u64,
    now_ms: i64,
) -> rusqlite::Result<Status> {
    let count = |table: &str| {
        connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
            row.get::<_, i64>(0)
        })
    };
    let last: Option<(i64, i64)> = connection
        .query_row(
            "SELECT sequence, time_ms FROM samples ORDER BY sequence DESC LIMIT 1",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    let sample_interval_ms: Option<i64> = connection
        .query_row(
            "SELECT sample_interval_ms FROM hosts ORDER BY sequence DESC LIMIT 1",
            [],
            |row| row.get(0),
        )
        .optional()?;
    let last_sample_age_ms = last.map(|(_, time_ms)| now_ms - time_ms);
    // Of each item and reason, the newest row counts. A vanished item concerns only the sample of its own
    // row.
    let mut statement = connection.prepare(
        "SELECT item, reason, detail, missing_count, max(sequence) AS newest FROM missing_values \
         WHERE sequence >= (SELECT sequence FROM samples WHERE is_complete_state ORDER BY sequence DESC LIMIT 1) \
         GROUP BY item, reason HAVING missing_count > 0 AND (reason <> 'vanished' OR newest = ?) \
         ORDER BY item, reason",
    )?;
    let missing_values = statement.query_map([last.map(|(sequence, _)| sequence)], |row| {
        let (item, reason): (String, String) = (row.get(0)?, row.get(1)?);
        let remedy = remedy(&item, &reason);
        Ok(MissingValue {
            item,
            reason,
            detail: row.get(2)?,
            missing_count: row.get(3)?,
            remedy,
        })
    })?;
    Ok(Status {
        database: path.to_owned(),
        database_bytes,
        database_id: meta(connection, "database_id")?,
        host_id: meta(connection, "host_id")?,
        samples_count: count("samples")?,
        gaps_count: count("gaps")?,
        sample_interval_ms,
        last_sample_age_ms,
        is_healthy: is_fresh(last_sample_age_ms, sample_interval_ms),
        is_running: is_locked(path),
        shipping: ShippingProgress::read(connection, now_ms)?,
        damaged_databases: damage::damaged_databases(path),
        missing_values: missing_values.collect::<rusqlite::Result<_>>()?,
    })
}

/// Returns true if an agent holds the lock beside the database, according to `/proc/locks`: trying the lock
/// could prevent an agent from starting.
fn is_locked(path: &Path) -> bool {
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    std::fs::metadata(beside(path, "-lock")).is_ok_and(|file| {
        let (major, minor) = (rustix::fs::major(file.dev()), rustix::fs::minor(file.dev()));
        let name = format!("{major:02x}:{minor:02x}:{}", file.ino());
        let mut lines = locks.lines().map(str::split_whitespace);
        lines.any(|mut words| words.any(|word| word == name))
    })
}

/// Returns true if the last sample is at most two intervals old.
fn is_fresh(age_ms: Option<i64>, interval_ms: Option<i64>) -> bool {
    matches!((age_ms, interval_ms), (Some(age), Some(interval)) if age <= interval.saturating_mul(2))
}

fn remedy(item: &str, reason: &str) -> Option<&'static str> {
    Some(match (item, reason) {
        ("processes", "denied") => {
            "root or CAP_SYS_PTRACE reads other users' processes, unless a security module forbids it; so does the group that hidepid excepts (gid=, proc(5))"
        }
        ("files", "denied") => {
            "root, or CAP_SYS_PTRACE with CAP_DAC_READ_SEARCH and CAP_FOWNER, reads other users' files"
        }
        ("activity" | "owner_idle_ms", "denied") => {
            "root or the group `input` sees keyboard and mouse activity (times only)"
        }
        ("owner_idle_ms", "vanished") => {
            "start `gleaner-agent session` again in the desktop session, or remove $XDG_RUNTIME_DIR/gleaner-session if that is over"
        }
        ("static_kernel_bytes", "denied" | "contradicted") => {
            "root reads the addresses in /proc/iomem"
        }
        ("files", "unsupported") => {
            "cachestat(2), which Linux 6.5 and newer have, answers for files of any size"
        }
        (item, "unsupported") if item.starts_with("psi_") => {
            "needs a kernel built with CONFIG_PSI and booted with psi=1"
        }
        _ => return None,
    })
}

/// Line that says whether samples are stored; `interval_ms` is the present interval, if known.
fn state(
    is_healthy: bool,
    is_running: bool,
    last_sample_age_ms: Option<i64>,
    interval_ms: Option<i64>,
) -> String {
    match (is_healthy, is_running, last_sample_age_ms) {
        (true, ..) => "tracing".to_owned(),
        (false, true, None) => {
            let interval = interval_ms.map_or_else(
                || "its interval".to_owned(),
                |ms| format!("its interval of {}", Seconds::from_ms(ms)),
            );
            format!(
                "starting: the agent runs, and its first sample is due within {interval}; where none comes, its log \
                 says why"
            )
        }
        (false, true, Some(_)) => {
            "not storing: the agent runs, but the last sample is old; is the disk full or read-only? \
             Its log says"
                .to_owned()
        }
        (false, false, Some(_)) => {
            "not tracing: the last sample is old; start `gleaner-agent run`".to_owned()
        }
        (false, false, None) => "no sample yet".to_owned(),
    }
}

impl Status {
    /// Returns true if a sample was written recently.
    #[must_use]
    pub const fn is_healthy(&self) -> bool {
        self.is_healthy
    }

    /// Renders the status as text.
    #[must_use]
    pub fn text(&self) -> String {
        let time = |ms: Option<i64>| {
            ms.map_or_else(|| "none".to_owned(), |ms| Seconds::from_ms(ms).to_string())
        };
        let state = state(
            self.is_healthy,
            self.is_running,
            self.last_sample_age_ms,
            self.sample_interval_ms,
        );
        let mut text = format!(
            "{state}\n  database        {} ({})\n  samples         {}\n  gaps            {}\n  \
             interval        {}\n  last sample     {} ago\n",
            self.database.display(),
            Bytes::from(self.database_bytes),
            self.samples_count,
            self.gaps_count,
            time(self.sample_interval_ms),
            time(self.last_sample_age_ms),
        );
        text.push_str(&self.shipping.text());
        if !self.damaged_databases.is_empty() {
            text.push_str(
                "damaged databases, set aside; `export --database FILE` saves what is readable\n",
            );
        }
        for path in &self.damaged_databases {
            let _ = writeln!(text, "  {}", path.display()); // writing to a String cannot fail
        }
        if !self.missing_values.is_empty() {
            text.push_str("the last sample could not read\n");
        }
        for missing in &self.missing_values {
            let MissingValue {
                item,
                reason,
                detail,
                missing_count,
                ..
            } = missing;
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {item}: {reason}, {missing_count} times ({detail})");
            if let Some(remedy) = missing.remedy {
                let _ = writeln!(text, "    {remedy}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_before_its_first_sample_is_starting() {
        let starting = state(false, true, None, Some(5000));
        assert!(
            starting.starts_with("starting: ") && starting.contains("interval of 5 s"),
            "{starting}"
        );
        let old = state(false, true, Some(1), Some(5000));
        assert!(old.contains("is the disk full"));
        assert_eq!(state(false, false, None, None), "no sample yet");
    }

    #[test]
    fn two_intervals_are_fresh() {
        assert!(is_fresh(Some(180_000), Some(90_000)));
        assert!(!is_fresh(Some(180_001), Some(90_000)));
        assert!(!is_fresh(None, Some(90_000)) && !is_fresh(Some(0), None));
    }
}
