//! Mutations of batches that know the batches' structure. Each batch is rejected or accepted, and the memory
//! for decoding is bounded by the batch's content.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod allocated;

use arrow::array::{Array, ArrayRef, Int64Array, StringArray, TimestampMillisecondArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::ipc::writer::StreamWriter;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use gleaner_dataset::batch::{Limits, MOST_FILES};
use gleaner_dataset::{Batch, BatchError, Identity, RowsBuilder};
use gleaner_schemas::column::{Row, Table};
use gleaner_schemas::rows::{HostRow, ProcessRow, SampleRow};
use proptest::prelude::*;
use std::sync::Arc;

const HOST: &str = "00112233445566778899aabbccddeeff";
const DATABASE: &str = "ffeeddccbbaa99887766554433221100";
/// The day 2026-11-20 UTC, counted from 1970-01-01.
const DAY: i64 = 20_777;
const DAY_MS: i64 = 86_400_000;
/// Bytes that decoding may use in addition to `PER_BYTE` for each byte of content.
const SPARE_BYTES: usize = 4 << 20;
/// Bytes that decoding may use per byte of content: for the content itself while it grows, for arrays, and
/// four bytes for absent columns.
const PER_BYTE: usize = 16;

/// `count` rows of a table.
fn rows<R: Row + Default>(count: usize) -> (Table, RecordBatch) {
    let mut builder = RowsBuilder::new(&R::TABLE);
    for sequence in 1..=count {
        let identity = Identity {
            host_id: HOST,
            database_id: DATABASE,
            sequence: sequence as i64,
            time_ms: DAY * DAY_MS,
        };
        builder.push(identity, R::default().to_values()).unwrap();
    }
    (R::TABLE, builder.finish().unwrap())
}

fn some(table: usize, count: usize) -> RecordBatch {
    match table {
        0 => rows::<SampleRow>(count).1,
        1 => rows::<ProcessRow>(count).1,
        _ => rows::<HostRow>(count).1,
    }
}

/// A mutation of a batch.
#[derive(Clone, Debug)]
enum Mutation {
    /// Removes all columns from this index on.
    Keep(usize),
    /// Removes the column at this index.
    Drop(usize),
    /// Removes all columns and claims this many rows.
    Claim(u32),
    /// Turns a column of numbers into one of texts, or the reverse.
    Retype(usize),
    /// Gives a column another name.
    Rename(usize, String),
    /// Gives every value of a text column this many bytes.
    Text(usize, usize),
    /// Sets the time of each row to this many days after the previous row.
    Days(i64),
    /// Gives all rows this time.
    Time(i64),
    /// Gives all rows this sequence number.
    Sequence(i64),
    /// Repeats the rows this many times, each time in a separate message.
    Repeat(usize),
    /// Adds this many messages without rows.
    Empty(usize),
    /// Sets another table name or another schema version.
    Label(String, String),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let version = prop_oneof![
        Just("1"),
        Just("0"),
        Just("4294967295"),
        Just("-1"),
        Just("x")
    ];
    let name = prop_oneof![
        Just("samples"),
        Just("processes"),
        Just("hosts"),
        Just("clocks"),
        Just("../x")
    ];
    prop_oneof![
        (0..40_usize).prop_map(Mutation::Keep),
        (0..40_usize).prop_map(Mutation::Drop),
        any::<u32>().prop_map(Mutation::Claim),
        (0..40_usize).prop_map(Mutation::Retype),
        (0..40_usize, "[a-z_]{0,12}").prop_map(|(at, name)| Mutation::Rename(at, name)),
        (0..40_usize, 0..40_000_usize).prop_map(|(at, bytes)| Mutation::Text(at, bytes)),
        (-400..400_i64).prop_map(Mutation::Days),
        any::<i64>().prop_map(Mutation::Time),
        any::<i64>().prop_map(Mutation::Sequence),
        (0..60_usize).prop_map(Mutation::Repeat),
        (0..2000_usize).prop_map(Mutation::Empty),
        (name, version).prop_map(|(name, version)| Mutation::Label(name.into(), version.into())),
    ]
}

/// A stream that is being built.
struct Stream {
    schema: Schema,
    columns: Vec<ArrayRef>,
    rows: usize,
    repeats: usize,
    empties: usize,
}

impl Stream {
    fn of(rows: &RecordBatch) -> Self {
        Self {
            schema: rows.schema().as_ref().clone(),
            columns: rows.columns().to_vec(),
            rows: rows.num_rows(),
            repeats: 1,
            empties: 0,
        }
    }

    fn set(&mut self, at: usize, name: Option<&str>, column: ArrayRef) {
        let mut fields: Vec<Field> = self
            .schema
            .fields()
            .iter()
            .map(|f| f.as_ref().clone())
            .collect();
        let name = name.map_or_else(|| fields[at].name().clone(), str::to_owned);
        fields[at] = Field::new(name, column.data_type().clone(), true);
        self.schema = Schema::new_with_metadata(fields, self.schema.metadata().clone());
        self.columns[at] = column;
    }

    fn leave(&mut self, is_kept: impl Fn(usize) -> bool) {
        let kept: Vec<usize> = (0..self.columns.len()).filter(|at| is_kept(*at)).collect();
        self.schema = self.schema.project(&kept).unwrap();
        self.columns = kept
            .iter()
            .map(|at| Arc::clone(&self.columns[*at]))
            .collect();
    }

    /// Index of the column with this name, if it still exists.
    fn named(&self, name: &str) -> Option<usize> {
        self.schema.index_of(name).ok()
    }

    fn times(&mut self, time_of: impl Fn(i64) -> i64) {
        let Some(at) = self.named("time") else { return };
        let DataType::Timestamp(_, zone) = self.schema.field(at).data_type().clone() else {
            return;
        };
        let times = (0..self.rows as i64).map(time_of);
        let times = TimestampMillisecondArray::from_iter_values(times).with_timezone_opt(zone);
        self.set(at, None, Arc::new(times));
    }

    fn apply(&mut self, mutation: &Mutation) {
        let within = |at: usize| at % self.columns.len().max(1);
        match mutation {
            Mutation::Keep(count) => self.leave(|at| at < *count),
            Mutation::Drop(which) => {
                let which = within(*which);
                self.leave(|at| at != which);
            }
            Mutation::Claim(rows) => {
                self.leave(|_| false);
                self.rows = *rows as usize;
            }
            Mutation::Repeat(count) => self.repeats = *count,
            Mutation::Empty(count) => self.empties = *count,
            Mutation::Label(table, version) => {
                let mut metadata = self.schema.metadata().clone();
                metadata.insert("gleaner.table", table.as_str());
                metadata.insert("gleaner.schema_version", version.as_str());
                self.schema = self.schema.clone().with_metadata(metadata);
            }
            _ if self.columns.is_empty() => {}
            Mutation::Retype(at) => {
                let at = within(*at);
                let column: ArrayRef = if self.columns[at].data_type() == &DataType::Utf8 {
                    Arc::new(Int64Array::from(vec![7; self.rows]))
                } else {
                    Arc::new(StringArray::from(vec!["7"; self.rows]))
                };
                self.set(at, None, column);
            }
            Mutation::Rename(at, name) => {
                let at = within(*at);
                let column = Arc::clone(&self.columns[at]);
                self.set(at, Some(name), column);
            }
            Mutation::Text(at, bytes) => {
                let at = within(*at);
                let text = "t".repeat(*bytes);
                self.set(
                    at,
                    None,
                    Arc::new(StringArray::from(vec![text.as_str(); self.rows])),
                );
            }
            Mutation::Days(step) => self.times(|row| (DAY + row * step) * DAY_MS),
            Mutation::Time(time_ms) => self.times(|_| *time_ms),
            Mutation::Sequence(sequence) => {
                if let Some(at) = self.named("sequence") {
                    self.set(
                        at,
                        None,
                        Arc::new(Int64Array::from(vec![*sequence; self.rows])),
                    );
                }
            }
        }
    }

    fn write(&self, content: &mut Vec<u8>) {
        let schema = Arc::new(self.schema.clone());
        let of = |columns: Vec<ArrayRef>, rows| {
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options).unwrap()
        };
        let rows = of(self.columns.clone(), self.rows);
        let empty = of(self.columns.iter().map(|c| c.slice(0, 0)).collect(), 0);
        let mut writer = StreamWriter::try_new(content, &schema).unwrap();
        for _ in 0..self.empties {
            writer.write(&empty).unwrap();
        }
        for _ in 0..self.repeats {
            writer.write(&rows).unwrap();
        }
        writer.finish().unwrap();
    }
}

