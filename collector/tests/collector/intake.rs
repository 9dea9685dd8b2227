//! Tests that batches are acknowledged on arrival, and that each row is in the dataset once and in the right
//! place.

use crate::made::{START_MS, body, id, inventory, sequences, tables_from};
use crate::running::{Collector, agent, try_post, wait_for};
use gleaner_dataset::Batch;
use std::time::{SystemTime, UNIX_EPOCH};
use ureq::Agent;

#[test]
fn a_batch_is_acknowledged_and_then_in_the_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "");
    let (host, database) = (id(1), id(2));
    assert_eq!(collector.mark(&host, &database), None);
    let (status, answer) = collector.send(&body(&host, &database, 1..=5));
    assert_eq!(
        (status, answer["acknowledged_sequence"].as_i64()),
        (200, Some(5)),
        "{answer}"
    );
    assert_eq!(answer["rows_count"].as_i64(), Some(20));
    assert_eq!(collector.mark(&host, &database), Some(5));
    collector.seal();
    assert_eq!(sequences(&collector.dataset(), &host), [1, 2, 3, 4, 5]);
    assert_eq!(collector.end(), Some(0));
}

#[test]
fn repeated_late_and_shuffled_batches_end_in_their_place_once() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "");
    let (host, database) = (id(1), id(2));
    // The third record is after midnight, and the batches of the first day arrive last.
    for sequences in [9..=12, 5..=8, 9..=12, 7..=10, 1..=4, 1..=4] {
        let (status, answer) = collector.send(&body(&host, &database, sequences));
        assert_eq!(status, 200, "{answer}");
        if sequences_are_odd(&answer) {
            collector.seal(); // some seals in between, so that repeats meet sealed rows too
        }
    }
    let (status, _) = collector.send(&body(&host, &id(3), 1..=2)); // another database of the host
    assert_eq!(status, 200);
    collector.seal();
    let mut expected: Vec<i64> = (1..=12).chain(1..=2).collect();
    let mut found = sequences_by_time(&collector, &host);
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(collector.mark(&host, &database), Some(12));
    let dates: Vec<_> = std::fs::read_dir(collector.dataset().join("samples"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(dates.len(), 2, "{dates:?}");
    let status = collector.get("/v1/status").1;
    assert!(status["seal"]["repeated_rows_count"].as_i64().unwrap() > 0);
}

fn sequences_are_odd(answer: &serde_json::Value) -> bool {
    answer["acknowledged_sequence"].as_i64().unwrap() % 4 == 0
}

fn sequences_by_time(collector: &Collector, host: &str) -> Vec<i64> {
    let dataset = gleaner_dataset::Dataset::open(collector.dataset()).unwrap();
    let rows = dataset
        .read_host(&sample_table(), host, &["sequence", "time", "database_id"])
        .unwrap();
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;
    rows.column(0).as_primitive::<Int64Type>().values().to_vec()
}

fn sample_table() -> gleaner_schemas::column::Table {
    gleaner_schemas::rows::table("samples").unwrap()
}

#[test]
fn what_is_acknowledged_outlives_the_collector() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "");
    let (host, database) = (id(1), id(2));
    assert_eq!(collector.send(&body(&host, &database, 1..=3)).0, 200);
    collector.kill();
    drop(collector);
    let collector = Collector::start(folder.path(), "");
    assert_eq!(collector.mark(&host, &database), Some(3));
    // At its start, the collector seals the segments of an earlier run.
    wait_for("the journal to be sealed", || {
        collector.dataset().join("manifest.json").exists()
            && collector.get("/v1/status").1["journal_bytes"] == 0
    });
    assert_eq!(sequences(&collector.dataset(), &host), [1, 2, 3]);
}

