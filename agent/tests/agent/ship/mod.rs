//! Shipping of the trace to a collector: complete, once, in order, whatever the network does.

mod backlog;
mod damaged;
mod killed;
mod lost;

use crate::collector::{Collector, Fault, ReceivedRecords};
use crate::running::{Running, column, query, wait_for};
use crate::{agent, fail, program, succeed};
use gleaner_schemas::rows::TABLES;
use rusqlite::Connection;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs `ship` on this database, with additional `keys` of `[ship]`. The timeout is half a minute, as answers
/// are slow on a busy machine.
pub(crate) fn ship(database: &Path, collector: &str, keys: &str) -> Command {
    let config = database.with_file_name("agent.toml");
    let timeout = if keys.contains("timeout") {
        ""
    } else {
        "timeout = \"30s\""
    };
    let text = format!(
        "[ship]\ncollector = \"{collector}\"\nbatch_interval = \"100ms\"\n{timeout}\n{keys}\n"
    );
    std::fs::write(&config, text).unwrap();
    let mut command = program();
    command
        .arg("--database")
        .arg(database)
        .arg("--config")
        .arg(config);
    command.arg("ship");
    command
}

/// Makes a trace of `samples` samples, 100 ms apart.
pub(crate) fn traced(folder: &Path, samples: &str) -> PathBuf {
    let database = folder.join("trace.db");
    let run = ["run", "--sample-interval", "100ms", "--samples", samples];
    succeed(agent().arg("--database").arg(&database).args(run));
    database
}

/// Row counts of each table of the database, by record.
pub(crate) fn rows(database: &Path) -> BTreeMap<&'static str, BTreeMap<i64, i64>> {
    let connection = Connection::open(database).unwrap();
    let of_table = |name: &str| {
        let query = format!("SELECT sequence, count(*) FROM {name} GROUP BY sequence");
        let mut statement = connection.prepare(&query).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.unwrap()
            .collect::<Result<BTreeMap<i64, i64>, _>>()
            .unwrap()
    };
    let tables = TABLES
        .iter()
        .map(|table| (table.name, of_table(table.name)));
    tables.filter(|(_, rows)| !rows.is_empty()).collect()
}

/// Asserts that the collector has all records of the database.
#[track_caller]
pub(crate) fn is_whole(kept: &ReceivedRecords, database: &Path) {
    let stored = rows(database);
    for (table, rows) in &stored {
        assert_eq!(kept.rows.get(table), Some(rows), "{table}");
    }
    assert_eq!(kept.rows.len(), stored.len());
}

pub(crate) fn last_sequence(database: &Path) -> i64 {
    query(
        database,
        "SELECT max(sequence) FROM (SELECT sequence FROM samples UNION SELECT sequence FROM events)",
    )
}

pub(crate) fn acknowledged(database: &Path) -> Option<i64> {
    let query = "SELECT value FROM meta WHERE key = 'acknowledged_sequence'";
    let found: Vec<String> = column(database, query);
    found.first().map(|text| text.parse().unwrap())
}

#[test]
fn once_sends_what_is_there_and_only_what_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let database = traced(folder.path(), "3");
    let collector = Collector::start();
    let once = || -> Json {
        let mut ship = ship(&database, &collector.url(), "");
        serde_json::from_str(&succeed(ship.args(["--once", "--json"]))).unwrap()
    };
    let first = once();
    is_whole(collector.state().only(), &database);
    assert_eq!(acknowledged(&database), Some(last_sequence(&database)));
    assert_eq!(first["batches_count"], 1);
    assert_eq!(first["shipping"]["pending_records_count"], 0);
    assert_eq!(first["sent_bytes"], collector.state().taken[0].bytes);
    let tells = |command: &str| {
        let output = agent()
            .arg("--database")
            .arg(&database)
            .arg(command)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(
        tells("status").contains("shipped         all\n"),
        "{}",
        tells("status")
    );
    assert!(
        tells("inspect").contains("but the\nnewest 0 records"),
        "{}",
        tells("inspect")
    );
    assert_eq!(once()["records_count"], 0);
    assert_eq!(collector.state().taken.len(), 1);

    traced(folder.path(), "2");
    assert!(tells("status").contains("all but "), "{}", tells("status"));
    assert!(once()["records_count"].as_i64() >= Some(2));
    let state = collector.state();
    is_whole(state.only(), &database);
    assert!(state.taken.iter().all(|batch| !batch.repeated));
    let head = &state
        .heads
        .iter()
        .find(|head| head.starts_with("POST"))
        .unwrap()
        .to_lowercase();
    for header in [
        "content-type: application/vnd.apache.arrow.stream\r\n",
        "content-encoding: zstd\r\n",
        "gleaner-sent-ms: 1",
    ] {
        assert!(head.contains(header), "{head}");
    }
}

