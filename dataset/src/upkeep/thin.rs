//! Thinning: keeps fewer samples of a host's day. The lowest values and the recorded time are not lost.
//!
//! Time is divided into buckets. The sample with the least available memory of each bucket is kept, and the
//! first and the last sample of each run without gaps. The interval of a kept sample is extended back to the
//! kept sample before it. Some tables store only changes; the samples to which the changes belong may be
//! gone. At each kept sample, such a table therefore gets rows for the complete state.

use crate::rows::identity::Identities;
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, TimestampMillisecondArray, UInt32Array,
};
use arrow::compute::take_record_batch;
use arrow::datatypes::Int64Type;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use arrow::row::{OwnedRow, RowConverter, SortField};
use gleaner_schemas::column::{Row, Table};
use gleaner_schemas::rows::{ActivityRow, FileRow, MissingValueRow};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

type Result<T> = std::result::Result<T, ArrowError>;

/// A sample of the day, which is kept or dropped.
struct Step {
    sequence: i64,
    time_ms: i64,
    /// True if no row from before this sample is valid at it.
    begins_anew: bool,
    is_kept: bool,
}

/// Result of thinning one host's day.
pub(crate) struct DayThinning {
    /// Samples of each database, ordered by sequence number.
    steps: BTreeMap<String, Vec<Step>>,
    /// Rows of the kept samples.
    pub(crate) samples: RecordBatch,
}

impl DayThinning {
    /// Thins `samples`, which are a host's whole day, to about one every `to_ms`.
    pub(crate) fn of(samples: &RecordBatch, to_ms: i64) -> Result<Self> {
        let identities = Identities::of(samples)?;
        let available = integers(samples, "available_bytes")?;
        let intervals = integers(samples, "interval_ms")?;
        let lowest = integers(samples, "mem_available_min_bytes")?;
        let wholes = flags(samples, "is_complete_state")?;

        let mut databases: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for row in 0..samples.num_rows() {
            let database = identities.databases.value(row);
            databases.entry(database).or_default().push(row);
        }
        let mut steps = BTreeMap::new();
        let mut kept: Vec<KeptSample> = Vec::new();
        for (database, mut rows) in databases {
            rows.sort_by_key(|&row| identities.sequences[row]);
            let mut is_kept = vec![false; rows.len()];
            let mut begins_anew = vec![false; rows.len()];
            let goes_on = |at: usize| {
                let (before, now) = (rows[at - 1], rows[at]);
                intervals.is_valid(now) && identities.times_ms[now] > identities.times_ms[before]
            };
            let mut start = 0;
            for end in 1..=rows.len() {
                if end < rows.len() && goes_on(end) {
                    continue;
                }
                let run = &rows[start..end];
                let bucket = |row: usize| identities.times_ms[row].div_euclid(to_ms.max(1));
                let mut least: HashMap<i64, usize> = HashMap::new();
                for (at, &row) in run.iter().enumerate() {
                    let best = least.entry(bucket(row)).or_insert(at);
                    if available.value(row) < available.value(run[*best]) {
                        *best = at;
                    }
                }
                for at in least.into_values().chain([0, run.len() - 1]) {
                    is_kept[start + at] = true;
                }
                let mut sums = Sums::default();
                let mut is_known = false;
                for (at, &row) in run.iter().enumerate() {
                    is_known |= wholes.value(row);
                    begins_anew[start + at] = at == 0 || wholes.value(row);
                    sums.add(optional(intervals, row), optional(lowest, row), at == 0);
                    if is_kept[start + at] {
                        kept.push(sums.take(row, is_known));
                    }
                }
                start = end;
            }
            let step = |(at, &row): (usize, &usize)| Step {
                sequence: identities.sequences[row],
                time_ms: identities.times_ms[row],
                begins_anew: begins_anew[at],
                is_kept: is_kept[at],
            };
            let of_database = rows.iter().enumerate().map(step).collect();
            steps.insert(database.to_owned(), of_database);
        }
        kept.sort_by_key(|kept| kept.row); // Back to the order of the file.
        let rows: UInt32Array = kept.iter().map(|kept| kept.row as u32).collect();
        let samples = take_record_batch(samples, &rows)?;
        let whole: BooleanArray = kept.iter().map(|kept| Some(kept.is_whole)).collect();
        let samples = with(&samples, "is_complete_state", Arc::new(whole))?;
        let intervals: Int64Array = kept.iter().map(|kept| kept.interval_ms).collect();
        let samples = with(&samples, "interval_ms", Arc::new(intervals))?;
        let lowest: Int64Array = kept.iter().map(|kept| kept.lowest_bytes).collect();
        let samples = with(&samples, "mem_available_min_bytes", Arc::new(lowest))?;
        Ok(Self { steps, samples })
    }

