//! Batches as sent: decoding returns the rows that were encoded, and an untrusted sender's batch can do no harm.

use arrow::array::AsArray;
use arrow::datatypes::{Int64Type, Schema};
use arrow::record_batch::RecordBatch;
use gleaner_dataset::batch::Limits;
use gleaner_dataset::{Batch, BatchError, Identity, RowsBuilder};
use gleaner_schemas::column::{Row, Table, Value};
use gleaner_schemas::renames;
use gleaner_schemas::rows::{GapRow, MissingValueRow, NumaNodeRow, ProcessRow, SampleRow};
use proptest::prelude::*;

const HOST: &str = "00112233445566778899aabbccddeeff";
const DATABASE: &str = "ffeeddccbbaa99887766554433221100";

fn rows<R: Row>(host: &str, database: &str, rows: &[(i64, i64, R)]) -> (Table, RecordBatch) {
    let mut builder = RowsBuilder::new(&R::TABLE);
    for (sequence, time_ms, row) in rows {
        let identity = Identity {
            host_id: host,
            database_id: database,
            sequence: *sequence,
            time_ms: *time_ms,
        };
        builder.push(identity, row.to_values()).unwrap();
    }
    (R::TABLE, builder.finish().unwrap())
}

fn some() -> Vec<(Table, RecordBatch)> {
    let sample = |free| SampleRow {
        mem_free_bytes: free,
        ..SampleRow::default()
    };
    let process = ProcessRow {
        name: "cc1".to_owned(),
        ..ProcessRow::default()
    };
    vec![
        rows(
            HOST,
            DATABASE,
            &[(7, 1000, sample(70)), (9, 91_000, sample(90))],
        ),
        rows(
            HOST,
            DATABASE,
            &[(7, 1000, process.clone()), (9, 91_000, process)],
        ),
    ]
}

fn decoded(body: &[u8]) -> Result<Batch, BatchError> {
    Batch::decode(body, &Limits::default())
}

fn detail(tables: &[(Table, RecordBatch)]) -> String {
    decoded(&Batch::encode(tables).unwrap())
        .unwrap_err()
        .to_string()
}

#[test]
fn a_batch_comes_back_as_it_went() {
    let mut sent = some();
    sent.push(rows::<GapRow>(HOST, DATABASE, &[])); // a table without rows
    let batch = decoded(&Batch::encode(&sent).unwrap()).unwrap();
    assert_eq!(
        (batch.host_id.as_str(), batch.database_id.as_str()),
        (HOST, DATABASE)
    );
    assert_eq!((batch.first_sequence, batch.last_sequence), (7, 9));
    assert_eq!(batch.rows_count(), 4);
    sent.pop();
    for ((sent_table, sent_rows), (table, rows)) in sent.iter().zip(&batch.tables) {
        assert_eq!(sent_table.name, table.name);
        assert_eq!(sent_rows, rows);
    }
}

/// `rows` of `table`, with the names that schema version 6 sent.
fn as_version_6(table: &Table, rows: &RecordBatch) -> RecordBatch {
    let mut schema = rows.schema_ref().as_ref().clone();
    schema.metadata.insert("gleaner.schema_version", "6");
    for rename in renames::TABLES.iter().filter(|r| r.now == table.name) {
        schema.metadata.insert("gleaner.table", rename.before);
    }
    let before = |name: &str| {
        let mut of_table = renames::COLUMNS.iter().filter(|r| r.table == table.name);
        let rename = of_table.find(|rename| rename.now == name);
        rename.map_or(name.to_owned(), |rename| rename.before.to_owned())
    };
    let fields = schema.fields().iter();
    let fields = fields.map(|field| field.as_ref().clone().with_name(before(field.name())));
    let schema = Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata.clone());
    RecordBatch::try_new(schema.into(), rows.columns().to_vec()).unwrap()
}

#[test]
fn a_batch_of_version_6_is_read_under_the_present_names() {
    let mut sent = some();
    let missing = MissingValueRow {
        item: "files".to_owned(),
        missing_count: 3,
        ..MissingValueRow::default()
    };
    sent.push(rows(HOST, DATABASE, &[(7, 1000, missing)]));
    let node = NumaNodeRow {
        numa_node: 1,
        reserve_bytes: Some(5),
        ..NumaNodeRow::default()
    };
    sent.push(rows(HOST, DATABASE, &[(7, 1000, node)]));
    let older: Vec<_> = sent
        .iter()
        .map(|(table, rows)| (*table, as_version_6(table, rows)))
        .collect();
    let names = |at: usize| older[at].1.schema_ref();
    assert!(names(0).index_of("files_whole").is_ok() && names(3).index_of("node").is_ok());
    assert_eq!(names(2).metadata["gleaner.table"], "absences");
    let batch = decoded(&Batch::encode(&older).unwrap()).unwrap();
    assert_eq!(batch.tables.len(), sent.len());
    for ((sent_table, sent_rows), (table, rows)) in sent.iter().zip(&batch.tables) {
        assert_eq!(sent_table.name, table.name);
        assert_eq!(sent_rows, rows);
    }
}

