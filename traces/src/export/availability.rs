//! Times at which memory was available on each host, as two tables in columnar files.
//!
//! ```text
//! periods.parquet   times during which the region was available, and what ended each
//! samples.parquet   for each sample: available and harvestable memory, idle or not, and quotas
//! ```
//!
//! Rows are in the order of the hosts' ids, and of time. Columns, types and units: docs/exports.md.

use super::file::OpenFile;
use super::names::AVAILABILITY;
use super::{ByHost, ExportSummary, Format, folder};
use crate::{ExportError, Result};
use arrow::array::{ArrayRef, BooleanArray, Int64Array, StringArray, TimestampMillisecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use gleaner_schemas::arrow::time_type;
use gleaner_schemas::availability::{
    AvailabilityQuestion, AvailablePeriod, AvailableSample, HostAvailability,
};
use gleaner_schemas::findings::{EndCause, Scope};
use std::collections::HashMap;
use std::iter::repeat_n;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An export of availability; its two files are being written.
pub struct Availability {
    out_dir: PathBuf,
    region_bytes: i64,
    scope: Scope,
    format: Format,
    files: [OpenFile; 2],
    rows: [u64; 2],
}

impl Availability {
    /// Begins an export of the answers to `question`.
    ///
    /// # Errors
    /// [`ExportError::NotEmpty`] for a folder that holds anything but an export, or an error of writing.
    pub fn create(
        out_dir: &Path,
        question: &AvailabilityQuestion,
        format: Format,
        is_compressed: bool,
    ) -> Result<Self> {
        folder::begin(out_dir, format.ending())?;
        let file = |name: &str, schema: SchemaRef| {
            let path = out_dir.join(format!("{name}.{}", format.ending()));
            OpenFile::create(path, &schema, format, is_compressed)
        };
        let [periods, samples] = AVAILABILITY;
        Ok(Self {
            out_dir: out_dir.to_owned(),
            region_bytes: question.region_bytes,
            scope: question.scope,
            format,
            files: [
                file(periods, periods_schema())?,
                file(samples, samples_schema())?,
            ],
            rows: [0; 2],
        })
    }

    fn periods(&self, host: &HostAvailability) -> Vec<ArrayRef> {
        let all = &host.periods;
        let scope = match self.scope {
            Scope::All => "all",
            Scope::Idle => "idle",
        };
        let integer = |of: fn(&AvailablePeriod) -> i64| all.iter().map(of).collect::<Int64Array>();
        vec![
            same(&host.host_id, all.len()),
            same(&host.host_name, all.len()),
            Arc::new(Int64Array::from(vec![self.region_bytes; all.len()])),
            same(scope, all.len()),
            times(all.iter().map(|p| p.from_ms)),
            times(all.iter().map(|p| p.to_ms)),
            Arc::new(integer(|p| p.to_ms.saturating_sub(p.from_ms))),
            flags(all.iter().map(|p| Some(p.is_start_known))),
            Arc::new(StringArray::from_iter(all.iter().map(|p| p.end.map(cause)))),
        ]
    }
}

impl ByHost for Availability {
    fn add(&mut self, host: &HostAvailability) -> Result<()> {
        let columns = [self.periods(host), samples(host)];
        for (at, columns) in columns.into_iter().enumerate() {
            let file = &mut self.files[at];
            let batch = RecordBatch::try_new(Arc::clone(file.schema()), columns);
            let batch = batch.map_err(ExportError::io("write", file.path()))?;
            if batch.num_rows() > 0 {
                self.rows[at] += batch.num_rows() as u64;
                file.write(&batch)?;
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<ExportSummary> {
        let mut exported = ExportSummary::default();
        for (file, rows) in self.files.into_iter().zip(self.rows) {
            exported.add(rows, file.finish()?);
        }
        folder::mark(&self.out_dir, self.format.ending(), true)?;
        Ok(exported)
    }
}

fn samples(host: &HostAvailability) -> Vec<ArrayRef> {
    let all = &host.samples;
    let integer = |of: fn(&AvailableSample) -> Option<i64>| -> ArrayRef {
        Arc::new(all.iter().map(of).collect::<Int64Array>())
    };
    vec![
        same(&host.host_id, all.len()),
        same(&host.host_name, all.len()),
        times(all.iter().map(|s| s.time_ms)),
        flags(all.iter().map(|s| Some(s.follows_gap))),
        integer(|s| Some(s.physical_bytes)),
        integer(|s| Some(s.available_bytes)),
        integer(|s| s.harvestable_bytes),
        flags(all.iter().map(|s| s.is_idle)),
        flags(all.iter().map(|s| s.is_in_idle_period)),
        integer(|s| s.paper_quota_bytes),
        integer(|s| s.quota_bytes),
    ]
}

fn periods_schema() -> SchemaRef {
    schema(vec![
        Field::new("host_id", DataType::Utf8, false),
        Field::new("host_name", DataType::Utf8, false),
        bytes("region_bytes", false),
        Field::new("scope", DataType::Utf8, false),
        Field::new("begin", time_type(), false),
        Field::new("end", time_type(), false),
        unit(Field::new("length_ms", DataType::Int64, false), "ms"),
        Field::new("is_start_known", DataType::Boolean, false),
        Field::new("ended_by", DataType::Utf8, true),
    ])
}

fn samples_schema() -> SchemaRef {
    schema(vec![
        Field::new("host_id", DataType::Utf8, false),
        Field::new("host_name", DataType::Utf8, false),
        Field::new("time", time_type(), false),
        Field::new("follows_gap", DataType::Boolean, false),
        bytes("physical_bytes", false),
        bytes("available_bytes", false),
        bytes("harvestable_bytes", true),
        Field::new("is_idle", DataType::Boolean, true),
        Field::new("is_in_idle_period", DataType::Boolean, true),
        bytes("paper_quota_bytes", true),
        bytes("quota_bytes", true),
    ])
}

fn schema(fields: Vec<Field>) -> SchemaRef {
    Arc::new(Schema::new(fields))
}

fn bytes(name: &str, may_be_absent: bool) -> Field {
    unit(Field::new(name, DataType::Int64, may_be_absent), "bytes")
}

fn unit(field: Field, unit: &str) -> Field {
    field.with_metadata(HashMap::from([("unit".to_owned(), unit.to_owned())]))
}

/// Name of the cause, as in the findings' JSON.
fn cause(end: EndCause) -> &'static str {
    match end {
        EndCause::Owner => "owner",
        EndCause::Load => "load",
        EndCause::Memory => "memory",
        EndCause::SleepOrPower => "sleep_or_power",
        EndCause::Network => "network",
        EndCause::Agent => "agent",
    }
}

fn same(text: &str, rows_count: usize) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(repeat_n(text, rows_count)))
}

fn times(ms: impl Iterator<Item = i64>) -> ArrayRef {
    let times = TimestampMillisecondArray::from_iter_values(ms);
    Arc::new(times.with_timezone("UTC"))
}

fn flags(flags: impl Iterator<Item = Option<bool>>) -> ArrayRef {
    Arc::new(flags.collect::<BooleanArray>())
}
