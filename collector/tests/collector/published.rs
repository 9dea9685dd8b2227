//! Tests the copy on an object store: in a folder, or on S3 as emulated by moto, which tests/setup installs.

use crate::made::{START_MS, body, id, sequences};
use crate::running::{Collector, program, wait_for};
use crate::trusted::Deployment;
use gleaner_dataset::{Batch, Dataset, Identity, RowsBuilder};
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::ProcessRow;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use ureq::Agent;
use ureq::tls::TlsConfig;

/// Names of the Arrow files below `root`, written as in a manifest.
fn files_in(root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let relative = path.strip_prefix(root).unwrap().to_str().unwrap();
            if path.is_dir() {
                folders.push(path);
            } else if relative.ends_with(".arrow") {
                found.insert(relative.to_owned());
            }
        }
    }
    found
}

fn files_named(dataset: &Path) -> BTreeSet<String> {
    let dataset = Dataset::open(dataset).unwrap();
    let files = dataset.manifest().files.iter();
    files.map(|file| file.path.clone()).collect()
}

fn publish(collector: &Collector) -> Value {
    collector.get("/v1/status").1["publish"].clone()
}

fn is_same(one: &Path, other: &Path) -> bool {
    let text = |root: &Path| fs::read(root.join("manifest.json")).ok();
    text(one).is_some() && text(one) == text(other)
}

/// Sends a host's next records, and seals them.
fn add(collector: &Collector, sequences: std::ops::RangeInclusive<i64>) {
    let (status, answer) = collector.send(&body(&id(1), &id(2), sequences));
    assert_eq!(status, 200, "{answer}");
    collector.seal();
}

#[test]
fn a_folder_has_the_same_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let mirror = folder.path().join("mirror");
    fs::create_dir(&mirror).unwrap();
    let config = format!("publish = \"file://{}\"", mirror.display());
    let collector = Collector::start(folder.path(), &config);
    for n in 0..3 {
        add(&collector, n * 10 + 1..=n * 10 + 10);
        wait_for("the copy", || is_same(&collector.dataset(), &mirror));
        // The copy is complete at any time: every file that its manifest lists is there as it was sealed.
        assert_eq!(Dataset::open(&mirror).unwrap().verify().problems, []);
        let expected: Vec<i64> = (1..=n * 10 + 10).collect();
        assert_eq!(sequences(&mirror, &id(1)), expected);
    }
    wait_for("it to be told", || {
        let publish = publish(&collector);
        publish["last_published_time_ms"].is_i64() && publish["pending_bytes"] == 0
    });
    let metrics = collector.get("/metrics").1;
    let metrics = metrics.as_str().unwrap();
    assert!(metrics.contains("gleaner_collector_publish_pending_bytes 0\n"));
    assert!(metrics.contains("gleaner_collector_last_published_timestamp_seconds 1"));
}

#[test]
fn a_store_that_is_away_is_told_of_and_caught_up_with() {
    let folder = tempfile::tempdir().unwrap();
    let mirror = folder.path().join("mirror");
    let config = format!("publish = \"file://{}\"", mirror.display());
    let collector = Collector::start(folder.path(), &config);
    add(&collector, 1..=10);
    collector.hear("cannot publish");
    let status = collector.get("/v1/status").1;
    let problem = &status["problems"][0];
    assert_eq!(problem["kind"], "cannot_publish", "{status}");
    assert_eq!(status["is_well"], true, "{status}");
    assert_eq!(status["publish"]["pending_files_count"], 4, "{status}");
    add(&collector, 11..=20);
    assert!(!mirror.exists(), "a disk that is not mounted is not filled");
    let again: Vec<_> = collector.said();
    assert_eq!(again, Vec::<String>::new(), "it is said once");
    fs::create_dir(&mirror).unwrap();
    collector.hear("publishing again");
    wait_for("the copy", || is_same(&collector.dataset(), &mirror));
    assert_eq!(
        collector.get("/v1/status").1["problems"],
        Value::Array(vec![])
    );
    assert_eq!(sequences(&mirror, &id(1)), (1..=20).collect::<Vec<_>>());
}

