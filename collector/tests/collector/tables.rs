//! Tests that sealed rows can be read, all or a selection, or that the request fails. Rows are never missing
//! without an error.

use crate::made::{START_MS, body, id, inventory, tables};
use crate::running::{Collector, agent, wait_for};
use crate::trusted::Deployment;
use arrow::array::AsArray;
use arrow::compute::concat_batches;
use arrow::datatypes::Int64Type;
use arrow::ipc::reader::StreamReader;
use arrow::record_batch::RecordBatch;
use gleaner_dataset::{Dataset, Selection, Writer};
use gleaner_schemas::column::{Row, Table};
use gleaner_schemas::rows::{DATASET_TABLES, SampleRow};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::Agent;

const SAMPLES: Table = SampleRow::TABLE;
/// Time of each database's third record: midnight.
const MIDNIGHT_MS: i64 = START_MS + 60_000;

fn call(agent: &Agent, url: &str, path: &str) -> ureq::http::Response<ureq::Body> {
    agent.get(format!("{url}/v1/tables{path}")).call().unwrap()
}

/// Reads all rows of a stream, or returns an error if the stream is incomplete.
fn rows_of(response: ureq::http::Response<ureq::Body>) -> Result<RecordBatch, String> {
    assert_eq!(response.status(), 200);
    let media_type = &response.headers()["content-type"];
    assert_eq!(media_type, "application/vnd.apache.arrow.stream");
    let reader = response.into_body().into_reader();
    let stream = StreamReader::try_new(reader, None).map_err(|e| e.to_string())?;
    let schema = stream.schema();
    let batches: Vec<_> = stream
        .collect::<Result<_, _>>()
        .map_err(|e| e.to_string())?;
    Ok(concat_batches(&schema, &batches).unwrap())
}

fn read(collector: &Collector, path: &str) -> RecordBatch {
    rows_of(call(&agent(), &collector.url, path)).unwrap()
}

/// Requests `path`, and returns status, reason, and whether the answer names a time for a retry.
fn refusal(collector: &Collector, path: &str) -> (u16, String, bool) {
    let (status, answer) = collector.get(&format!("/v1/tables{path}"));
    let reason = answer["error"].as_str();
    let reason = reason.unwrap_or_else(|| panic!("{path}: {answer}"));
    (
        status,
        reason.to_owned(),
        answer["retry"].as_bool().unwrap(),
    )
}

/// Rows of a selection, as read from the dataset's folder.
fn selected(collector: &Collector, table: &Table, selection: &Selection) -> RecordBatch {
    let dataset = Dataset::open(collector.dataset()).unwrap();
    let rows = dataset.select(table, selection).unwrap();
    let rows: Vec<_> = rows.map(Result::unwrap).collect();
    concat_batches(&selection.schema(table).unwrap(), &rows).unwrap()
}

/// Starts a collector with two hosts of six records each, which cross midnight. The first host is named
/// `otter`.
fn two_hosts(folder: &Path) -> Collector {
    let collector = Collector::start(folder, "");
    for host in [1, 2] {
        let sent = collector.send(&body(&id(host), &id(9), 1..=6));
        assert_eq!(sent.0, 200, "{sent:?}");
    }
    let sent = collector.send(&inventory(&id(1), &id(9), 7));
    assert_eq!(sent.0, 200, "{sent:?}");
    collector.seal();
    collector
}

#[test]
fn a_table_is_streamed_whole_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let collector = two_hosts(folder.path());
    for table in &DATASET_TABLES {
        let expected = selected(&collector, table, &Selection::default());
        for compression in ["", "?compression=zstd", "?compression=none"] {
            let found = read(&collector, &format!("/{}{compression}", table.name));
            assert_eq!(found, expected, "{}", table.name);
        }
    }
    assert_eq!(read(&collector, "/samples").num_rows(), 12);
    assert_eq!(read(&collector, "/processes").num_rows(), 36);
    assert_eq!(read(&collector, "/files").num_rows(), 0);
}

