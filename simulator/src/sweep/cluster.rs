//! A dataset, with the part of its time that is simulated.

use super::{ForecastInputs, SweepError};
use crate::dodo::Recruitment;
use crate::event::MS;
use crate::hosts::Foresight;
use gleaner_dataset::{Dataset, instant_ms};
use gleaner_policy::forecast::table::Table;
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::SampleRow;
use std::path::Path;
use std::sync::Arc;

const DAY_MS: i64 = 86_400_000;

/// A named dataset.
pub struct Cluster {
    /// Name of the dataset in the result rows.
    pub name: String,
    /// The simulation's begin, ms since 1970-01-01 UTC.
    pub from_ms: i64,
    /// The simulation's end, ms since 1970-01-01 UTC.
    pub until_ms: i64,
    /// The whole dataset, including the time before the begin.
    pub dataset: Dataset,
    /// Forecasts learnt from the time before the begin, with the inputs of the learning.
    pub(super) tables: Vec<(ForecastInputs, Arc<Table>)>,
}

impl Cluster {
    /// Opens the dataset in a folder for a simulation, like [`Cluster::of`].
    ///
    /// # Errors
    /// [`SweepError`]: there is no dataset, or it does not cover the whole time.
    pub fn open(
        name: &str,
        folder: &Path,
        from: Option<&str>,
        length_ns: u64,
    ) -> Result<Self, SweepError> {
        let dataset = Dataset::open(folder).map_err(|source| SweepError::Dataset {
            name: name.to_owned(),
            source,
        })?;
        Self::of(name, dataset, from, length_ns)
    }

    /// A dataset for a simulation of `length_ns` that begins at `from`. If `from` is absent, the simulation begins
    /// on the dataset's first day.
    ///
    /// # Errors
    /// [`SweepError::Span`] if the dataset does not cover the whole time.
    pub fn of(
        name: &str,
        dataset: Dataset,
        from: Option<&str>,
        length_ns: u64,
    ) -> Result<Self, SweepError> {
        let days = dataset.dates(&SampleRow::TABLE);
        let first = days.first().cloned().unwrap_or_default();
        let last = days.last().cloned().unwrap_or_default();
        let from = from.unwrap_or(&first);
        let from_ms = instant_ms(from);
        let length_ms = (length_ns / MS).cast_signed();
        let is_there = |from_ms: &i64| {
            let begin = instant_ms(&first).is_some_and(|ms| ms <= *from_ms);
            let end = instant_ms(&last).map(|ms| ms + DAY_MS);
            begin && end.is_some_and(|ms| from_ms.saturating_add(length_ms) <= ms)
        };
        let Some(from_ms) = from_ms.filter(is_there) else {
            return Err(SweepError::Span {
                name: name.to_owned(),
                from: from.to_owned(),
                first,
                last,
                days: length_ms as f64 / DAY_MS as f64,
            });
        };
        Ok(Self {
            name: name.to_owned(),
            from_ms,
            until_ms: from_ms + length_ms,
            dataset,
            tables: Vec::new(),
        })
    }

    /// Adds a forecast table, learnt only from the time before [`Cluster::from_ms`].
    pub fn learnt(&mut self, by: ForecastInputs, table: Table) {
        self.tables.push((by, Arc::new(table)));
    }

    /// Foresight of the hosts, if the recruitment needs it.
    pub(super) fn foresight(
        &self,
        recruitment: &Recruitment,
    ) -> Result<Option<Foresight>, SweepError> {
        let Some(wanted) = ForecastInputs::of(recruitment) else {
            return Ok(None);
        };
        match self.tables.iter().find(|(by, _)| *by == wanted) {
            Some((_, table)) => Ok(recruitment.foresight(table)),
            None => Err(SweepError::NotLearnt {
                name: self.name.clone(),
            }),
        }
    }
}