/// Decodes `content`; returns the result, and the maximum memory used.
fn decoded(content: &[u8]) -> (Result<Batch, BatchError>, usize) {
    let body = zstd::encode_all(content, 1).unwrap();
    allocated::at_most(|| Batch::decode(&body, &Limits::default()))
}

#[track_caller]
fn is_bounded(content: &[u8]) -> Result<Batch, BatchError> {
    let (decoded, peak_bytes) = decoded(content);
    let most = content.len() * PER_BYTE + SPARE_BYTES;
    assert!(
        peak_bytes <= most,
        "{peak_bytes} bytes for {} of content",
        content.len()
    );
    if let Ok(batch) = &decoded {
        assert!(batch.table_days.len() <= MOST_FILES);
    }
    decoded
}

#[test]
fn the_measure_counts_what_is_allocated() {
    let (_, peak_bytes) = allocated::at_most(|| vec![1_u8; 3 << 20]);
    assert!((3 << 20..4 << 20).contains(&peak_bytes), "{peak_bytes}");
}

#[test]
fn rows_without_columns_take_no_memory() {
    for rows in [1, 1 << 22, u32::MAX] {
        let mut stream = Stream::of(&some(0, 1));
        stream.apply(&Mutation::Claim(rows));
        let mut content = Vec::new();
        stream.write(&mut content);
        let refused = is_bounded(&content).unwrap_err().to_string();
        assert!(refused.contains("there is no column host_id"), "{refused}");
    }
}