#[test]
fn what_a_merge_replaced_goes_after_the_grace_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let mirror = folder.path().join("mirror");
    let other = "samples/date=2026-11-20/0a.west.arrow";
    fs::create_dir_all(mirror.join("samples/date=2026-11-20")).unwrap();
    fs::write(mirror.join(other), "another collector's").unwrap();
    fs::write(mirror.join("samples/notes.arrow"), "somebody's").unwrap();
    let others = BTreeSet::from([other.to_owned(), "samples/notes.arrow".to_owned()]);
    let config = format!("publish = \"file://{}\"", mirror.display());
    let collector = Collector::start(folder.path(), &config);
    let mut sealed = BTreeSet::new();
    for n in 3..=10 {
        add(&collector, n..=n); // all records are of one day
        wait_for("the copy", || is_same(&collector.dataset(), &mirror));
        sealed.extend(files_in(&mirror));
    }
    wait_for("a merge", || files_named(&collector.dataset()).len() == 2);
    wait_for("the copy", || is_same(&collector.dataset(), &mirror));
    let merged = files_named(&mirror);
    let left = files_in(&mirror);
    assert!(left.is_superset(&sealed) && left.len() > merged.len() + others.len());
    assert_eq!(collector.end(), Some(0));

    let config = format!("{config}\npublish_grace = \"1s\"");
    let collector = Collector::start(folder.path(), &config);
    let expected: BTreeSet<_> = merged.union(&others).cloned().collect();
    wait_for("the rest to go", || files_in(&mirror) == expected);
    assert_eq!(sequences(&mirror, &id(1)), (3..=10).collect::<Vec<_>>());
    drop(collector);
}

#[test]
fn several_collectors_publish_beside_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let mirror = folder.path().join("mirror");
    fs::create_dir(&mirror).unwrap();
    for (name, host) in [("east", 1), ("west", 2)] {
        let own = folder.path().join(name);
        fs::create_dir(&own).unwrap();
        let config = format!(
            "name = \"{name}\"\npublish = \"file://{}\"\npublish_grace = \"1s\"",
            mirror.display()
        );
        let collector = Collector::start(&own, &config);
        assert_eq!(collector.send(&body(&id(host), &id(3), 1..=5)).0, 200);
        collector.seal();
        let manifest = format!("manifests/{name}.json");
        wait_for("the copy", || mirror.join(&manifest).exists());
        add_after_the_grace(&collector, host);
    }
    for host in [1, 2] {
        assert_eq!(sequences(&mirror, &id(host)), (1..=6).collect::<Vec<_>>());
    }
    assert_eq!(Dataset::open(&mirror).unwrap().verify().problems, []);
}

/// Makes the collector update the store two more times, the second time after the grace period.
fn add_after_the_grace(collector: &Collector, host: u64) {
    let published_ms = || {
        publish(collector)["last_published_time_ms"]
            .as_i64()
            .unwrap_or(0)
    };
    let first = published_ms();
    assert_eq!(collector.send(&body(&id(host), &id(3), 6..=6)).0, 200);
    collector.seal();
    wait_for("a second look", || published_ms() > first);
    let second = published_ms();
    wait_for("a third", || {
        collector.seal();
        published_ms() > second + 1000
    });
}

#[test]
fn a_dataset_of_others_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let mirror = folder.path().join("mirror");
    fs::create_dir(&mirror).unwrap();
    let config = format!("publish = \"file://{}\"", mirror.display());
    let collector = Collector::start(folder.path(), &config);
    add(&collector, 1..=10);
    wait_for("the copy", || is_same(&collector.dataset(), &mirror));
    drop(collector);
    // The collector's disk is lost, so the copy may be all that remains.
    fs::remove_dir_all(folder.path().join("data")).unwrap();
    let config = format!("{config}\npublish_grace = \"1s\"");
    let collector = Collector::start(folder.path(), &config);
    add(&collector, 100..=110);
    let said = collector.hear("cannot publish");
    assert!(said.contains("not put there from this one"), "{said}");
    assert_eq!(sequences(&mirror, &id(1)), (1..=10).collect::<Vec<_>>());
}

