//! Tests several collectors of one dataset, over real TLS: what each of them knows of the others, and hosts that move.

use crate::made::{START_MS, body, id, sequences, tables_from};
use crate::running::{Collector, program, try_get, try_post, wait_for};
use crate::trusted::Deployment;
use gleaner_dataset::{Batch, Dataset};
use gleaner_harness::unused_address;
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::SampleRow;
use gleaner_trust::Role;
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

const NAMES: [&str; 3] = ["east", "north", "west"];
const DATABASE: u64 = 9;
/// Rows of a batch of five records, each with a sample and three processes.
const ROWS: u64 = 20;

/// Three collectors with one dataset and one authority.
struct Group {
    deployment: Deployment,
    folder: tempfile::TempDir,
    addresses: [SocketAddr; 3],
}

impl Group {
    fn new() -> Self {
        let deployment = Deployment::new();
        let addresses = NAMES.map(|_| unused_address());
        let issue = |role: &Role, name: &str| {
            let path = |ending: &str| deployment.pki().join(format!("{name}.{ending}"));
            let issued = deployment.authority.issue(role, 365).unwrap();
            issued.write(&path("crt"), &path("key")).unwrap();
        };
        let names = addresses.map(|address| address.ip().to_string()).to_vec();
        issue(&Role::Collector { names }, "collector");
        let name = "peers".to_owned();
        issue(&Role::Reader { name }, "peers");
        Self {
            folder: tempfile::tempdir().unwrap(),
            deployment,
            addresses,
        }
    }

    fn dataset(&self) -> PathBuf {
        self.folder.path().join("dataset")
    }

    fn url(&self, number: usize) -> String {
        format!("https://{}", self.addresses[number])
    }

    /// Starts a collector whose list of peers has itself, too; `more` has further lines of configuration.
    fn start(&self, number: usize, more: &str) -> Collector {
        let own = self.folder.path().join(NAMES[number]);
        fs::create_dir_all(&own).unwrap();
        let urls = [0, 1, 2].map(|number| self.url(number));
        let config = format!(
            "name = {:?}\ndataset = {:?}\nlisten = \"{}\"\npki = {:?}\n{more}\n[peers]\nurls = {urls:?}",
            NAMES[number],
            self.dataset(),
            self.addresses[number],
            self.deployment.pki(),
        );
        Collector::start(&own, &config)
    }

    /// Sends a host's records to a collector, with the host's certificate.
    fn send(&self, collector: &Collector, host: u64, records: std::ops::RangeInclusive<i64>) {
        let agent = self.deployment.host(&id(host));
        let url = format!("{}/v1/batches", collector.tls_url.as_deref().unwrap());
        let sent = try_post(&agent, &url, &body(&id(host), &id(DATABASE), records)).unwrap();
        assert_eq!(sent.0, 200, "{sent:?}");
    }

    /// Answer of a collector to a host that asks for its last durable record.
    fn mark(&self, collector: &Collector, host: u64) -> Option<i64> {
        let agent = self.deployment.host(&id(host));
        let url = collector.tls_url.as_deref().unwrap();
        let query = format!("host={}&database={}", id(host), id(DATABASE));
        let answer = try_get(&agent, &format!("{url}/v1/mark?{query}")).unwrap();
        assert_eq!(answer.0, 200, "{answer:?}");
        answer.1["acknowledged_sequence"].as_i64()
    }

    fn samples_count(&self) -> u64 {
        let dataset = Dataset::open(self.dataset()).unwrap();
        dataset.rows(&SampleRow::TABLE)
    }
}

/// Waits until a collector has heard from all three, and returns the document about them.
#[track_caller]
fn heard_of_all(collector: &Collector, is_complete: impl Fn(&Value) -> bool) -> Value {
    let mut group = Value::Null;
    wait_for("all collectors to answer", || {
        group = collector.get("/v1/collectors").1;
        let totals = &group["totals"];
        totals["collectors_count"] == 3 && totals["answering_count"] == 3 && is_complete(totals)
    });
    group
}