    /// Thins the rows of another table. A table of changes gets the complete state at each kept sample; other
    /// tables keep the rows of kept samples. The result is unordered.
    pub(crate) fn rows(&self, table: &Table, rows: &RecordBatch) -> Result<RecordBatch> {
        let changes = [FileRow::TABLE, ActivityRow::TABLE, MissingValueRow::TABLE];
        if changes.iter().any(|t| t.name == table.name) {
            return self.whole_states(table, rows);
        }
        let identities = Identities::of(rows)?;
        let is_kept = |row: usize| {
            let steps = self.steps.get(identities.databases.value(row));
            let sequence = identities.sequences[row];
            let found = steps.map(|steps| {
                let at = steps.binary_search_by_key(&sequence, |step| step.sequence);
                at.ok().and_then(|at| steps.get(at))
            });
            // Rows that belong to no sample are kept.
            found.flatten().is_none_or(|step| step.is_kept)
        };
        let kept: UInt32Array = (0..rows.num_rows())
            .filter(|&row| is_kept(row))
            .map(|row| row as u32)
            .collect();
        take_record_batch(rows, &kept)
    }

    fn whole_states(&self, table: &Table, rows: &RecordBatch) -> Result<RecordBatch> {
        let identities = Identities::of(rows)?;
        let keys = keys(table, rows)?;
        let kind = Changes::of(table, rows)?;
        let mut of_step: HashMap<(&str, i64), Vec<usize>> = HashMap::new();
        for row in 0..rows.num_rows() {
            let name = (identities.databases.value(row), identities.sequences[row]);
            of_step.entry(name).or_default().push(row);
        }
        let mut told: Vec<PlacedRow> = Vec::new();
        for (database, steps) in &self.steps {
            let mut state: BTreeMap<&OwnedRow, usize> = BTreeMap::new();
            for step in steps {
                if step.begins_anew {
                    state.clear();
                }
                let news = of_step.remove(&(database.as_str(), step.sequence));
                for row in news.into_iter().flatten() {
                    if kind.is_end(row) {
                        state.remove(&keys[row]);
                    } else {
                        state.insert(&keys[row], row);
                    }
                }
                if step.is_kept {
                    let at_step = |&row: &usize| PlacedRow {
                        row,
                        sequence: step.sequence,
                        time_ms: step.time_ms,
                    };
                    told.extend(state.values().map(at_step));
                }
                state.retain(|_, row| !kind.is_valid_in_sample_only(*row));
            }
        }
        // Rows that belong to no sample are kept.
        told.extend(of_step.into_values().flatten().map(|row| PlacedRow {
            row,
            sequence: identities.sequences[row],
            time_ms: identities.times_ms[row],
        }));
        let positions: UInt32Array = told.iter().map(|told| told.row as u32).collect();
        let whole = take_record_batch(rows, &positions)?;
        let sequences = told.iter().map(|told| told.sequence);
        let whole = with(
            &whole,
            "sequence",
            Arc::new(Int64Array::from_iter_values(sequences)),
        )?;
        let times = told.iter().map(|told| told.time_ms);
        let times = TimestampMillisecondArray::from_iter_values(times).with_timezone("UTC");
        let whole = with(&whole, "time", Arc::new(times))?;
        kind.at_later_time(rows, whole, &told)
    }
}

/// A row of a table of changes, with the sequence and time of the kept sample to which it is copied.
struct PlacedRow {
    row: usize,
    sequence: i64,
    time_ms: i64,
}

struct KeptSample {
    row: usize,
    /// True if all rows valid at this sample are known: its run has a complete state, here or earlier.
    is_whole: bool,
    interval_ms: Option<i64>,
    lowest_bytes: Option<i64>,
}

/// Sum of the intervals, and lowest memory, of the samples since the last kept one.
#[derive(Default)]
struct Sums {
    interval_ms: Option<i64>,
    lowest_bytes: Option<i64>,
}

impl Sums {
    fn add(&mut self, interval_ms: Option<i64>, lowest_bytes: Option<i64>, is_first: bool) {
        self.interval_ms = match (self.interval_ms, interval_ms) {
            _ if is_first => interval_ms,
            (before, now) => now.map(|now| before.unwrap_or(0).saturating_add(now)),
        };
        self.lowest_bytes = self.lowest_bytes.into_iter().chain(lowest_bytes).min();
    }

    fn take(&mut self, row: usize, is_whole: bool) -> KeptSample {
        let Self {
            interval_ms,
            lowest_bytes,
        } = std::mem::take(self);
        KeptSample {
            row,
            is_whole,
            interval_ms,
            lowest_bytes,
        }
    }
}