#[test]
fn an_older_batch_lacks_columns_and_a_newer_is_refused() {
    let (table, rows) = some().remove(0);
    let kept: Vec<usize> = (0..rows.num_columns())
        .filter(|&i| rows.schema_ref().field(i).name() != "zram_bytes")
        .collect();
    let older = rows.project(&kept).unwrap();
    let batch = decoded(&Batch::encode(&[(table, older)]).unwrap()).unwrap();
    let read = &batch.tables[0].1;
    assert_eq!(read.column_by_name("zram_bytes").unwrap().null_count(), 2);
    let free = read.column_by_name("mem_free_bytes").unwrap();
    assert_eq!(free.as_primitive::<Int64Type>().values(), &[70, 90]);

    let without: Vec<usize> = (0..rows.num_columns())
        .filter(|&i| rows.schema_ref().field(i).name() != "mem_free_bytes")
        .collect();
    let text = detail(&[(table, rows.project(&without).unwrap())]);
    assert!(text.contains("mem_free_bytes"), "{text}");

    // The column may be absent in a dataset, for hosts without an agent, but never in an agent's batch.
    let mut foreign = RowsBuilder::new(&SampleRow::TABLE);
    let identity = Identity {
        host_id: HOST,
        database_id: DATABASE,
        sequence: 1,
        time_ms: 0,
    };
    let known = [
        ("is_complete_state", Value::Flag(false)),
        ("physical_bytes", Value::Integer(1)),
        ("available_bytes", Value::Integer(1)),
    ];
    foreign.push_known(identity, &known).unwrap();
    let text = detail(&[(SampleRow::TABLE, foreign.finish().unwrap())]);
    assert!(text.contains("balloon_bytes is absent"), "{text}");

    let mut schema = rows.schema_ref().as_ref().clone();
    schema.metadata.insert("gleaner.schema_version", "4000");
    let newer = RecordBatch::try_new(schema.into(), rows.columns().to_vec()).unwrap();
    let refused = decoded(&Batch::encode(&[(table, newer)]).unwrap()).unwrap_err();
    assert_eq!(refused, BatchError::Newer { found: 4000 });
}

#[test]
fn what_is_no_batch_is_told_why() {
    let gap = |host, database, sequence, time_ms| {
        rows(host, database, &[(sequence, time_ms, GapRow::default())])
    };
    let cases = [
        (vec![gap("my-host", DATABASE, 1, 0)], "host id is not 32"),
        (
            vec![gap(HOST, &DATABASE.to_uppercase(), 1, 0)],
            "database id is not 32",
        ),
        (vec![gap(HOST, DATABASE, 0, 0)], "sequence below 1"),
        (vec![gap(HOST, DATABASE, 1, -1)], "a time outside"),
        (vec![gap(HOST, DATABASE, 1, i64::MAX)], "a time outside"),
        (
            vec![gap(HOST, DATABASE, 1, 0), gap(DATABASE, DATABASE, 1, 0)],
            "several hosts",
        ),
        (
            vec![gap(HOST, DATABASE, 1, 0), gap(HOST, HOST, 1, 0)],
            "several databases",
        ),
        (vec![], "no rows"),
    ];
    for (tables, why) in cases {
        let text = detail(&tables);
        assert!(text.contains(why), "{text}, not {why}");
    }
    for (body, why) in [
        (&b"GET / HTTP/1.1"[..], "cannot be decompressed"),
        (
            &zstd::encode_all(&b"not an Arrow stream"[..], 0).unwrap(),
            "not an Arrow IPC stream",
        ),
    ] {
        let text = decoded(body).unwrap_err().to_string();
        assert!(text.contains(why), "{text}, not {why}");
    }
}

#[test]
fn a_bomb_is_stopped_at_the_limit() {
    let bomb = zstd::encode_all(std::io::repeat(0).take(1 << 30), 1).unwrap();
    assert!(bomb.len() < 100_000);
    let limits = Limits {
        content_bytes: 1 << 20,
        ..Limits::default()
    };
    let refused = Batch::decode(&bomb, &limits).unwrap_err();
    assert_eq!(
        refused,
        BatchError::TooLarge {
            limit_bytes: 1 << 20
        }
    );
    let limits = Limits {
        compressed_bytes: bomb.len() - 1,
        ..Limits::default()
    };
    assert!(matches!(
        Batch::decode(&bomb, &limits),
        Err(BatchError::TooLarge { .. })
    ));
}

#[test]
fn rows_that_compress_themselves_are_not_decompressed() {
    use arrow::ipc::CompressionType;
    use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
    let (_, rows) = some().remove(0);
    let options = IpcWriteOptions::default()
        .try_with_compression(Some(CompressionType::ZSTD))
        .unwrap();
    let mut content = Vec::new();
    let mut writer =
        StreamWriter::try_new_with_options(&mut content, rows.schema_ref(), options).unwrap();
    writer.write(&rows).unwrap();
    writer.finish().unwrap();
    drop(writer);
    let text = decoded(&zstd::encode_all(content.as_slice(), 0).unwrap())
        .unwrap_err()
        .to_string();
    assert!(text.contains("compressed by themselves"), "{text}");
}

use std::io::Read;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("GLEANER_FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(500)
    ))]

    /// A batch with altered, removed and inserted bytes gives an error or a batch. It never causes a panic,
    /// nor much use of memory.
    #[test]
    fn an_altered_batch_is_refused_or_read(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..6)
    ) {
        let mut content = zstd::decode_all(Batch::encode(&some()).unwrap().as_slice()).unwrap();
        for (place, byte, kind) in changes {
            let at = place.index(content.len());
            match kind {
                0 => content[at] = byte,
                1 => content[at] ^= 1 << (byte % 8),
                2 => drop(content.drain(at..(at + usize::from(byte)).min(content.len()))),
                _ => content.insert(at, byte),
            }
            if content.is_empty() {
                break;
            }
        }
        let body = zstd::encode_all(content.as_slice(), 0).unwrap();
        if let Ok(batch) = decoded(&body) {
            prop_assert!(batch.rows_count() > 0);
        }
    }
}