/// Exit code and output of `gleaner-collector status --all`.
fn status_of_all(collector: &Collector) -> (Option<i32>, String) {
    let output = Command::new(program())
        .args(["status", "--all", "--url", &collector.url])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), said)
}

fn text(collector: &Collector, path: &str) -> String {
    let (status, text) = collector.get(path);
    assert_eq!(status, 200);
    text.as_str().unwrap().to_owned()
}

#[test]
fn three_collectors_of_one_dataset_are_seen_as_one() {
    let group = Group::new();
    let [east, north, west] = [0, 1, 2].map(|number| group.start(number, ""));
    for host in 1..=6 {
        let own = [&east, &north, &west][host as usize % 3];
        group.send(own, host, 1..=5);
    }
    for collector in [&east, &north, &west] {
        collector.seal();
    }
    let alone_folder = tempfile::tempdir().unwrap();
    let alone = Collector::start(alone_folder.path(), "");
    for host in 1..=6 {
        assert_eq!(alone.send(&body(&id(host), &id(DATABASE), 1..=5)).0, 200);
    }
    alone.seal();
    for host in 1..=6 {
        let found = sequences(&group.dataset(), &id(host));
        assert_eq!(found, sequences(&alone.dataset(), &id(host)));
        assert_eq!(found, [1, 2, 3, 4, 5]);
    }

    let has_all = |totals: &Value| totals["dataset_rows_count"] == 6 * ROWS;
    let found = heard_of_all(&east, has_all);
    assert_eq!(found["is_well"], true);
    assert_eq!(found["totals"]["hosts_count"], 6);
    let names = [0, 1, 2].map(|number| &found["collectors"][number]["overview"]["name"]);
    assert_eq!(names, NAMES);
    assert_eq!(found["collectors"][0]["url"], Value::Null);
    assert_eq!(found["collectors"][2]["url"], group.url(2));
    // Each collector reports its own part, so that the parts can be added up.
    let status = west.get("/v1/status").1;
    assert_eq!(status["dataset_rows_count"], 2 * ROWS);
    let metrics = text(&east, "/metrics");
    let rows = format!(
        "gleaner_collector_dataset_rows{{collector=\"east\"}} {}\n",
        2 * ROWS
    );
    assert!(metrics.contains(&rows), "{metrics}");
    let peer = |number, value| {
        let url = group.url(number);
        format!("gleaner_collector_peer_up{{collector=\"east\",url=\"{url}\"}} {value}\n")
    };
    assert!(
        metrics.contains(&peer(1, 1)) && !metrics.contains(&peer(0, 1)),
        "{metrics}"
    );
    let page = text(&east, "/");
    assert!(
        page.contains("3 collectors: 6 of 6 hosts heard of"),
        "{page}"
    );
    let link = format!("<a href=\"{}/\">north</a>", group.url(1));
    assert!(page.contains(&link), "{page}");
    heard_of_all(&west, has_all);
    let (code, said) = status_of_all(&west);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("3 of 3 collectors answer: 6 hosts (0 silent)"),
        "{said}"
    );

    north.kill();
    drop(north);
    wait_for("the fault", || east.get("/v1/status").1["is_well"] == false);
    let problem = &east.get("/v1/status").1["problems"][0];
    assert_eq!(problem["kind"], "peer_unreachable");
    let named = format!("north ({}): since ", group.url(1));
    assert!(
        problem["text"].as_str().unwrap().contains(&named),
        "{problem}"
    );
    assert!(text(&east, "/metrics").contains(&peer(1, 0)));
    assert!(text(&east, "/").contains("2 of 3 collectors answer: 4 of 4 hosts"));
    let (code, said) = status_of_all(&east);
    assert_eq!(code, Some(3), "{said}");
    let fault = format!("fault: north: no answer from {} since ", group.url(1));
    assert!(said.starts_with(&fault), "{said}");

    let _north = group.start(1, "");
    heard_of_all(&east, has_all);
    assert_eq!(east.get("/v1/status").1["is_well"], true);
}

