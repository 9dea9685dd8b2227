//! Recorded facts about the people at this host, as text.

use crate::Error;
use crate::config::Limits;
use crate::interval;
use crate::print::printable;
use crate::ship::mark::ShippingProgress;
use crate::state_files::beside;
use crate::trace::database::{columns, meta, open_to_read};
use gleaner_schemas::units::{Bytes, Seconds};
use rusqlite::{Connection, OptionalExtension};
use serde::Serialize;
use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Number of programs and paths listed in the text; `--json` lists all of them.
const LISTED: usize = 12;

/// All records of the trace about people, within the requested time.
#[derive(Debug, Serialize)]
pub struct Inspection {
    /// Path of the database.
    pub database: PathBuf,
    /// File mode of the database, like 0640.
    pub mode: String,
    /// User and group of the database's file, by number.
    pub owner: (u32, u32),
    /// Time of the first sample, ms since 1970-01-01 UTC; `None` without samples.
    pub from_time_ms: Option<i64>,
    /// Time of the last sample, ms since 1970-01-01 UTC; `None` without samples.
    pub to_time_ms: Option<i64>,
    /// Number of samples in this time.
    pub samples_count: i64,
    /// Newest row of the host; `None` without one.
    pub host: Option<Host>,
    /// Sources of the owner's activity.
    pub activity: Vec<Source>,
    /// Names of programs, the most often active first.
    pub programs: Vec<Program>,
    /// Number of different files that were in use.
    pub files_count: i64,
    /// Paths of these files: none unless the owner chose `privacy = "plain"`.
    pub paths: Vec<String>,
    /// Paths of control groups: none unless the owner chose `privacy = "plain"`.
    pub cgroup_paths: Vec<String>,
    /// Events by kind.
    pub events: Vec<Kind>,
    /// Progress of shipping to a collector.
    pub shipping: ShippingProgress,
    /// Present time, ms since 1970-01-01 UTC.
    pub now_ms: i64,
    /// Age limit of the records, in ms.
    pub retention_ms: u64,
    /// Size limit of the database, in bytes.
    pub database_limit_bytes: u64,
}

/// The host, as recorded.
#[derive(Debug, Serialize)]
pub struct Host {
    /// Name of the host.
    pub host_name: String,
    /// Id of the host in datasets: a hash of its machine id.
    pub host_id: Option<String>,
    /// Privacy level of the records.
    pub privacy: String,
}

/// A source of activity.
#[derive(Debug, Serialize)]
pub struct Source {
    /// Name of the source.
    pub source: String,
    /// Number of different times of activity recorded.
    pub activity_times_count: i64,
}

/// A program that was active.
#[derive(Debug, Serialize)]
pub struct Program {
    /// Name of the program.
    pub name: String,
    /// Number of samples in which it was active.
    pub samples_count: i64,
    /// Time at which the program was last active, ms since 1970-01-01 UTC.
    pub last_time_ms: i64,
}

/// A kind of event.
#[derive(Debug, Serialize)]
pub struct Kind {
    /// Name of the kind.
    pub kind: String,
    /// Number of events.
    pub events_count: i64,
}