#[test]
fn a_copy_is_whole_whenever_the_collector_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mirror = folder.path().join("mirror");
    fs::create_dir(&mirror).unwrap();
    let config = format!(
        "publish = \"file://{}\"\npublish_grace = \"1s\"",
        mirror.display()
    );
    let mut struck = 0;
    for round in 1..=12 {
        let collector = Collector::start(folder.path(), &config);
        let next = round * 100;
        let (status, answer) = collector.send(&body(&id(1), &id(2), next..=next + 20));
        assert_eq!(status, 200, "{answer}");
        // Each kill strikes at a different step: while listing, uploading files, or replacing the manifest.
        collector.seal();
        std::thread::sleep(Duration::from_micros(500 * round.cast_unsigned()));
        collector.kill();
        struck += u32::from(!is_same(&collector.dataset(), &mirror));
        if mirror.join("manifest.json").exists() {
            assert_eq!(Dataset::open(&mirror).unwrap().verify().problems, []);
        }
    }
    assert!(struck > 0, "no kill fell into the work");
    let collector = Collector::start(folder.path(), &config);
    let is_exact =
        || is_same(&collector.dataset(), &mirror) && files_in(&mirror) == files_named(&mirror);
    wait_for("the copy", is_exact);
    let here = sequences(&collector.dataset(), &id(1));
    assert_eq!(sequences(&mirror, &id(1)), here);
    assert_eq!(here.len(), 12 * 21);
}

#[test]
fn a_store_that_never_answers_holds_nothing_up() {
    let folder = tempfile::tempdir().unwrap();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap(); // connections are never accepted
    let port = socket.local_addr().unwrap().port();
    let deployment = Deployment::new();
    let authority = deployment.pki().join("authority.crt");
    let collector = start_with_s3(folder.path(), port, &authority);
    let begin = Instant::now();
    for n in 0..3 {
        add(&collector, n * 10 + 1..=n * 10 + 10);
    }
    let expected: Vec<i64> = (1..=30).collect();
    assert_eq!(sequences(&collector.dataset(), &id(1)), expected);
    assert_eq!(publish(&collector)["last_published_time_ms"], Value::Null);
    assert_eq!(collector.end(), Some(0));
    assert!(begin.elapsed() < Duration::from_secs(45), "it waited"); // the connection times out after 60 s
}

#[test]
fn what_was_damaged_here_does_not_get_there() {
    let folder = tempfile::tempdir().unwrap();
    let mirror = folder.path().join("mirror");
    let config = format!("publish = \"file://{}\"", mirror.display());
    let collector = Collector::start(folder.path(), &config);
    add(&collector, 1..=10);
    let damaged = files_named(&collector.dataset()).pop_first().unwrap();
    let path = collector.dataset().join(&damaged);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    fs::create_dir(&mirror).unwrap();
    wait_for("it to be told", || {
        let failure = publish(&collector)["failure"].clone();
        failure.as_str().is_some_and(|f| f.contains("altered"))
    });
    assert!(!mirror.join(&damaged).exists());
    assert!(!mirror.join("manifest.json").exists());
}

/// A server of moto with TLS and a certificate of the deployment.
struct Moto {
    child: Child,
    url: String,
}

