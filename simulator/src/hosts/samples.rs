//! A host's samples, read from a dataset.

use super::reading::Reading;
use super::{HostsError, Result};
use arrow::array::{Array, AsArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use gleaner_dataset::Dataset;
use gleaner_hosts::derived::{Figures, mem_available_bytes, unsigned};
use gleaner_hosts::recorded::{Databases, Gap, Intervals, SampleTime, gaps, order, runs};
use gleaner_policy::accounting::Categories;
use gleaner_policy::guest_load::owner_load5;
use gleaner_policy::idle::Observation;
use gleaner_schemas::column::{Row, Table};
use gleaner_schemas::findings::Category;
use gleaner_schemas::rows::{GapRow, HostRow, SampleRow};
use std::ops::Range;

/// Columns of one sample that the module `fold` needs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sample {
    pub(super) time_ms: i64,
    pub(super) sequence: i64,
    /// Time since boot.
    pub(super) boottime_ms: Option<i64>,
    pub(super) owner_idle_ms: Option<i64>,
    /// Owner's part of the 5-minute load average.
    pub(super) load5: Option<f64>,
    /// Categories of memory; all but physical and available are 0 if the trace has only these two.
    pub(super) memory: Categories,
    /// True if the sample has all categories of memory.
    pub(super) has_categories: bool,
    pub(super) mem_available_bytes: Option<u64>,
    /// True if a gap lies before the sample.
    pub(super) follows_gap: bool,
}

impl Sample {
    pub(super) const fn observation(&self) -> Observation {
        Observation {
            time_ms: self.time_ms,
            owner_idle_ms: self.owner_idle_ms,
            load5: self.load5,
        }
    }
}

/// Columns that are read in addition to those of [`Category::ALL`].
const COLUMNS: [&str; 12] = [
    "database_id",
    "sequence",
    "time",
    "boottime_ms",
    "interval_ms",
    "owner_idle_ms",
    "load5",
    "guest_load5",
    "physical_bytes",
    "category_correction_bytes",
    "mem_available_bytes",
    "harvestable_bytes",
];

/// A host's rows of a table.
pub(super) struct Rows<'a> {
    dataset: &'a Dataset,
    table: &'static str,
    batch: RecordBatch,
}

