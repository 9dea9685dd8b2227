//! Forecasts of the analysis of how long memory stays available. They are read again when their file changes.

use crate::Error;
use crate::registry::LoadedForecasts;
use gleaner_policy::forecast::TABLE_VERSION;
use gleaner_policy::forecast::table::Table;
use gleaner_schemas::findings::{ForecastCell, ForecastHabit, ForecastWeight};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Fields of the findings that forecasts need. All other fields are skipped.
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
    #[serde(default)]
    parameters: Parameters,
}

#[derive(Default, Deserialize)]
struct Parameters {
    #[serde(default)]
    time_zone: String,
}

#[derive(Deserialize)]
struct Size {
    table_version: i64,
}

/// Metadata of a file that differ for each of its versions.
type Stamp = (u64, u64, u64, i64, i64);

/// File of the findings, with the forecasts last read from it.
#[derive(Default)]
pub(crate) struct Forecasts {
    path: PathBuf,
    tried: Option<Stamp>,
    learnt: Option<LearntForecasts>,
}

struct LearntForecasts {
    table: Arc<Table>,
    /// Time zone of the fleet.
    time_zone: TimeZone,
}

impl Forecasts {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            ..Self::default()
        }
    }

    /// Reads the file if it has changed, and then returns true. If the file cannot be read, the earlier
    /// forecasts stay, and the error is returned once.
    pub(crate) fn reload_if_changed(&mut self) -> Result<bool, Error> {
        let now = stamp(&self.path);
        if now == self.tried && now.is_some() {
            return Ok(false);
        }
        let was_missing = self.tried.is_none() && self.learnt.is_none();
        self.tried = now;
        if now.is_none() && !was_missing {
            return Ok(false); // the file may just be being replaced: the former content stays
        }
        self.learnt = Some(read(&self.path)?);
        Ok(true)
    }

    /// Forecasts, with the present hour of the week.
    pub(crate) fn now(&self) -> Option<LoadedForecasts> {
        let LearntForecasts { table, time_zone } = self.learnt.as_ref()?;
        let now = Timestamp::now().to_zoned(time_zone.clone());
        let hour = i16::from(now.weekday().to_monday_zero_offset()) * 24 + i16::from(now.hour());
        Some(LoadedForecasts {
            table: Arc::clone(table),
            hour_of_week: u8::try_from(hour).unwrap_or_default(),
        })
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let m = fs::metadata(path).ok()?;
    Some((m.dev(), m.ino(), m.len(), m.mtime(), m.mtime_nsec()))
}

fn read(path: &Path) -> Result<LearntForecasts, Error> {
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
        _ => {
            let name = &found.parameters.time_zone;
            let time_zone = match name.as_str() {
                "" => TimeZone::UTC,
                name => TimeZone::get(name).map_err(|e| wrong(e.to_string()))?,
            };
            let table = Table::new(
                &found.forecast_table,
                &found.forecast_habits,
                &found.forecast_weights,
            );
            Ok(LearntForecasts {
                table: Arc::new(table),
                time_zone,
            })
        }
    }
}