impl Moto {
    fn start(port: u16, pki: &Path) -> Self {
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let child = Command::new(checkout.join(".venv/bin/moto_server"))
            .args(["-H", "127.0.0.1", "-p", &port.to_string(), "-c"])
            .arg(pki.join("collector.crt"))
            .arg("-k")
            .arg(pki.join("collector.key"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("moto_server is missing: tests/setup installs it");
        let moto = Self {
            child,
            url: format!("https://127.0.0.1:{port}"),
        };
        wait_for("moto to listen, and a bucket", || {
            let made = client().put(format!("{}/traces", moto.url)).send_empty();
            made.is_ok_and(|made| made.status() == 200)
        });
        moto
    }

    fn get(&self, path: &str) -> Option<Vec<u8>> {
        let address = format!("{}/traces/{path}", self.url);
        // moto only checks that there is a signature, not that it is right.
        let request = client().get(&address).header("Authorization", "AWS test:");
        let mut answer = request.call().unwrap();
        let body = answer.body_mut().with_config().limit(1 << 30);
        let body = body.read_to_vec().unwrap();
        (answer.status() == 200).then_some(body)
    }

    fn keys(&self) -> BTreeSet<String> {
        let listed = self.get("?list-type=2&prefix=east/").unwrap();
        let listed = String::from_utf8(listed).unwrap();
        let keys = listed.split("<Key>east/").skip(1);
        keys.map(|rest| rest.split_once("</Key>").unwrap().0.to_owned())
            .collect()
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes a client that trusts any server, since only the collector's own checks are tested.
fn client() -> Agent {
    let tls = TlsConfig::builder()
        .disable_verification(true)
        .unversioned_rustls_crypto_provider(gleaner_trust::provider())
        .build();
    Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        .build()
        .into()
}

/// Makes a batch of a host's processes, whose names cannot be compressed.
fn incompressible() -> Vec<u8> {
    let (host, database) = (id(1), id(9));
    let mut rows = RowsBuilder::new(&ProcessRow::TABLE);
    let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
    for pid in 1..=12_000 {
        let mut name = String::new();
        while name.len() < 1500 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            name.push_str(&format!("{:08x}", random >> 32));
        }
        let identity = Identity {
            host_id: &host,
            database_id: &database,
            sequence: 1,
            time_ms: START_MS,
        };
        let process = ProcessRow {
            pid,
            name,
            ..ProcessRow::default()
        };
        rows.push(identity, process.to_values()).unwrap();
    }
    Batch::encode(&[(ProcessRow::TABLE, rows.finish().unwrap())]).unwrap()
}

fn start_with_s3(folder: &Path, port: u16, authority: &Path) -> Collector {
    let config = format!(
        "local_listen = \"127.0.0.1:0\"\nlocal_access = \"all\"\npublish = \"s3://traces/east\"\npublish_grace = \"1s\"\n\
         batch_limit = \"32MiB\"\n\
         [publish_options]\nregion = \"us-east-1\"\nendpoint = \"https://127.0.0.1:{port}\"\n"
    );
    let mut command = Command::new(program());
    command
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("SSL_CERT_FILE", authority);
    Collector::start_as(folder, &config, &mut command)
}

#[test]
fn s3_by_tls_has_the_same_dataset_also_after_it_was_away() {
    let deployment = Deployment::new();
    let pki: PathBuf = deployment.pki();
    let folder = tempfile::tempdir().unwrap();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    drop(socket);
    let collector = start_with_s3(folder.path(), port, &pki.join("authority.crt"));
    let (status, answer) = collector.send(&incompressible());
    assert_eq!(status, 200, "{answer}");
    collector.seal();
    collector.hear("cannot publish");
    let moto = Moto::start(port, &pki);
    let is_there = || {
        let text = fs::read(collector.dataset().join("manifest.json")).unwrap();
        moto.get("east/manifest.json") == Some(text)
    };
    wait_for("the copy", is_there);
    collector.hear("publishing again");
    for n in 3..=10 {
        add(&collector, n..=n); // all records are of one day
        wait_for("the copy", is_there);
    }
    let is_exact = || {
        let mut expected = files_named(&collector.dataset());
        expected.insert("manifest.json".to_owned());
        expected.len() <= 4 && moto.keys() == expected // merged files are gone
    };
    wait_for("the copy to be exact", is_exact);
    let mut longest = 0;
    for path in files_named(&collector.dataset()) {
        let here = fs::read(collector.dataset().join(&path)).unwrap();
        longest = longest.max(here.len());
        assert!(moto.get(&format!("east/{path}")) == Some(here), "{path}");
    }
    assert!(longest > 8 << 20, "one was put in parts: {longest}");
    assert_eq!(publish(&collector)["failure"], Value::Null);
}

#[test]
fn a_store_with_a_certificate_of_strangers_gets_nothing() {
    let (deployment, stranger) = (Deployment::new(), Deployment::new());
    let folder = tempfile::tempdir().unwrap();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    drop(socket);
    let moto = Moto::start(port, &stranger.pki());
    let authority = deployment.pki().join("authority.crt");
    let collector = start_with_s3(folder.path(), port, &authority);
    add(&collector, 1..=10);
    let said = collector.hear("cannot publish");
    assert!(said.contains("certificate"), "{said}");
    assert_eq!(moto.keys(), BTreeSet::new());
}
