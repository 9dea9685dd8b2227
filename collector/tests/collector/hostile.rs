//! Tests batches made to do harm: memory and files stay limited, the batches are refused with a reason, and
//! other hosts are served.

use crate::made::{START_MS, body, id, inventory_of, sample, sequences, tables};
use crate::running::{Collector, agent};
use arrow::datatypes::Schema;
use arrow::ipc::writer::StreamWriter;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use gleaner_collector::hosts::{AdmissionError, Hosts};
use gleaner_collector::journal::Header;
use gleaner_dataset::Batch;
use gleaner_harness::peak_bytes;
use gleaner_schemas::rows::SampleRow;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

const DAY_MS: i64 = 86_400_000;

/// Makes a batch with this many rows and no columns.
fn without_columns(rows: usize) -> Vec<u8> {
    let (_, like) = tables(&id(1), &id(2), 1..=1).remove(0);
    let schema = Arc::new(Schema::new_with_metadata(
        arrow::datatypes::Fields::empty(),
        like.schema_ref().metadata().clone(),
    ));
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let rows = RecordBatch::try_new_with_options(Arc::clone(&schema), vec![], &options).unwrap();
    let mut content = Vec::new();
    let mut writer = StreamWriter::try_new(&mut content, &schema).unwrap();
    writer.write(&rows).unwrap();
    writer.finish().unwrap();
    drop(writer);
    zstd::encode_all(content.as_slice(), 3).unwrap()
}

#[track_caller]
fn refused(collector: &Collector, body: &[u8], why: &str) {
    let (status, said) = collector.send(body);
    assert_eq!(status, 400, "{said}");
    let said = said.to_string();
    assert!(said.contains(why) && said.len() < 500, "{said}");
}

#[test]
fn a_small_batch_of_very_many_rows_takes_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "");
    assert_eq!(collector.send(&body(&id(1), &id(2), 1..=1)).0, 200);
    let before = peak_bytes(collector.id());
    let batch = without_columns(1 << 22);
    assert!(batch.len() < 1000, "{}", batch.len());
    refused(&collector, &batch, "there is no column host_id");
    let grown = peak_bytes(collector.id()).saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes more"); // without the limit it was 2.6 GiB
    assert_eq!(collector.send(&body(&id(1), &id(2), 2..=2)).0, 200);
}

#[test]
fn dates_beyond_reason_and_a_day_a_row_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "");
    let at = |time_ms| sample(&id(1), &id(2), 1, time_ms, SampleRow::default());
    refused(&collector, &at(0), "before 2000");
    refused(&collector, &at(4_102_444_800_000), "a year ahead"); // the year 2100
    let mut days = Vec::new();
    for sequence in 1..=1000 {
        let time_ms = START_MS - sequence * DAY_MS;
        let one = crate::made::tables_from(time_ms, &id(1), &id(2), [sequence]);
        days.push(one.into_iter().next().unwrap());
    }
    refused(
        &collector,
        &Batch::encode(&days).unwrap(),
        "more than 512 days and tables",
    );
    assert_eq!(collector.get("/v1/status").1["journal_bytes"], 0);
    assert_eq!(collector.send(&Batch::encode(&days[..100]).unwrap()).0, 200);
}

/// If the sender's clock agrees with the collector's, the old date is wrong for good. If the clocks differ,
/// either may be wrong.
#[test]
fn a_misdated_record_is_refused_for_good_once_the_clocks_agree() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now_ms = i64::try_from(now.as_millis()).unwrap();
    let send = |time_ms, sent_ms: i64| {
        let batch = sample(&id(1), &id(2), 1, time_ms, SampleRow::default());
        let request = agent().post(&format!("{}/v1/batches", collector.url));
        let request = request.header("Gleaner-Sent-Ms", sent_ms.to_string());
        request.send(&batch[..]).unwrap().status().as_u16()
    };
    for time_ms in [0, 4_102_444_800_000] {
        assert_eq!(send(time_ms, now_ms), 422);
        assert_eq!(send(time_ms, time_ms), 400);
    }
    assert_eq!(collector.get("/v1/status").1["journal_bytes"], 0);
    assert_eq!(send(START_MS, now_ms), 200);
}