#[test]
fn a_damaged_memory_of_the_hosts_costs_no_row() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "");
    let (host, database) = (id(1), id(2));
    assert_eq!(collector.send(&body(&host, &database, 1..=3)).0, 200);
    collector.seal();
    let hosts = collector.data().join("hosts.json");
    assert_eq!(collector.end(), Some(0));
    std::fs::write(&hosts, "{\"00").unwrap();
    let collector = Collector::start(folder.path(), "");
    assert_eq!(collector.mark(&host, &database), None);
    assert!(hosts.with_extension("json.damaged").exists());
    assert_eq!(collector.send(&body(&host, &database, 1..=4)).0, 200);
    collector.seal();
    assert_eq!(sequences(&collector.dataset(), &host), [1, 2, 3, 4]);
}

#[test]
fn the_journal_is_sealed_by_age_and_by_size() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "seal_after = \"1s\"");
    assert_eq!(collector.send(&body(&id(1), &id(2), 1..=3)).0, 200);
    wait_for("a seal", || {
        let status = collector.get("/v1/status").1;
        status["dataset_rows_count"] == 12 && status["journal_bytes"] == 0
    });
}

#[test]
fn many_small_seals_become_few_files() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "");
    let (host, database) = (id(1), id(2));
    for sequence in 5..25 {
        assert_eq!(collector.send(&body(&host, &database, [sequence])).0, 200);
        collector.seal();
    }
    wait_for("files to be merged", || {
        let status = collector.get("/v1/status").1;
        status["dataset_files_count"].as_i64().unwrap() < 20
    });
    let expected: Vec<i64> = (5..25).collect();
    assert_eq!(sequences(&collector.dataset(), &host), expected);
}

#[test]
fn days_are_kept_as_long_as_they_are_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "[retention]\ndetails_days = 1");
    // The records are of a day long ago, and none of them crosses midnight.
    let old = tables_from(
        START_MS - 400 * 86_400_000 - 3_600_000,
        &id(1),
        &id(2),
        5..=9,
    );
    assert_eq!(collector.send(&Batch::encode(&old).unwrap()).0, 200);
    collector.seal();
    wait_for("the details to be dropped", || {
        let status = collector.get("/v1/status").1;
        status["seal"]["dropped_rows_count"] == 15 && status["dataset_rows_count"] == 5
    });
}

#[test]
fn several_collectors_write_hosts_of_their_own_into_one_dataset() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let shared = tempfile::tempdir().unwrap();
    let collectors = [("east", 1), ("west", 2)].map(|(name, host)| {
        let config = format!(
            "name = {name:?}\ndataset = {:?}",
            shared.path().join("dataset")
        );
        let collector = Collector::start(folders[host - 1].path(), &config);
        assert_eq!(
            collector.send(&body(&id(host as u64), &id(9), 5..=9)).0,
            200
        );
        collector.seal();
        collector
    });
    for host in [1, 2] {
        assert_eq!(
            sequences(&shared.path().join("dataset"), &id(host)),
            [5, 6, 7, 8, 9]
        );
    }
    drop(collectors);
}

#[test]
fn the_status_tells_a_host_its_clock_and_its_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "");
    let (host, database) = (id(1), id(2));
    let url = format!("{}/v1/batches", collector.url);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let ahead_ms = i64::try_from(now.as_millis()).unwrap() + 3_600_000;
    let sent = agent()
        .post(&url)
        .header("Gleaner-Sent-Ms", ahead_ms.to_string())
        .send(&inventory(&host, &database, 1)[..]);
    assert_eq!(sent.unwrap().status(), 200);
    let status = collector.get("/v1/status").1;
    let found = &status["hosts"][0];
    assert_eq!(found["host_id"], host);
    assert_eq!(found["host_name"], "otter");
    assert_eq!(found["gaps_count"], 1);
    assert_eq!(found["last_gap_cause"], "sleep");
    assert_eq!(found["last_record_time_ms"], START_MS);
    let skew_ms = found["skew_ms"].as_i64().unwrap();
    assert!((3_500_000..=3_600_000).contains(&skew_ms), "{skew_ms}");
}