#[test]
fn hosts_times_and_columns_are_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let collector = two_hosts(folder.path());
    let hosts = |ids: &[u64]| Some(ids.iter().map(|n| id(*n)).collect());
    let all = Selection::default;
    let (both, first) = (hosts(&[1, 2]), hosts(&[1]));
    for (query, selection) in [
        (
            format!("host={}", id(1)),
            Selection {
                hosts: first.clone(),
                ..all()
            },
        ),
        (
            "host=otter".to_owned(),
            Selection {
                hosts: first,
                ..all()
            },
        ),
        (
            format!("host={},otter", id(2)),
            Selection {
                hosts: both,
                ..all()
            },
        ),
        (
            format!("host={}", id(77)),
            Selection {
                hosts: hosts(&[77]),
                ..all()
            },
        ),
        (
            "from=2026-11-21".to_owned(),
            Selection {
                from_ms: Some(MIDNIGHT_MS),
                ..all()
            },
        ),
        (
            "from=2026-11-20T23:59:40Z&to=2026-11-21T01:00:20%2B01:00".to_owned(),
            Selection {
                from_ms: Some(START_MS + 40_000),
                until_ms: Some(START_MS + 80_000),
                ..all()
            },
        ),
        (
            format!("to={MIDNIGHT_MS}&columns=mem_free_bytes,sequence"),
            Selection {
                until_ms: Some(MIDNIGHT_MS),
                columns: Some(vec!["mem_free_bytes".to_owned(), "sequence".to_owned()]),
                ..all()
            },
        ),
    ] {
        let found = read(&collector, &format!("/samples?{query}"));
        assert_eq!(found, selected(&collector, &SAMPLES, &selection), "{query}");
        let is_some = found.num_rows() > 0 && found.num_rows() < 12;
        let is_all_or_none = query.contains(&id(2)) || query.contains(&id(77));
        assert!(
            is_some || is_all_or_none,
            "{query}: {} rows",
            found.num_rows()
        );
    }
}

#[test]
fn what_cannot_be_answered_is_refused_and_told_why() {
    let folder = tempfile::tempdir().unwrap();
    let collector = two_hosts(folder.path());
    let twin = inventory(&id(2), &id(9), 7);
    for (path, status, why) in [
        ("/sampels", 404, "there are samples, processes"),
        ("/samples?columns=time,colour,age", 400, "colour, age"),
        ("/samples?columns=", 400, "no column"),
        ("/samples?from=yesterday", 400, "from=yesterday"),
        ("/samples?to=2026-02-30", 400, "to=2026-02-30"),
        ("/samples?host=badger", 404, "/v1/status"),
        ("/samples?hosts=otter", 400, "hosts"),
        ("/samples?compression=lz4", 400, "lz4"),
        ("/samples?host=otter&host=otter", 400, "host"),
    ] {
        let (found, reason, is_retried) = refusal(&collector, path);
        assert_eq!(found, status, "{path}: {reason}");
        assert!(reason.contains(why), "{path}: {reason}");
        assert!(!is_retried, "{path}");
    }
    assert_eq!(collector.send(&twin).0, 200);
    let (status, reason, _) = refusal(&collector, "/samples?host=otter");
    assert_eq!(status, 400);
    assert!(
        reason.contains(&id(1)) && reason.contains(&id(2)),
        "{reason}"
    );
}

#[test]
fn before_the_first_seal_there_are_schemas() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "");
    assert!(!collector.dataset().exists());
    let rows = read(&collector, "/samples?columns=time,load5");
    let schema = rows.schema();
    let names: Vec<_> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    assert_eq!((rows.num_rows(), &names[..]), (0, &["time", "load5"][..]));
    let (status, listed) = collector.get("/v1/tables");
    assert_eq!(status, 200);
    assert_eq!(listed.as_array().unwrap().len(), DATASET_TABLES.len());
    assert_eq!(listed[0]["rows_count"], 0);
}