/// Reads the records of the trace at `path` from `from_ms` on. `limits` are the limits on the trace's
/// records.
///
/// # Errors
/// [`Error::NoDatabase`] if there is none; [`Error::Database`] if it cannot be read.
pub fn read(path: &Path, from_ms: i64, now_ms: i64, limits: &Limits) -> Result<Inspection, Error> {
    let connection = open_to_read(path)?;
    let file = std::fs::metadata(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    let mut inspection = query(&connection, from_ms, now_ms).map_err(Error::database(path))?;
    inspection.database = path.to_owned();
    inspection.retention_ms = u64::try_from(limits.age.as_millis()).unwrap_or(u64::MAX);
    inspection.database_limit_bytes = limits.database_bytes;
    inspection.mode = format!("{:04o}", file.mode() & 0o7777);
    inspection.owner = (file.uid(), file.gid());
    Ok(inspection)
}

fn query(connection: &Connection, from_ms: i64, now_ms: i64) -> rusqlite::Result<Inspection> {
    let (samples_count, from_time_ms, to_time_ms) = connection.query_row(
        "SELECT count(*), min(time_ms), max(time_ms) FROM samples WHERE time_ms >= ?",
        [from_ms],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let host_id = meta(connection, "host_id")?;
    let host = connection
        .query_row(
            "SELECT host_name, privacy FROM hosts ORDER BY sequence DESC LIMIT 1",
            [],
            |row| {
                Ok(Host {
                    host_name: row.get(0)?,
                    host_id,
                    privacy: row.get(1)?,
                })
            },
        )
        .optional()?;
    let programs = list(
        connection,
        "SELECT p.name, count(DISTINCT s.sequence) AS n, max(s.time_ms) FROM processes p \
         JOIN samples s USING (sequence) WHERE s.time_ms >= ? GROUP BY p.name ORDER BY n DESC, p.name",
        from_ms,
        |row| {
            Ok(Program {
                name: row.get(0)?,
                samples_count: row.get(1)?,
                last_time_ms: row.get(2)?,
            })
        },
    )?;
    let activity = list(
        connection,
        "SELECT a.source, count(*) FROM activity a JOIN samples s USING (sequence) \
         WHERE s.time_ms >= ? AND a.idle_ms IS NOT NULL GROUP BY a.source",
        from_ms,
        |row| {
            Ok(Source {
                source: row.get(0)?,
                activity_times_count: row.get(1)?,
            })
        },
    )?;
    let files_count = connection.query_row(
        "SELECT count(DISTINCT f.file_id) FROM files f JOIN samples s USING (sequence) WHERE s.time_ms >= ?",
        [from_ms],
        |row| row.get(0),
    )?;
    let paths = |table: &str| {
        list(
            connection,
            &format!(
                "SELECT DISTINCT t.path FROM {table} t JOIN samples s USING (sequence) \
                 WHERE s.time_ms >= ? AND t.path IS NOT NULL ORDER BY t.path"
            ),
            from_ms,
            |row| row.get(0),
        )
    };
    let exists = |table| columns(connection, table).map(|columns| !columns.is_empty());
    let cgroup_paths = if exists("cgroups")? {
        paths("cgroups")?
    } else {
        Vec::new()
    };
    let events = if exists("events")? {
        let by_kind = "SELECT kind, count(*) FROM events WHERE time_ms >= ? GROUP BY kind";
        list(connection, by_kind, from_ms, |row| {
            Ok(Kind {
                kind: row.get(0)?,
                events_count: row.get(1)?,
            })
        })?
    } else {
        Vec::new()
    };
    Ok(Inspection {
        database: PathBuf::new(),
        mode: String::new(),
        owner: (0, 0),
        from_time_ms,
        to_time_ms,
        samples_count,
        host,
        activity,
        programs,
        files_count,
        paths: paths("files")?,
        cgroup_paths,
        events,
        shipping: ShippingProgress::read(connection, now_ms)?,
        now_ms,
        retention_ms: 0,
        database_limit_bytes: 0,
    })
}

fn list<T>(
    connection: &Connection,
    query: &str,
    from_ms: i64,
    row: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection
        .prepare(query)?
        .query_map([from_ms], row)?
        .collect()
}

impl Inspection {
    /// Renders the inspection as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let _ = self.write(&mut text); // writing to a String cannot fail
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let ago = |ms: i64| format!("{} ago", Seconds::from_ms(self.now_ms - ms));
        let (Some(from_ms), Some(to_ms)) = (self.from_time_ms, self.to_time_ms) else {
            return writeln!(
                text,
                "{} holds nothing of that time.",
                self.database.display()
            );
        };
        writeln!(
            text,
            "{} samples of this host, the first {}, the last {}. Kept for {} at most, and {}.",
            self.samples_count,
            ago(from_ms),
            ago(to_ms),
            interval::format(Duration::from_millis(self.retention_ms)),
            Bytes::from(self.database_limit_bytes),
        )?;
        if let Some(host) = &self.host {
            writeln!(
                text,
                "The host's name is recorded ({}), and no name or number of a user.",
                printable(&host.host_name)
            )?;
        }
        writeln!(text, "\nWhen you were at the computer")?;
        writeln!(
            text,
            "  How long ago the last key press, movement or terminal input was; never which, where or what."
        )?;
        for source in &self.activity {
            writeln!(
                text,
                "  {:<16}{:>8} different times",
                source.source, source.activity_times_count
            )?;
        }
        let returns = self.events.iter().find(|e| e.kind == "owner_returned");
        if let Some(returns) = returns {
            writeln!(
                text,
                "  {:<16}{:>8} times",
                "came back", returns.events_count
            )?;
        }
        writeln!(
            text,
            "\nWhich programs ran: {} names, each with its number of samples; no arguments, windows or contents",
            self.programs.len()
        )?;
        for p in self.programs.iter().take(LISTED) {
            writeln!(
                text,
                "  {:<16}in {:>6}, last {}",
                printable(&p.name),
                p.samples_count,
                ago(p.last_time_ms)
            )?;
        }
        more(text, self.programs.len())?;
        if self.paths.is_empty() {
            writeln!(
                text,
                "\nWhich files programs used: {} numbers that only this host's key could lead back to paths",
                self.files_count
            )?;
        } else {
            writeln!(
                text,
                "\nWhich files programs used: {} files, {} of them by path, because this host's configuration says privacy = \"plain\"",
                self.files_count,
                self.paths.len()
            )?;
            for path in self.paths.iter().take(LISTED) {
                writeln!(text, "  {}", printable(path))?;
            }
            more(text, self.paths.len())?;
        }
        let (user, group) = self.owner;
        writeln!(
            text,
            "\nWho can read it: mode {} of user {user} and group {group}. {} \
             To erase it, end the agent and remove\n  {}\n  {}",
            self.mode,
            leaves(&self.shipping),
            self.database.display(),
            beside(&self.database, "-key").display()
        )
    }
}

/// Sentences about records that have left the host.
fn leaves(shipping: &ShippingProgress) -> String {
    let otherwise = "leaves this host unless somebody runs\n`gleaner-agent export`.";
    match shipping.acknowledged_sequence {
        None => format!("Nothing {otherwise}"),
        Some(_) => format!(
            "A collector has all of it but the\nnewest {} records (`gleaner-agent ship`); nothing else {otherwise}",
            shipping.pending_records_count
        ),
    }
}

fn more(text: &mut String, count: usize) -> std::fmt::Result {
    if count > LISTED {
        writeln!(text, "  and {} more (--json lists all)", count - LISTED)?;
    }
    Ok(())
}