#[test]
fn texts_and_databases_of_a_host_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "");
    let named = |name: &str| inventory_of(&id(1), &id(2), 1, name);
    refused(&collector, &named(&"n".repeat(10_000)), "column host_name");
    refused(&collector, &named(&"n".repeat(1 << 20)), "column host_name");
    assert_eq!(collector.send(&named("ws12")).0, 200);
    assert!(!collector.get("/metrics").1.to_string().contains("nnnn"));

    let hosts = Hosts::open(&folder.path().join("hosts.json")).unwrap();
    let header = |database: u64| Header {
        host_id: id(1),
        database_id: id(database),
        first_sequence: 1,
        last_sequence: 1,
        rows_count: 1,
        received_time_ms: 0,
        skew_ms: None,
    };
    let admit = |database| hosts.admit(&header(database), BTreeSet::new());
    let mut admitted = 0;
    while admit(admitted).is_ok() {
        hosts.durable(&header(admitted));
        admitted += 1;
        assert!(admitted <= 10_000, "databases of a host have no bound");
    }
    assert!(matches!(
        admit(admitted),
        Err(AdmissionError::Databases { .. })
    ));
    assert_eq!(admit(0), Ok(())); // a known database is still admitted
}

#[test]
fn files_of_a_host_between_two_seals_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let hosts = Hosts::open(&folder.path().join("hosts.json")).unwrap();
    let header = |host: u64| Header {
        host_id: id(host),
        database_id: id(9),
        first_sequence: 1,
        last_sequence: 1,
        rows_count: 1,
        received_time_ms: 0,
        skew_ms: None,
    };
    let days = |from: i64| (from..from + 500).map(|day| ("samples", day)).collect();
    let mut day = 0;
    while hosts.admit(&header(1), days(day)).is_ok() {
        day += 500;
        assert!(day <= 100_000, "files of a host have no bound");
    }
    assert!(matches!(
        hosts.admit(&header(1), days(day)),
        Err(AdmissionError::Files { .. })
    ));
    assert_eq!(hosts.admit(&header(1), days(0)), Ok(())); // the files of these days are counted already
    assert_eq!(hosts.admit(&header(2), days(day)), Ok(())); // another host has its own limit
}

/// Makes an entry in the form of an earlier release's journal.
fn entry(header: &Header, body: &[u8]) -> Vec<u8> {
    let header = serde_json::to_vec(header).unwrap();
    let mut hash = [0; 16];
    let mut hasher = blake3::Hasher::new();
    hasher
        .update(&header)
        .update(body)
        .finalize_xof()
        .fill(&mut hash);
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap().to_le_bytes();
    [
        b"GLEANJ1\n".as_slice(),
        &length(&header),
        &length(body),
        &hash,
        &header,
        body,
    ]
    .concat()
}

#[test]
fn a_bad_entry_of_the_journal_is_set_aside_and_the_others_are_sealed() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("data/journal");
    std::fs::create_dir_all(&journal).unwrap();
    let header = |host: u64| Header {
        host_id: id(host),
        database_id: id(9),
        first_sequence: 1,
        last_sequence: 1,
        rows_count: 4,
        received_time_ms: START_MS,
        skew_ms: None,
    };
    let segment = [
        entry(&header(1), &body(&id(1), &id(9), 1..=2)),
        entry(&header(2), &without_columns(1 << 22)),
        entry(&header(3), &body(&id(3), &id(9), 1..=3)),
    ];
    std::fs::write(journal.join("000000000001.journal"), segment.concat()).unwrap();
    let collector = Collector::start(folder.path(), "");
    collector.seal();
    let seal = collector.get("/v1/status").1["seal"].clone();
    assert_eq!(seal["set_aside_batches_count"], 1, "{seal}");
    assert_eq!(seal["failure"], Value::Null);
    let kept = |folder: &Path, ending: &str| {
        let files = std::fs::read_dir(folder).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names
            .filter(|name| name.ends_with(ending))
            .collect::<Vec<_>>()
    };
    assert_eq!(kept(&journal, ".rejected"), ["000000000001-1.rejected"]);
    assert_eq!(kept(&journal, ".damaged"), [""; 0]);
    for (host, expected) in [(1, 1..=2), (3, 1..=3)] {
        let expected: Vec<i64> = expected.collect();
        assert_eq!(sequences(&collector.dataset(), &id(host)), expected);
    }
    // The segment is restored, as if the collector had ended before removing it. Its rows must be sealed only
    // once.
    collector.kill();
    std::fs::write(journal.join("000000000001.journal"), segment.concat()).unwrap();
    let collector = Collector::start(folder.path(), "");
    assert_eq!(collector.send(&body(&id(4), &id(9), 1..=1)).0, 200);
    collector.seal();
    assert_eq!(kept(&journal, ".rejected"), ["000000000001-1.rejected"]);
    assert_eq!(sequences(&collector.dataset(), &id(4)), [1]);
}