/// Columns of a table of changes that thinning needs, by table.
enum Changes<'a> {
    Files {
        counts: [&'a Int64Array; 2],
        cached: &'a Int64Array,
    },
    Activity {
        idle: &'a Int64Array,
    },
    MissingValues {
        count: &'a Int64Array,
        reason: &'a arrow::array::StringArray,
    },
}

impl<'a> Changes<'a> {
    fn of(table: &Table, rows: &'a RecordBatch) -> Result<Self> {
        Ok(match table.name {
            "files" => Self::Files {
                counts: [
                    integers(rows, "open_processes_count")?,
                    integers(rows, "mapping_processes_count")?,
                ],
                cached: integers(rows, "cached_bytes")?,
            },
            "activity" => Self::Activity {
                idle: integers(rows, "idle_ms")?,
            },
            _ => Self::MissingValues {
                count: integers(rows, "missing_count")?,
                reason: column(rows, "reason")?
                    .as_string_opt()
                    .ok_or_else(|| wrong("reason"))?,
            },
        })
    }

    /// Returns true if the row states that an item, such as a file in use, is gone.
    fn is_end(&self, row: usize) -> bool {
        match self {
            Self::Files { counts, cached } => {
                counts.iter().all(|count| count.value(row) == 0) && cached.is_null(row)
            }
            Self::Activity { .. } => false,
            Self::MissingValues { count, .. } => count.value(row) == 0,
        }
    }

    fn is_valid_in_sample_only(&self, row: usize) -> bool {
        matches!(self, Self::MissingValues { reason, .. } if reason.value(row) == "vanished")
    }

    /// Returns `whole` with corrected values, where they depend on the time to which a row is copied.
    fn at_later_time(
        &self,
        rows: &RecordBatch,
        whole: RecordBatch,
        told: &[PlacedRow],
    ) -> Result<RecordBatch> {
        let identities = Identities::of(rows)?;
        match self {
            // Since the last activity, more time has passed at the later sample.
            Self::Activity { idle } => {
                let later = |told: &PlacedRow| {
                    let since_ms = identities.times_ms[told.row];
                    let passed_ms = told.time_ms.saturating_sub(since_ms);
                    optional(idle, told.row).map(|ms| ms.saturating_add(passed_ms))
                };
                let idle: Int64Array = told.iter().map(later).collect();
                with(&whole, "idle_ms", Arc::new(idle))
            }
            // The count of opens belongs to the row's own sample only.
            Self::Files { .. } => {
                let opened = integers(rows, "opens_count")?;
                let once = |told: &PlacedRow| {
                    let is_news = identities.sequences[told.row] == told.sequence;
                    optional(opened, told.row).filter(|_| is_news)
                };
                let opened: Int64Array = told.iter().map(once).collect();
                with(&whole, "opens_count", Arc::new(opened))
            }
            Self::MissingValues { .. } => Ok(whole),
        }
    }
}

fn keys(table: &Table, rows: &RecordBatch) -> Result<Vec<OwnedRow>> {
    let columns = table.key.iter().map(|name| column(rows, name).cloned());
    let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
    let fields = columns
        .iter()
        .map(|c| SortField::new(c.data_type().clone()));
    let converter = RowConverter::new(fields.collect())?;
    let keys = converter.convert_columns(&columns)?;
    Ok(keys.iter().map(|key| key.owned()).collect())
}

/// Returns `rows` with `values` in place of the column `name`.
fn with(rows: &RecordBatch, name: &str, values: ArrayRef) -> Result<RecordBatch> {
    let at = rows.schema_ref().index_of(name)?;
    let mut columns = rows.columns().to_vec();
    columns[at] = values;
    RecordBatch::try_new(rows.schema(), columns)
}

fn column<'a>(rows: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef> {
    rows.column_by_name(name).ok_or_else(|| wrong(name))
}

fn integers<'a>(rows: &'a RecordBatch, name: &str) -> Result<&'a Int64Array> {
    let column = column(rows, name)?.as_primitive_opt::<Int64Type>();
    column.ok_or_else(|| wrong(name))
}

fn flags<'a>(rows: &'a RecordBatch, name: &str) -> Result<&'a BooleanArray> {
    column(rows, name)?
        .as_boolean_opt()
        .ok_or_else(|| wrong(name))
}

fn optional(values: &Int64Array, row: usize) -> Option<i64> {
    values.is_valid(row).then(|| values.value(row))
}

fn wrong(name: &str) -> ArrowError {
    ArrowError::SchemaError(format!("no column {name}, or of another type"))
}