#[test]
fn a_host_that_moves_sends_no_record_again() {
    let group = Group::new();
    let [east, north, west] = [0, 1, 2].map(|number| group.start(number, ""));
    for collector in [&east, &north, &west] {
        heard_of_all(collector, |_| true);
    }
    group.send(&east, 1, 1..=5);
    assert_eq!(group.mark(&west, 1), Some(5)); // the records are in the journal of the other collector
    group.send(&west, 1, 6..=8);
    assert_eq!(group.mark(&east, 1), Some(8));
    group.send(&east, 1, 9..=9);
    for collector in [&east, &west] {
        collector.seal();
    }
    assert_eq!(
        sequences(&group.dataset(), &id(1)),
        (1..=9).collect::<Vec<_>>()
    );
    assert_eq!(group.samples_count(), 9);

    // While the former collector is dead, the host sends everything that it has. Readers get each record once.
    group.send(&east, 2, 1..=5);
    east.kill();
    drop(east);
    wait_for("the fault", || west.get("/v1/status").1["is_well"] == false);
    assert_eq!(group.mark(&west, 2), None);
    group.send(&west, 2, 1..=6);
    let east = group.start(0, "");
    heard_of_all(&west, |_| true);
    heard_of_all(&east, |_| true);
    assert_eq!(group.mark(&east, 2), Some(6));
    for collector in [&east, &west] {
        collector.seal();
    }
    assert_eq!(
        sequences(&group.dataset(), &id(2)),
        (1..=6).collect::<Vec<_>>()
    );
    assert_eq!(group.samples_count(), 9 + 5 + 6);
}

#[test]
fn hosts_learn_only_their_own_marks_and_readers_all() {
    let group = Group::new();
    let east = group.start(0, "");
    group.send(&east, 1, 1..=5);
    let url = east.tls_url.as_deref().unwrap();
    let query = format!(
        "{url}/v1/mark?host={}&database={}&own=true",
        id(1),
        id(DATABASE)
    );
    let other = group.deployment.host(&id(2));
    assert_eq!(try_get(&other, &query).unwrap().0, 403);
    assert_eq!(
        try_get(&other, &format!("{url}/v1/collectors")).unwrap().0,
        403
    );
    let reader = group.deployment.reader();
    assert_eq!(
        try_get(&reader, &query).unwrap().1["acknowledged_sequence"],
        5
    );
    let stranger = group.deployment.stranger();
    assert_eq!(try_get(&stranger, &query).unwrap().0, 401);
}

#[test]
fn each_collector_drops_details_of_its_own_hosts() {
    let group = Group::new();
    let retention = "[retention]\ndetails_days = 1";
    let collectors = [0, 1].map(|number| group.start(number, retention));
    for (host, collector) in (1..).zip(&collectors) {
        let old_ms = START_MS - 400 * 86_400_000 - 3_600_000;
        let old = tables_from(old_ms, &id(host), &id(DATABASE), 1..=5);
        assert_eq!(collector.send(&Batch::encode(&old).unwrap()).0, 200);
        collector.seal();
    }
    for collector in &collectors {
        wait_for("the details to be dropped", || {
            let status = collector.get("/v1/status").1;
            status["seal"]["dropped_rows_count"] == 15 && status["dataset_rows_count"] == 5
        });
    }
    assert_eq!(group.samples_count(), 10);
}

#[test]
fn collectors_with_one_name_are_told_apart_and_complain() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    fs::create_dir(&first).unwrap();
    fs::create_dir(&second).unwrap();
    let other = Collector::start(&first, "name = \"east\"");
    let peers = format!("name = \"east\"\n[peers]\nurls = [{:?}]", other.url);
    let collector = Collector::start(&second, &peers);
    wait_for("the fault", || {
        let status = collector.get("/v1/status").1;
        let text = status["problems"][0]["text"].as_str().unwrap_or_default();
        text.contains("it has this collector's name, east")
    });
}
