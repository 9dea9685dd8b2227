//! Changes a dataset as its collector does, for tests that are not written in Rust:
//!
//! - `steps DATASET append HOST` adds rows of a new host to each day
//! - `steps DATASET merge` merges all files of each table and day
//! - `steps DATASET retire` drops the first day

use gleaner_dataset::{Compaction, Identity, Policy, RowsBuilder, Writer};
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::{DATASET_TABLES, ProcessRow, SampleRow};
use std::collections::BTreeSet;
use std::error::Error;
use std::time::{Duration, SystemTime};

const DAY_MS: i64 = 86_400_000;
const ROWS: i64 = 50;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let [dataset, step @ ..] = &args[..] else {
        return Err("usage: steps DATASET append HOST|merge|retire".into());
    };
    let mut writer = Writer::open(dataset)?;
    match step {
        ["append", host] => append(&mut writer, host),
        ["merge"] => merge(&mut writer),
        ["retire"] => retire(&mut writer),
        _ => Err("usage: steps DATASET append HOST|merge|retire".into()),
    }
}

/// First moments of the days with samples, ms since 1970-01-01 UTC.
fn days_ms(writer: &Writer) -> BTreeSet<i64> {
    let files = writer.manifest().files.iter();
    let samples = files.filter(|file| file.table == SampleRow::TABLE.name);
    samples
        .map(|file| file.first_time_ms.div_euclid(DAY_MS) * DAY_MS)
        .collect()
}

fn append(writer: &mut Writer, host_id: &str) -> Result<(), Box<dyn Error>> {
    let mut samples = RowsBuilder::new(&SampleRow::TABLE);
    let mut processes = RowsBuilder::new(&ProcessRow::TABLE);
    let times = days_ms(writer).into_iter();
    let times = times.flat_map(|day_ms| (0..ROWS).map(move |minute| day_ms + minute * 60_000));
    for (time_ms, sequence) in times.zip(1..) {
        let identity = Identity {
            host_id,
            database_id: "database",
            sequence,
            time_ms,
        };
        let sample = SampleRow {
            mem_free_bytes: sequence << 20,
            load5: Some(0.5),
            ..SampleRow::default()
        };
        let process = ProcessRow {
            pid: sequence,
            name: format!("program {sequence}"),
            ..ProcessRow::default()
        };
        samples.push(identity, sample.to_values())?;
        processes.push(identity, process.to_values())?;
    }
    writer.append(&SampleRow::TABLE, samples.finish()?)?;
    writer.append(&ProcessRow::TABLE, processes.finish()?)?;
    writer.seal()?;
    Ok(())
}

fn merge(writer: &mut Writer) -> Result<(), Box<dyn Error>> {
    let compaction = Compaction {
        fan: 1_000_000, // however different the files' sizes are
        quiet: Duration::ZERO,
        ..Compaction::default()
    };
    let later = SystemTime::now() + Duration::from_secs(2 * 86_400);
    let mut merged = 0;
    while let Some(step) = writer.compact_step(&compaction, later)? {
        merged += step.merged_files;
    }
    match merged {
        0 => Err("nothing to merge".into()),
        _ => Ok(()),
    }
}

fn retire(writer: &mut Writer) -> Result<(), Box<dyn Error>> {
    let first_ms = *days_ms(writer).first().ok_or("no samples")?;
    let policy = Policy {
        keep_days: DATASET_TABLES
            .iter()
            .map(|t| (t.name.to_owned(), 1))
            .collect(),
        ..Policy::default()
    };
    // The second day is a day ago, and the first one two days.
    let now = Duration::from_millis(u64::try_from(first_ms + 2 * DAY_MS)?);
    let now = SystemTime::UNIX_EPOCH + now;
    let mut dropped = 0;
    while let Some(step) = writer.retain_step(&policy, now)? {
        dropped += step.files;
    }
    match dropped {
        0 => Err("nothing to drop".into()),
        _ => Ok(()),
    }
}