/// The sampler writes, and the shipper follows it over one connection.
#[test]
fn it_follows_a_running_sampler_over_one_connection() {
    let folder = tempfile::tempdir().unwrap();
    let database = traced(folder.path(), "1");
    let collector = Collector::start();
    let mut run = agent();
    run.arg("--database")
        .arg(&database)
        .args(["run", "--sample-interval", "100ms"]);
    let sampler = Running::start(&mut run);
    let shipper = Running::start(&mut ship(&database, &collector.url(), ""));
    shipper.hear("shipping");
    wait_for("ten batches", || collector.state().taken.len() >= 10);
    assert_eq!(sampler.end().0, Some(0));
    let last = last_sequence(&database);
    wait_for("the rest", || collector.state().only().mark == last);
    wait_for("it to be written down", || {
        acknowledged(&database) == Some(last)
    });
    let (code, said) = shipper.end();
    assert_eq!((code, said.as_slice()), (Some(0), &[][..]));
    let state = collector.state();
    is_whole(state.only(), &database);
    assert!(
        state.taken.iter().all(|batch| !batch.repeated),
        "{:?}",
        state.taken
    );
    assert_eq!((state.connections_count, state.marks_asked_count), (1, 1));
}

/// Each fault occurs once, between batches that are accepted. No record may be lost or arrive twice.
#[test]
fn whatever_becomes_of_a_batch_its_records_arrive_once_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let database = traced(folder.path(), "1");
    let collector = Collector::start();
    let mut run = agent();
    run.arg("--database")
        .arg(&database)
        .args(["run", "--sample-interval", "100ms"]);
    let sampler = Running::start(&mut run);
    let shipper = Running::start(&mut ship(&database, &collector.url(), "timeout = \"1s\""));
    let busy = "{\"error\": \"the disk is full\", \"retry\": true}";
    for fault in [
        Fault::CloseBefore,
        Fault::CloseWithin,
        Fault::CloseAfter,
        Fault::CutAnswer,
        Fault::Garbage,
        Fault::Slow,
        Fault::Silent,
        Fault::Status(429, busy),
        Fault::Status(503, busy),
        Fault::Status(500, "<html>oops</html>"),
        Fault::Status(302, ""),
    ] {
        let asked = {
            let mut state = collector.state();
            state.faults.push_back(fault.clone());
            state.marks_asked_count
        };
        wait_for(&format!("{fault:?}, and the question what arrived"), || {
            let state = collector.state();
            state.faults.is_empty() && state.marks_asked_count > asked
        });
        let well = collector.state().well_count;
        wait_for("it to go on", || collector.state().well_count > well);
    }
    assert_eq!(sampler.end().0, Some(0));
    let last = last_sequence(&database);
    wait_for("the rest", || collector.state().only().mark == last);
    wait_for("it to be written down", || {
        acknowledged(&database) == Some(last)
    });
    assert_eq!(shipper.end().0, Some(0));
    let state = collector.state();
    is_whole(state.only(), &database);
    let mut before = 0;
    for batch in &state.taken {
        assert!(
            batch.first_sequence > before || batch.repeated,
            "out of order: {:?}",
            state.taken
        );
        before = before.max(batch.last_sequence);
    }
    // A batch whose acknowledgement was lost is not sent again: the shipper asked the collector.
    assert!(
        state.taken.iter().all(|batch| !batch.repeated),
        "{:?}",
        state.taken
    );
}