#[test]
fn tables_are_listed_with_rows_dates_columns_and_units() {
    let folder = tempfile::tempdir().unwrap();
    let collector = two_hosts(folder.path());
    let (status, listed) = collector.get("/v1/tables");
    assert_eq!(status, 200);
    let samples = &listed[0];
    assert_eq!(samples["name"], "samples");
    assert_eq!(samples["rows_count"], 12);
    assert_eq!(
        samples["dates"],
        serde_json::json!(["2026-11-20", "2026-11-21"])
    );
    let column = |name: &str| -> Value {
        let columns = samples["columns"].as_array().unwrap();
        columns.iter().find(|c| c["name"] == name).unwrap().clone()
    };
    let free = column("mem_free_bytes");
    assert_eq!(free["unit"], "bytes");
    assert_eq!(free["type"], "Int64");
    assert_eq!(column("physical_bytes")["is_nullable"], false);
    assert!(!free["meaning"].as_str().unwrap().is_empty());
    assert_eq!(column("load5")["is_nullable"], true);
    assert_eq!(column("time")["type"], "Timestamp(ms, \"UTC\")");
}

#[test]
fn readers_read_and_nobody_else() {
    let deployment = Deployment::new();
    let collector = deployment.start("");
    let host = deployment.host(&id(1));
    let url = collector.tls_url.as_deref().unwrap();
    assert_eq!(collector.send(&body(&id(1), &id(9), 1..=6)).0, 200);
    collector.seal();
    let found = rows_of(call(&deployment.reader(), url, "/samples")).unwrap();
    assert_eq!(found, selected(&collector, &SAMPLES, &Selection::default()));
    assert_eq!(found.num_rows(), 6);
    for path in ["", "/samples"] {
        assert_eq!(call(&deployment.reader(), url, path).status(), 200);
        assert_eq!(call(&host, url, path).status(), 403);
        assert_eq!(call(&deployment.stranger(), url, path).status(), 401);
    }

    let folder = tempfile::tempdir().unwrap();
    let config = "local_listen = \"127.0.0.1:0\"";
    let mut command = std::process::Command::new(crate::running::program());
    let closed = Collector::start_as(folder.path(), config, &mut command);
    let (status, reason, _) = refusal(&closed, "/samples");
    assert_eq!(status, 403, "{reason}");
}

/// Path of the file that has a table's rows of this host and day.
fn file(root: &Path, table: &str, date: &str, host: &str) -> PathBuf {
    let dataset = Dataset::open(root).unwrap();
    let files = &dataset.manifest().files;
    let found = files
        .iter()
        .find(|f| f.table == table && f.date == date && f.may_hold(host));
    root.join(&found.unwrap().path)
}

#[test]
fn a_damaged_file_is_named_and_the_rest_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "");
    for host in [1, 2] {
        assert_eq!(collector.send(&body(&id(host), &id(9), 1..=6)).0, 200);
        collector.seal(); // so that each host has separate files
    }
    let damaged = file(&collector.dataset(), "samples", "2026-11-21", &id(1));
    let bytes = fs::read(&damaged).unwrap();
    fs::write(&damaged, &bytes[..bytes.len() / 2]).unwrap();
    let name = damaged.file_name().unwrap().to_str().unwrap();

    // If the damage comes before the first rows, the answer is an error.
    let path = format!("/samples?host={}&from=2026-11-21", id(1));
    let (status, reason, is_retried) = refusal(&collector, &path);
    assert!(reason.contains(name), "{reason}");
    assert_eq!((status, is_retried), (500, false));
    // If the damage comes after the rows of the day before, the stream breaks off.
    for compression in ["zstd", "none"] {
        let path = format!("/samples?compression={compression}");
        let broken = rows_of(call(&agent(), &collector.url, &path)).unwrap_err();
        println!("an HTTP client's reader says: {broken}");
        let reason = saved(&collector, &format!("/v1/tables{path}")).unwrap_err();
        println!("a reader of what was saved says: {reason}");
    }
    assert!(collector.hear("refused").contains(name));
    let said = collector.said();
    assert!(
        said.iter().all(|line| !line.contains("refused")),
        "once: {said:#?}"
    );
    // Requests for other hosts, days and tables are answered completely.
    let other = format!("/samples?host={}", id(2));
    assert_eq!(read(&collector, &other).num_rows(), 6);
    let before = read(
        &collector,
        &format!("/samples?host={}&to=2026-11-21", id(1)),
    );
    let sequences = before.column_by_name("sequence").unwrap();
    let sequences = sequences.as_primitive::<Int64Type>().values();
    assert_eq!(sequences, &[1, 2]);
    assert_eq!(read(&collector, "/processes").num_rows(), 36);
}