#[test]
fn rows_of_identity_columns_alone_take_no_more_than_their_content_allows() {
    let mut stream = Stream::of(&some(0, 20_000));
    stream.apply(&Mutation::Keep(4));
    let mut content = Vec::new();
    stream.write(&mut content);
    let refused = is_bounded(&content).unwrap_err().to_string();
    assert!(refused.contains("lack more columns"), "{refused}");
}

#[test]
fn a_day_a_row_is_refused() {
    let mut stream = Stream::of(&some(1, MOST_FILES + 1));
    let mut content = Vec::new();
    stream.apply(&Mutation::Days(1));
    stream.write(&mut content);
    let refused = is_bounded(&content).unwrap_err().to_string();
    assert!(refused.contains("days and tables"), "{refused}");
    let mut stream = Stream::of(&some(1, MOST_FILES));
    let mut content = Vec::new();
    stream.apply(&Mutation::Days(1));
    stream.write(&mut content);
    assert_eq!(is_bounded(&content).unwrap().table_days.len(), MOST_FILES);
}

#[test]
fn long_texts_are_refused() {
    let mut stream = Stream::of(&some(1, 3));
    let at = stream.named("name").unwrap();
    stream.apply(&Mutation::Text(at, (16 << 10) + 1));
    let mut content = Vec::new();
    stream.write(&mut content);
    let refused = is_bounded(&content).unwrap_err().to_string();
    assert!(refused.contains("a text of more than"), "{refused}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn mutated_batches_are_refused_or_taken_in_within_bounds(
        streams in prop::collection::vec(
            (0..3_usize, 1..300_usize, prop::collection::vec(mutation(), 0..4)),
            1..4,
        ),
    ) {
        let mut content = Vec::new();
        for (table, count, mutations) in &streams {
            let mut stream = Stream::of(&some(*table, *count));
            for mutation in mutations {
                stream.apply(mutation);
            }
            if stream.repeats * stream.rows * stream.columns.len() < 1 << 20 {
                stream.write(&mut content);
            }
        }
        let _ = is_bounded(&content);
    }
}