#[test]
fn sighup_changes_what_is_taken_in_and_when_it_is_sealed_and_a_broken_file_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "batch_limit = \"64B\"\nseal_after = \"1h\"");
    let (host, database) = (id(1), id(2));
    let sent = || collector.send(&inventory(&host, &database, 1)).0;
    assert_eq!(sent(), 413);
    let broken = "batch_limit = \"1MiB\"\nseal = \"1s\"";
    let said = collector.reload(folder.path(), broken, "continues with its present settings");
    assert!(said.contains("line 5") && said.contains("`seal`"), "{said}");
    assert_eq!(sent(), 413);
    let wider = "batch_limit = \"1MiB\"\nseal_after = \"100ms\"\ndisk_reserve = \"1MiB\"";
    let said = collector.reload(folder.path(), wider, "take effect after a restart");
    assert!(
        said.contains("changes of disk_reserve take effect"),
        "{said}"
    );
    assert_eq!(sent(), 200);
    // Without the command, the batch would be sealed in an hour.
    wait_for("the dataset", || {
        collector.dataset().join("manifest.json").exists()
    });
}

#[test]
fn what_is_no_batch_is_refused_and_told_why() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "batch_limit = \"64KiB\"");
    let agent = agent();
    let url = format!("{}/v1/batches", collector.url);
    let bomb = zstd::encode_all(&vec![0; 100 << 20][..], 1).unwrap();
    let large: Vec<u8> = (0..70_000_u32).flat_map(u32::to_le_bytes).collect();
    for (sent, status, why) in [
        (&b"hello"[..], 400, "cannot be decompressed"),
        (
            &zstd::encode_all(&b"hello, hello, hello"[..], 1).unwrap(),
            400,
            "not an Arrow IPC stream",
        ),
        (&bomb, 413, "larger than"),
        (&large, 413, "the maximum is"),
        (&body("otter", &id(2), 1..=1), 400, "host id"),
    ] {
        let (found, answer) = try_post(&agent, &url, sent).unwrap();
        assert_eq!(found, status, "{answer}");
        assert!(answer["error"].as_str().unwrap().contains(why), "{answer}");
        assert_eq!(answer["retry"], false);
    }
    // Over the same connection, a valid batch succeeds.
    assert_eq!(
        try_post(&agent, &url, &body(&id(1), &id(2), 1..=1))
            .unwrap()
            .0,
        200
    );
    assert_eq!(collector.get("/v1/mark?host=otter&database=x").0, 400);
    assert_eq!(collector.get("/v1/nothing").0, 404);
}

#[test]
fn the_same_refusal_is_logged_once() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "");
    for _ in 0..5 {
        assert_eq!(collector.send(b"hello").0, 400);
    }
    assert_eq!(collector.send(&body(&id(1), &id(2), 1..=1)).0, 200);
    assert_eq!(collector.send(b"hello").0, 400);
    collector.hear("refused");
    collector.hear("refused"); // after the valid batch, a refusal is logged again
    assert_eq!(collector.get("/v1/status").0, 200);
    assert!(
        collector
            .said()
            .iter()
            .all(|line| !line.contains("refused"))
    );
}

#[test]
fn without_tls_this_machine_sees_the_status_alone() {
    let folder = tempfile::tempdir().unwrap();
    let config = "local_listen = \"127.0.0.1:0\"";
    let mut command = std::process::Command::new(crate::running::program());
    let collector = Collector::start_as(folder.path(), config, &mut command);
    let (status, answer) = collector.send(&body(&id(1), &id(2), 1..=1));
    assert_eq!(status, 403, "{answer}");
    assert_eq!(collector.get("/v1/status").0, 200);
    let agent: Agent = agent();
    assert_eq!(
        try_post(&agent, &format!("{}/v1/seal", collector.url), b"")
            .unwrap()
            .0,
        403
    );
}
