//! Checks that the files on disk are the sealed ones, and lists all problems.

use crate::file::arrow_file::ArrowFile;
use crate::file::index::{HostRows, Part};
use crate::layout;
use crate::manifest::FileEntry;
use crate::{Dataset, DatasetError};
use gleaner_schemas::arrow::IDENTITY;
use gleaner_schemas::rows::table;
use std::fmt;
use std::path::Path;

/// Result of [`Dataset::verify`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Number of files that the manifest names.
    pub files: usize,
    /// Number of rows according to the manifest.
    pub rows: u64,
    /// Total length of the files according to the manifest, in bytes.
    pub bytes: u64,
    /// A problem for each file that differs from the sealed one.
    pub problems: Vec<Problem>,
}

/// A file that differs from the sealed one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path of the file, relative to the dataset.
    pub path: String,
    /// Name of the file's table.
    pub table: String,
    /// UTC day of the file.
    pub date: String,
    /// Kind of the problem.
    pub kind: ProblemKind,
    /// Number of rows that cannot be read because of this problem.
    pub rows: u64,
    /// Number of hosts that have such rows.
    pub hosts_count: u64,
    /// Ids of these hosts, if the file still contains them.
    pub hosts: Vec<String>,
}

/// Kind of a file's problem.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The file does not exist.
    Missing,
    /// The file's length differs from the sealed length.
    Torn {
        /// Length at sealing, in bytes.
        expected: u64,
        /// Current length, in bytes.
        found: u64,
    },
    /// The footer, or the index in it, was altered: no rows can be found in the file.
    Footer,
    /// Number of record batches that were altered.
    Batches(usize),
    /// Bytes that belong to no rows were altered.
    OutsideRows,
    /// The file is sound, but this field of its manifest entry contradicts it.
    Entry(&'static str),
    /// The system could not read the file.
    Unreadable(String),
}

impl Dataset {
    /// Reads every file completely, and compares it with the sealed hashes and counts. Also compares the
    /// tables, hosts and times in the manifest with the files.
    #[must_use]
    pub fn verify(&self) -> Verification {
        let files = &self.manifest().files;
        Verification {
            files: files.len(),
            rows: files.iter().map(|f| f.rows).sum(),
            bytes: files.iter().map(|f| f.bytes).sum(),
            problems: files
                .iter()
                .filter_map(|entry| problem(self.root(), entry))
                .collect(),
        }
    }
}

/// Problem of the file that `entry` names; `None` if the file is sound.
pub(crate) fn problem(root: &Path, entry: &FileEntry) -> Option<Problem> {
    let all = |kind| Problem {
        path: entry.path.clone(),
        table: entry.table.clone(),
        date: entry.date.clone(),
        kind,
        rows: entry.rows,
        hosts_count: entry.hosts_count,
        hosts: Vec::new(),
    };
    let file = match ArrowFile::open(root, entry) {
        Ok(file) => file,
        Err(error) => return Some(all(kind(error))),
    };
    let Ok(hosts) = file.hosts().collect::<Result<Vec<_>, _>>() else {
        return Some(all(ProblemKind::Footer));
    };
    let rows: u64 = hosts.iter().map(|host| host.rows).sum();
    if rows != entry.rows || file.parts().iter().map(|part| part.rows).sum::<u64>() != rows {
        return Some(all(ProblemKind::Footer));
    }
    if file.file_hash() == entry.blake3 {
        return match misstated(&file, entry, &hosts) {
            Ok(what) => what.map(|what| all(ProblemKind::Entry(what))),
            Err(error) => Some(all(kind(error))),
        };
    }
    let bad: Vec<&Part> = file.parts().iter().filter(|p| !file.is_sound(p)).collect();
    let is_touched = |host: &&HostRows| file.parts_of(host).any(|(part, _)| bad.contains(&part));
    let touched = hosts.iter().filter(is_touched);
    let touched: Vec<String> = touched.map(|host| host.host_id.clone()).collect();
    Some(Problem {
        rows: bad.iter().map(|part| part.rows).sum(),
        hosts_count: touched.len() as u64,
        hosts: touched,
        ..all(match bad.len() {
            0 => ProblemKind::OutsideRows,
            _ => ProblemKind::Batches(bad.iter().map(|part| part.batches.len()).sum()),
        })
    })
}

/// First field of the manifest entry that contradicts the file, which is sound.
fn misstated(
    file: &ArrowFile,
    entry: &FileEntry,
    hosts: &[HostRows],
) -> Result<Option<&'static str>, DatasetError> {
    let Some(table) = table(&entry.table) else {
        return Ok(None); // a table of a newer Gleaner
    };
    let is_in_folder = layout::table_and_date(&entry.path) == Some((&*entry.table, &*entry.date));
    let has_column = |name: &str| table.columns.iter().any(|column| column.name == name);
    let mut names = file.schema.fields().iter().map(|field| field.name());
    let is_of_table =
        names.all(|name| IDENTITY.contains(&name.as_str()) || has_column(name.as_str()));
    if !is_in_folder || !is_of_table {
        return Ok(Some("table"));
    }
    let is_host = |host: Option<&HostRows>, id: &str| host.is_some_and(|host| host.host_id == id);
    let is_named = is_host(hosts.first(), &entry.first_host_id)
        && is_host(hosts.last(), &entry.last_host_id)
        && hosts.len() as u64 == entry.hosts_count;
    if !is_named && !hosts.is_empty() {
        return Ok(Some("hosts"));
    }
    if file.thinned_to_ms()? != entry.thinned_to_ms {
        return Ok(Some("thinning"));
    }
    let times_ms = Some((entry.first_time_ms, entry.last_time_ms));
    if entry.rows > 0 && file.times_ms(&table)? != times_ms {
        return Ok(Some("times"));
    }
    Ok(None)
}

fn kind(error: DatasetError) -> ProblemKind {
    match error {
        DatasetError::Torn {
            expected, found, ..
        } => ProblemKind::Torn { expected, found },
        DatasetError::Missing { .. } => ProblemKind::Missing,
        DatasetError::Altered { .. } => ProblemKind::Footer,
        other => ProblemKind::Unreadable(other.to_string()),
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, rows, .. } = self;
        write!(
            f,
            "{path}: {}: {rows} rows of {} hosts",
            self.kind, self.hosts_count
        )
    }
}

impl fmt::Display for ProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("it is missing"),
            Self::Torn { expected, found } => {
                write!(f, "it has {found} bytes instead of {expected}")
            }
            Self::Footer => f.write_str("its footer was altered"),
            Self::Batches(count) => write!(f, "{count} of its record batches were altered"),
            Self::OutsideRows => f.write_str("it was altered where no row lies"),
            Self::Entry(what) => write!(f, "the manifest gives it other {what} than it has"),
            Self::Unreadable(what) => f.write_str(what),
        }
    }
}
