//! Makes batches for the tests, whose values follow from the rows' identity, and reads the rows of a dataset.

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use arrow::record_batch::RecordBatch;
use gleaner_dataset::{Batch, Dataset, Identity, RowsBuilder};
use gleaner_schemas::column::{Row, Table};
use gleaner_schemas::rows::{GapRow, HostRow, ProcessRow, SampleRow};
use std::path::Path;

/// 2026-11-20 23:59:00 UTC. From a minute later on, rows belong to the next day.
pub(crate) const START_MS: i64 = 1_795_219_140_000;
pub(crate) const PROCESSES: i64 = 3;

/// Makes an id of 32 digits for a host or database.
pub(crate) fn id(n: u64) -> String {
    format!("{n:032x}")
}

/// Rows of the tables `samples` and `processes` for the records `sequences` of a host's database.
pub(crate) fn tables(
    host: &str,
    database: &str,
    sequences: impl IntoIterator<Item = i64>,
) -> Vec<(Table, RecordBatch)> {
    tables_from(START_MS, host, database, sequences)
}

/// Like [`tables`], but the first record is at another time.
pub(crate) fn tables_from(
    start_ms: i64,
    host: &str,
    database: &str,
    sequences: impl IntoIterator<Item = i64>,
) -> Vec<(Table, RecordBatch)> {
    let mut samples = RowsBuilder::new(&SampleRow::TABLE);
    let mut processes = RowsBuilder::new(&ProcessRow::TABLE);
    for sequence in sequences {
        let identity = Identity {
            host_id: host,
            database_id: database,
            sequence,
            time_ms: start_ms + sequence * 20_000,
        };
        let sample = SampleRow {
            mem_free_bytes: sequence * 7,
            ..SampleRow::default()
        };
        samples.push(identity, sample.to_values()).unwrap();
        for pid in 1..=PROCESSES {
            let process = ProcessRow {
                pid,
                name: "cc1".to_owned(),
                ..ProcessRow::default()
            };
            processes.push(identity, process.to_values()).unwrap();
        }
    }
    vec![
        (SampleRow::TABLE, samples.finish().unwrap()),
        (ProcessRow::TABLE, processes.finish().unwrap()),
    ]
}

/// Makes a batch of these [`tables`], as an agent sends it.
pub(crate) fn body(
    host: &str,
    database: &str,
    sequences: impl IntoIterator<Item = i64>,
) -> Vec<u8> {
    Batch::encode(&tables(host, database, sequences)).unwrap()
}

/// Makes a batch with one sample of a host.
pub(crate) fn sample(
    host: &str,
    database: &str,
    sequence: i64,
    time_ms: i64,
    row: SampleRow,
) -> Vec<u8> {
    let identity = Identity {
        host_id: host,
        database_id: database,
        sequence,
        time_ms,
    };
    let mut samples = RowsBuilder::new(&SampleRow::TABLE);
    samples.push(identity, row.to_values()).unwrap();
    Batch::encode(&[(SampleRow::TABLE, samples.finish().unwrap())]).unwrap()
}

/// Makes a batch with a host's inventory and a gap.
pub(crate) fn inventory(host: &str, database: &str, sequence: i64) -> Vec<u8> {
    inventory_of(host, database, sequence, "otter")
}

/// Like [`inventory`], but the host has this name.
pub(crate) fn inventory_of(host: &str, database: &str, sequence: i64, name: &str) -> Vec<u8> {
    let identity = Identity {
        host_id: host,
        database_id: database,
        sequence,
        time_ms: START_MS,
    };
    let mut hosts = RowsBuilder::new(&HostRow::TABLE);
    let row = HostRow {
        host_name: name.to_owned(),
        agent_version: "0.1.0".to_owned(),
        sample_interval_ms: 90_000,
        ..HostRow::default()
    };
    hosts.push(identity, row.to_values()).unwrap();
    let mut gaps = RowsBuilder::new(&GapRow::TABLE);
    let row = GapRow {
        cause: "sleep".to_owned(),
        ..GapRow::default()
    };
    gaps.push(identity, row.to_values()).unwrap();
    Batch::encode(&[
        (HostRow::TABLE, hosts.finish().unwrap()),
        (GapRow::TABLE, gaps.finish().unwrap()),
    ])
    .unwrap()
}

/// Sequence numbers of a host's samples, in the order of the dataset. Checks that each sample has its values
/// and its processes.
pub(crate) fn sequences(dataset: &Path, host: &str) -> Vec<i64> {
    let dataset = Dataset::open(dataset).unwrap();
    let rows = dataset
        .read_host(&SampleRow::TABLE, host, &["sequence", "mem_free_bytes"])
        .unwrap();
    let values = |column: usize| rows.column(column).as_primitive::<Int64Type>().values();
    assert!(
        values(0)
            .iter()
            .zip(values(1))
            .all(|(s, free)| s * 7 == *free)
    );
    let processes = dataset
        .read_host(&ProcessRow::TABLE, host, &["sequence", "pid"])
        .unwrap();
    let mut named: Vec<(i64, i64)> = (0..processes.num_rows())
        .map(|row| {
            let value = |column: usize| {
                processes
                    .column(column)
                    .as_primitive::<Int64Type>()
                    .value(row)
            };
            (value(0), value(1))
        })
        .collect();
    let whole = |s: &i64| {
        (1..=PROCESSES)
            .map(move |pid| (*s, pid))
            .collect::<Vec<_>>()
    };
    let mut expected: Vec<_> = values(0).iter().flat_map(whole).collect();
    named.sort_unstable();
    expected.sort_unstable();
    assert_eq!(named, expected, "processes of {host}");
    values(0).to_vec()
}