impl<'a> Rows<'a> {
    pub(super) fn read(
        dataset: &'a Dataset,
        table: &Table,
        host: &str,
        columns: &[&str],
        (from_ms, until_ms): (Option<i64>, Option<i64>),
    ) -> Result<Self> {
        let batch = dataset.read_host_between(table, host, columns, from_ms, until_ms)?;
        let table = table.name;
        Ok(Self {
            dataset,
            table,
            batch,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.batch.num_rows()
    }

    fn none(&self, column: &str) -> HostsError {
        HostsError::Column {
            root: self.dataset.root().to_owned(),
            table: self.table,
            column: column.to_owned(),
        }
    }

    /// Returns a column as integers; times are in ms.
    pub(super) fn integers(&self, column: &str) -> Result<Int64Array> {
        let array = self.batch.column_by_name(column);
        let array = array.ok_or_else(|| self.none(column))?;
        let integers = cast(array, &DataType::Int64).map_err(|_| self.none(column))?;
        let integers = integers.as_primitive_opt::<Int64Type>().cloned();
        integers.ok_or_else(|| self.none(column))
    }

    fn reals(&self, column: &str) -> Result<&Float64Array> {
        let array = self.batch.column_by_name(column);
        let reals = array.and_then(|array| array.as_primitive_opt::<Float64Type>());
        reals.ok_or_else(|| self.none(column))
    }

    fn texts(&self, column: &str) -> Result<&StringArray> {
        let array = self.batch.column_by_name(column);
        let texts = array.and_then(|array| array.as_string_opt::<i32>());
        texts.ok_or_else(|| self.none(column))
    }
}

/// Reads the host's samples in order of time. They begin a little before the simulation's begin.
pub(super) fn read(dataset: &Dataset, host: &str, reading: &Reading) -> Result<Vec<Sample>> {
    let span = (Some(reading.lead_ms()), Some(reading.until_ms));
    let columns = [&Category::ALL.map(Category::column)[..], &COLUMNS].concat();
    let rows = Rows::read(dataset, &SampleRow::TABLE, host, &columns, span)?;
    let integers = |column| rows.integers(column);
    let (time, sequence) = (integers("time")?, integers("sequence")?);
    let database = rows.texts("database_id")?;
    let (boottime, interval) = (integers("boottime_ms")?, integers("interval_ms")?);
    let owner_idle = integers("owner_idle_ms")?;
    let (load5, guest_load5) = (rows.reals("load5")?, rows.reals("guest_load5")?);
    let load = |of: &Float64Array, row: usize| (!of.is_null(row)).then(|| of.value(row));
    let (physical, correction) = (
        integers("physical_bytes")?,
        integers("category_correction_bytes")?,
    );
    // One array for each category, in the order of `Category::ALL`. The enum declares its variants in this
    // order, so `category as usize` is an array's index.
    let categories = Category::ALL.iter().map(|c| integers(c.column()));
    let categories = categories.collect::<Result<Vec<_>>>()?;
    let (stated, harvestable) = (
        integers("mem_available_bytes")?,
        integers("harvestable_bytes")?,
    );
    let mut numbers = Databases::default();
    let databases: Vec<i64> = (0..rows.len())
        .map(|row| numbers.number(database.value(row)))
        .collect();
    let order = order(rows.len(), |row| (databases[row], sequence.value(row)));
    let order = order.unwrap_or_else(|| (0..rows.len()).collect());
    let known = |of: &Int64Array, row: usize| (!of.is_null(row)).then(|| of.value(row));
    let times: Vec<SampleTime> = (order.iter())
        .map(|&row| SampleTime {
            database: databases[row],
            time_ms: time.value(row),
            interval_ms: known(&interval, row),
        })
        .collect();
    let recorded = recorded_gaps(dataset, host, reading)?;
    let (runs, _) = runs(&times, recorded, &intervals(dataset, host, &times)?);
    let sample = |at: usize, follows_gap: bool| {
        let row = order[at];
        let known = |of: &Int64Array| known(of, row);
        let physical_bytes = known(&physical).unwrap_or(0);
        let figures = Figures::of(
            unsigned(physical_bytes),
            |category| known(&categories[category as usize]).map(unsigned),
            known(&correction),
        );
        Sample {
            time_ms: time.value(row),
            sequence: sequence.value(row),
            boottime_ms: known(&boottime),
            owner_idle_ms: known(&owner_idle),
            load5: owner_load5(load(load5, row), load(guest_load5, row)),
            memory: figures.known(),
            has_categories: figures.complete().is_some(),
            mem_available_bytes: mem_available_bytes(
                known(&stated),
                known(&harvestable),
                physical_bytes,
                reading.limits.headroom_share,
            ),
            follows_gap,
        }
    };
    Ok(one_after_the_other(&times, runs)
        .into_iter()
        .flat_map(|run| {
            let begin = run.start;
            run.map(move |at| (at, at == begin))
        })
        .map(|(at, follows_gap)| sample(at, follows_gap))
        .collect())
}

/// Sorts runs by time. If the clock was set back and times repeat, only the run that began first counts for
/// these times.
fn one_after_the_other(times: &[SampleTime], mut runs: Vec<Range<usize>>) -> Vec<Range<usize>> {
    runs.sort_by_key(|run| times[run.start].time_ms);
    let mut reached_ms = None;
    for run in &mut runs {
        let of_run = &times[run.clone()];
        run.start += of_run.partition_point(|t| Some(t.time_ms) <= reached_ms);
        reached_ms = reached_ms.max(of_run.last().map(|t| t.time_ms));
    }
    runs.retain(|run| !run.is_empty());
    runs
}

/// The gaps that the host recorded. A gap is recorded when it ends.
fn recorded_gaps(dataset: &Dataset, host: &str, reading: &Reading) -> Result<Vec<Gap>> {
    let span = (Some(reading.lead_ms()), Some(reading.until_ms));
    let rows = Rows::read(dataset, &GapRow::TABLE, host, &Gap::COLUMNS, span)?;
    let [from, to, cause] = Gap::COLUMNS;
    let (from, to) = (rows.integers(from)?, rows.integers(to)?);
    Ok(gaps(from.iter(), to.iter(), rows.texts(cause)?.iter()))
}

/// Sample intervals as configured on the host; if unknown, the median time between samples.
fn intervals(dataset: &Dataset, host: &str, times: &[SampleTime]) -> Result<Intervals> {
    let columns = ["time", "sample_interval_ms"];
    let rows = Rows::read(dataset, &HostRow::TABLE, host, &columns, (None, None))?;
    let (time, interval) = (rows.integers("time")?, rows.integers("sample_interval_ms")?);
    let described = time.values().iter().copied().zip(interval.iter());
    let time_ms: Vec<i64> = times.iter().map(|t| t.time_ms).collect();
    Ok(Intervals::new(described, &time_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_was_told_twice_counts_once() {
        // For a while the clock runs an hour fast. A run that lies within another run's time is left out.
        let times = [3600, 3610, 10, 20, 3605, 3615, 3625, 15].map(|time_ms| SampleTime {
            time_ms,
            ..SampleTime::default()
        });
        let runs = one_after_the_other(&times, vec![0..2, 2..4, 4..7, 7..8]);
        assert_eq!(runs, [2..4, 0..2, 5..7]);
    }
}