/// A refused record holds back those that follow it; those before it arrive.
#[test]
fn a_refused_record_holds_back_what_follows_and_nothing_else() {
    {
        let status = 400;
        let folder = tempfile::tempdir().unwrap();
        let database = traced(folder.path(), "6");
        let samples: Vec<i64> = column(&database, "SELECT sequence FROM samples ORDER BY sequence");
        let collector = Collector::start();
        collector.state().poison = Some((samples[3], status));
        let shipper = Running::start(&mut ship(&database, &collector.url(), ""));
        let said = shipper.hear("refuses record");
        assert!(
            said.contains(&format!("{} (status {status}: poisoned)", samples[3])),
            "{said}"
        );
        assert_eq!(collector.state().only().mark, samples[3] - 1);
        let requests = collector.state().requests_count;
        assert!(requests < 20, "{requests} requests to find one record");
        assert_eq!(shipper.end(), (Some(0), Vec::new()));
        let (code, said) = fail(ship(&database, &collector.url(), "").arg("--once"));
        assert_eq!(code, 1);
        assert!(said.contains("not all records are shipped"), "{said}");

        collector.state().poison = None;
        succeed(ship(&database, &collector.url(), "").arg("--once"));
        is_whole(collector.state().only(), &database);
    }
}

/// A record above the collector's limit is skipped, named and counted; all others arrive.
#[test]
fn a_record_above_the_collectors_limit_is_skipped_and_the_rest_arrives() {
    is_skipped(413, "is larger than the collector accepts");
}

/// A record that the collector refuses for good, such as one from before 2000, is skipped as well.
#[test]
fn a_record_refused_for_good_is_skipped_and_the_rest_arrives() {
    is_skipped(422, "is refused for good by the collector");
}

#[track_caller]
fn is_skipped(status: u16, words: &str) {
    let folder = tempfile::tempdir().unwrap();
    let database = traced(folder.path(), "6");
    let samples: Vec<i64> = column(&database, "SELECT sequence FROM samples ORDER BY sequence");
    let collector = Collector::start();
    collector.state().poison = Some((samples[3], status));
    let mut once = ship(&database, &collector.url(), "");
    let output = once.args(["--once", "--json"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let skipped = format!("record {} {words} (status {status}: poisoned)", samples[3]);
    assert!(said.contains(&skipped), "{said}");
    let told: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["skipped_records_count"], 1);
    let state = collector.state();
    let kept = state.only();
    assert_eq!(kept.mark, last_sequence(&database));
    for (table, mut stored) in rows(&database) {
        stored.remove(&samples[3]);
        assert_eq!(
            kept.rows.get(table).cloned().unwrap_or_default(),
            stored,
            "{table}"
        );
    }
}

/// An outage is logged once when it begins and once when it ends.
#[test]
fn an_outage_is_waited_out_and_told_of_in_two_lines() {
    let folder = tempfile::tempdir().unwrap();
    let database = traced(folder.path(), "2");
    let mut collector = Collector::start();
    let url = collector.url();
    collector.stop();
    let shipper = Running::start(&mut ship(&database, &url, ""));
    shipper.hear("no answer from the collector");
    traced(folder.path(), "2");
    let collector = collector.restart();
    shipper.hear("shipping again after");
    let last = last_sequence(&database);
    wait_for("all to be there", || {
        collector
            .state()
            .databases
            .values()
            .any(|kept| kept.mark == last)
    });
    let collector = collector.restart();
    traced(folder.path(), "1"); // over a new connection, without a message
    let last = last_sequence(&database);
    wait_for("all to be there", || collector.state().only().mark == last);
    assert_eq!(shipper.end(), (Some(0), Vec::new()));
    is_whole(collector.state().only(), &database);

    let (code, said) = fail(ship(&database, "http://127.0.0.1:1", "").arg("--once"));
    assert_eq!(code, 1);
    assert!(
        said.contains("no answer") && said.lines().count() == 1,
        "{said}"
    );
}

#[test]
fn a_second_shipper_is_refused_and_so_is_a_collector_in_the_clear() {
    let folder = tempfile::tempdir().unwrap();
    let database = traced(folder.path(), "1");
    let collector = Collector::start();
    let shipper = Running::start(&mut ship(&database, &collector.url(), ""));
    shipper.hear("shipping");
    let refused = |collector: &str, words: &str| {
        let (code, said) = fail(&mut ship(&database, collector, ""));
        assert_eq!(code, 1);
        assert!(said.contains(words), "{said}");
    };
    refused(&collector.url(), "another gleaner-agent is shipping");
    shipper.kill();
    refused("http://192.0.2.1:7443", "unencrypted");
    refused("", "no collector is named");
    refused("https://127.0.0.1:7443", "host.pem is not there");
    let (_, said) = fail(agent().args(["--database", "/nowhere/trace.db", "ship"]));
    assert!(said.contains("no trace at /nowhere/trace.db"), "{said}");
}