/// Counts the rows that a client saves if it ignores HTTP errors: the rows in the received part of the body.
fn saved(collector: &Collector, path: &str) -> Result<usize, String> {
    let mut socket = request(&collector.url, path);
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer); // a reset also ends the body
    let head = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
    let (mut rest, mut content) = (&answer[head + 4..], Vec::new());
    while let Some(line) = rest.windows(2).position(|w| w == b"\r\n") {
        let length = std::str::from_utf8(&rest[..line]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        assert_ne!(length, 0, "the last chunk, of a stream that broke off");
        let end = rest.len().min(line + 2 + length);
        content.extend_from_slice(&rest[line + 2..end]);
        rest = &rest[rest.len().min(end + 2)..];
    }
    let stream = StreamReader::try_new(&content[..], None).map_err(|e| e.to_string())?;
    let batches: Vec<_> = stream
        .collect::<Result<_, _>>()
        .map_err(|e| e.to_string())?;
    Ok(batches.iter().map(RecordBatch::num_rows).sum())
}

/// Sends a request without reading the answer.
fn request(url: &str, path: &str) -> TcpStream {
    let address = url.trim_start_matches("http://");
    let mut socket = TcpStream::connect(address).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    write!(socket, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    socket
}

#[test]
fn a_reader_that_stops_reading_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    // The table has more bytes than the buffers of both sockets hold.
    let sample_bytes = 8 * SAMPLES.columns.len();
    let (hosts_count, records) = (40, (1 << 20) / sample_bytes);
    let mut writer = Writer::open(folder.path().join("data/dataset")).unwrap();
    for host in 1..=hosts_count {
        let rows = tables(&id(host), &id(9), 1..=records as i64).swap_remove(0);
        writer.append(&rows.0, rows.1).unwrap();
    }
    writer.seal().unwrap();
    drop(writer);
    let rows_count = hosts_count as usize * records;
    let collector = Collector::start(folder.path(), "reader_timeout = \"10s\"");
    let path = "/v1/tables/samples?compression=none";
    let begin = || {
        let mut socket = request(&collector.url, path);
        let mut status = [0; 12];
        socket.read_exact(&mut status).unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
        socket
    };
    let mut idle: Vec<TcpStream> = (0..8).map(|_| begin()).collect();
    let refused = call(&agent(), &collector.url, "/processes");
    assert_eq!(refused.status(), 429);
    assert!(refused.headers().contains_key("retry-after"));
    drop(refused); // closes the reader's connection
    // Meanwhile the collector still accepts a host's batch.
    let sent = collector.send(&body(&id(77), &id(9), 1..=1));
    assert_eq!(sent.0, 200, "{sent:?}");
    wait_for("the idle readers to be given up", || {
        collector.get("/v1/status").1["connections_count"] == 1
    });
    // A new reader gets all rows.
    let found = read(&collector, "/samples?compression=none&columns=sequence");
    // The row of the host above may be sealed already.
    let sealed_since = found.num_rows().checked_sub(rows_count);
    assert!(matches!(sealed_since, Some(0 | 1)), "{sealed_since:?}");
    // A disconnected reader can tell that rows are missing, since HTTP's last chunk is.
    let mut got = Vec::new();
    let _ = idle[0].read_to_end(&mut got);
    assert!(!got.is_empty() && !got.ends_with(b"0\r\n\r\n"));
    assert!(got.len() < rows_count * sample_bytes);
}
