//! `gleaner lab` runs real daemons in network namespaces. Nothing of a lab must remain after its end.

use gleaner_dataset::Dataset;
use gleaner_schemas::rows::TABLES;
use gleaner_tests::program;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const COLLECTOR: &str = "10.77.0.1";

/// Lock that allows only one lab on this machine at a time, even if tests of several checkouts run. When it
/// is dropped, the lab is removed in any case.
struct LabLock {
    folder: tempfile::TempDir,
    _lock: File,
}

impl LabLock {
    fn begin() -> Self {
        let lock = File::create("/run/gleaner-lab-test.lock").unwrap();
        lock.lock().unwrap();
        Self {
            folder: tempfile::tempdir().unwrap(),
            _lock: lock,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("lab")
    }

    fn up(&self, args: &[&str]) -> Output {
        let path = self.path();
        lab(&[&["up", "--folder", path.to_str().unwrap()], args].concat())
    }
}

impl Drop for LabLock {
    fn drop(&mut self) {
        lab(&["down"]);
    }
}

fn lab(args: &[&str]) -> Output {
    let mut command = Command::new(program("gleaner").unwrap());
    command
        .arg("lab")
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}", said(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn status() -> Value {
    serde_json::from_str(&succeeded(&lab(&["status", "--json"]))).unwrap()
}

/// Waits until the lab's status is as `wanted`. After two minutes, fails and prints the status.
#[track_caller]
fn wait_for(what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let status = status();
        if wanted(&status) {
            return status;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "waited for {what}: {status:#}"
        );
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap()
}

/// Process ids of all daemons in the lab.
fn pids(status: &Value) -> Vec<u64> {
    let nodes = list(status, "hosts").iter().chain([&status["collector"]]);
    nodes
        .flat_map(|node| list(node, "daemons"))
        .map(|daemon| daemon["pid"].as_u64().unwrap())
        .collect()
}

/// Returns true if the process exists and has not ended.
fn runs(pid: u64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes()[0]);
    !matches!(state, None | Some(b'Z' | b'X'))
}

/// Names of the files in a folder; empty if the folder does not exist.
fn names(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}

/// State of the machine's own network, which a lab must not change: interfaces, addresses, routes and rules.
fn network() -> Vec<String> {
    [
        &["link"][..],
        &["addr"],
        &["route", "show", "table", "all"],
        &["rule"],
    ]
    .iter()
    .map(|args| {
        let output = Command::new("ip").arg("-o").args(*args).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        // Remaining lifetimes of addresses are cut off, since they change with time.
        let lines = text
            .lines()
            .map(|line| line.split(" valid_lft").next().unwrap());
        lines.collect::<Vec<_>>().join("\n")
    })
    .collect()
}

/// Asserts that nothing of a lab remains.
#[track_caller]
fn nothing_left(pids: &[u64], before: &[String]) {
    let of_lab = |name: &String| name.starts_with("gleaner-lab");
    assert_eq!(names("/run/netns").iter().find(|n| of_lab(n)), None);
    assert_eq!(names("/etc/netns").iter().find(|n| of_lab(n)), None);
    assert!(fs::symlink_metadata("/run/gleaner-lab").is_err());
    let left: Vec<&u64> = pids.iter().filter(|pid| runs(**pid)).collect();
    assert!(left.is_empty(), "still running: {left:?}");
    assert_eq!(network(), before);
}

/// Runs `act` in a network namespace, in a separate thread since namespaces apply to threads.
fn inside<T: Send + 'static>(
    namespace: &str,
    act: impl FnOnce() -> T + Send + 'static,
) -> std::thread::JoinHandle<T> {
    let handle = File::open(Path::new("/run/netns").join(namespace)).unwrap();
    std::thread::spawn(move || {
        move_into_link_name_space(handle.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        act()
    })
}

#[test]
fn three_hosts_ship_until_the_lab_goes_down_and_leaves_nothing() {
    let one = LabLock::begin();
    let before = network();
    succeeded(&one.up(&["--hosts", "3", "--rate", "100mbit"]));
    assert_eq!(network(), before, "the machine's own network was touched");
    // The first batch of a host may contain only events. Its name arrives with the first sample.
    let is_named = |host: &Value| host["host_name"].is_string();
    let status = wait_for("three hosts that ship", |s| {
        let named = s["collector"]["status"]["hosts"].as_array();
        list(s, "hosts")
            .iter()
            .all(|host| host["is_shipping"] == true)
            && named.is_some_and(|named| named.iter().filter(|host| is_named(host)).count() == 3)
    });
    let hosts = list(&status, "hosts");
    assert_eq!(hosts.len(), 3);
    let ids: BTreeSet<&str> = hosts
        .iter()
        .map(|h| h["host_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), 3, "each has a name of its own");
    let of_collector = list(&status["collector"]["status"], "hosts");
    let names: BTreeSet<&str> = of_collector
        .iter()
        .map(|h| h["host_name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        BTreeSet::from(["gleaner-lab-1", "gleaner-lab-2", "gleaner-lab-3"])
    );
    for host in hosts {
        assert!(
            list(host, "daemons")
                .iter()
                .all(|d| d["is_running"] == true),
            "{host:#}"
        );
    }
    // The recruiter knows how much each host could lend once the host has announced itself.
    let could_lend = |host: &Value| {
        let quota = &host["quota"];
        host["is_linked"] == true && quota["idle_quota_bytes"].as_u64() > Some(0)
    };
    let all_could = |s: &Value| list(s, "hosts").iter().all(could_lend);
    wait_for("three hosts that could lend", all_could);
    let text = succeeded(&lab(&["status"]));
    assert!(
        text.contains("100mbit") && text.contains("gleaner-lab-3"),
        "{text}"
    );

    let pids = pids(&status);
    assert_eq!(pids.len(), 11);
    let second = one.up(&[]);
    assert!(!second.status.success() && said(&second).contains("a lab is running"));
    assert!(
        pids.iter().all(|pid| runs(*pid)),
        "a second lab took the first down"
    );

    let is_sealed = |s: &Value| s["collector"]["status"]["dataset_rows_count"].as_u64() > Some(100);
    wait_for("a dataset", is_sealed);
    succeeded(&lab(&["down", "--keep"]));
    nothing_left(&pids, &before);
    every_record_once(&one.path().join("gleaner-lab-collector/dataset"), &ids);
    assert!(succeeded(&lab(&["down"])).contains("no lab"), "down twice");
    assert_eq!(lab(&["status"]).status.code(), Some(1));
}

#[test]
fn a_clerk_borrows_what_the_hosts_lend() {
    let one = LabLock::begin();
    let before = network();
    let up = succeeded(&one.up(&["--hosts", "2", "--borrow", "96MiB"]));
    let socket = one.path().join("gleaner-lab-clerk/clerk.sock");
    let url = format!("nbd+unix:///?socket={}", socket.display());
    assert!(up.contains(&url), "{up}");
    let is_up = |server: &Value| server["state"] == "up";
    wait_for("a lease of the clerk's", |s| {
        let servers = s["clerk"]["status"]["servers"].as_array();
        servers.is_some_and(|servers| servers.iter().any(is_up))
    });

    // An NBD client writes data to the clerk's device and reads the same data back. Some of it comes from a
    // host's memory.
    let folder = tempfile::tempdir().unwrap();
    let [here, back] = ["here", "back"].map(|name| folder.path().join(name));
    let mut bytes = vec![0; 96 << 20];
    let mut random = File::open("/dev/urandom").unwrap();
    random.read_exact(&mut bytes[..8 << 20]).unwrap();
    fs::write(&here, &bytes).unwrap();
    for (from, to) in [
        (here.to_str().unwrap(), url.as_str()),
        (url.as_str(), back.to_str().unwrap()),
    ] {
        let mut copy = Command::new("nbdcopy");
        succeeded(&copy.args([from, to]).output().unwrap());
    }
    assert!(fs::read(&back).unwrap() == bytes);
    let status = status();
    let device = &status["clerk"]["status"];
    assert_eq!(device["size_bytes"], 96 << 20);
    assert!(
        device["counters"]["server_reads_count"].as_u64() > Some(0),
        "{device:#}"
    );
    let text = succeeded(&lab(&["status"]));
    assert!(text.contains(&url), "{text}");

    let clerk = list(&status["clerk"], "daemons")[0]["pid"]
        .as_u64()
        .unwrap();
    let pids: Vec<u64> = pids(&status).into_iter().chain([clerk]).collect();
    succeeded(&lab(&["down"]));
    nothing_left(&pids, &before);
    assert!(!one.path().exists());
}

#[test]
fn a_file_that_one_host_has_read_comes_to_the_other_from_memory() {
    const BLOCKS: u64 = 20;
    let one = LabLock::begin();
    let before = network();
    let sealed = tempfile::tempdir().unwrap();
    let mut bytes = vec![0; (BLOCKS as usize) << 16];
    let mut random = File::open("/dev/urandom").unwrap();
    random.read_exact(&mut bytes).unwrap();
    fs::write(sealed.path().join("file"), &bytes).unwrap();
    let source = sealed.path().to_str().unwrap();
    let up = succeeded(&one.up(&["--hosts", "2", "--commons", source]));
    let first = status();
    let [here, there] = [0_usize, 1].map(|host| {
        let path = first["hosts"][host]["commons"]["path"].as_str();
        PathBuf::from(path.unwrap())
    });
    assert!(up.contains(here.to_str().unwrap()), "{up}");
    assert!(fs::read(here.join("file")).unwrap() == bytes);
    let held = |host: &Value| host["commons"]["status"]["cluster"]["hold_frames_count"].as_u64();
    wait_for("all blocks at their homes", |s| {
        list(s, "hosts").iter().filter_map(held).sum::<u64>() == BLOCKS
    });
    assert!(fs::read(there.join("file")).unwrap() == bytes);
    let status = status();
    let figures = |host: usize| &status["hosts"][host]["commons"]["status"];
    assert_eq!(figures(0)["fetched_blocks_count"], BLOCKS);
    assert_eq!(figures(1)["fetched_blocks_count"], 0);
    assert_eq!(figures(1)["cluster_blocks_count"], BLOCKS);
    let text = succeeded(&lab(&["status"]));
    assert!(
        text.contains(source) && text.contains("read from memory / hosts / source"),
        "{text}"
    );

    let pids = pids(&status);
    assert_eq!(pids.len(), 10);
    succeeded(&lab(&["down"]));
    nothing_left(&pids, &before);
    assert!(!one.path().exists());
    assert!(fs::read(sealed.path().join("file")).unwrap() == bytes);
}

/// Asserts that the dataset has all records of these hosts since the first record, each once.
fn every_record_once(dataset: &Path, hosts: &BTreeSet<&str>) {
    let dataset = Dataset::open(dataset).unwrap();
    let found = dataset.hosts().unwrap();
    assert_eq!(
        found.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        *hosts
    );
    for host in hosts {
        let mut sequences = Vec::new();
        for table in TABLES.iter().filter(|table| table.has_own_time()) {
            let rows = dataset.read_host(table, host, &["sequence"]).unwrap();
            sequences.extend(
                gleaner_tests::integers(&rows)
                    .concat()
                    .into_iter()
                    .flatten(),
            );
        }
        sequences.sort_unstable();
        let expected: Vec<i64> = (1..=sequences.len() as i64).collect();
        assert_eq!(sequences, expected, "{host}");
    }
}

#[test]
fn what_a_crash_leaves_is_removed_and_what_is_somebodys_is_not() {
    let one = LabLock::begin();
    let before = network();
    succeeded(&one.up(&["--hosts", "1"]));
    let ours = pids(&status());
    // The state file is altered. The lab's own processes are not recorded in it, as if `up` had been killed
    // before. Instead it contains a process id that now belongs to another process.
    let mut foreign = ForeignProcess(Command::new("sleep").arg("600").spawn().unwrap());
    let path = one.path().join("lab.json");
    let mut state: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let mut other = state["started"][0].clone();
    other["process"]["pid"] = foreign.0.id().into();
    state["started"] = vec![other].into();
    fs::write(&path, state.to_string()).unwrap();

    // A process that is not the lab's runs in one of the lab's namespaces.
    let mut guest = ForeignProcess(
        Command::new("ip")
            .args(["netns", "exec", "gleaner-lab-1", "sleep", "600"])
            .spawn()
            .unwrap(),
    );
    wait_for("the guest", |_| {
        fs::read_to_string(format!("/proc/{}/comm", guest.0.id())).is_ok_and(|c| c == "sleep\n")
    });
    let refused = lab(&["down"]);
    assert!(!refused.status.success());
    assert!(
        said(&refused).contains(&guest.0.id().to_string()),
        "{}",
        said(&refused)
    );
    assert!(guest.0.try_wait().unwrap().is_none(), "the guest was ended");
    guest.end();

    succeeded(&lab(&["down"]));
    nothing_left(&ours, &before);
    assert!(!one.path().exists());
    assert!(
        foreign.0.try_wait().unwrap().is_none(),
        "another's process was ended"
    );
    foreign.end();
}

/// A process that does not belong to the lab; killed when dropped.
struct ForeignProcess(Child);

impl ForeignProcess {
    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for ForeignProcess {
    fn drop(&mut self) {
        self.end();
    }
}

#[test]
fn links_are_as_slow_and_as_lossy_as_was_asked() {
    let one = LabLock::begin();
    succeeded(&one.up(&["--hosts", "1", "--rate", "10mbit"]));
    // At 10 Mbit/s, 2 MB take 1.6 s, or a little less because of the token bucket.
    const BYTES: usize = 2_000_000;
    let (port, ready) = std::sync::mpsc::channel();
    let received = inside("gleaner-lab-collector", move || {
        let listener = TcpListener::bind((COLLECTOR, 0)).unwrap();
        port.send(listener.local_addr().unwrap()).unwrap();
        let mut bytes = Vec::new();
        listener
            .accept()
            .unwrap()
            .0
            .read_to_end(&mut bytes)
            .unwrap();
        bytes.len()
    });
    let to = ready.recv().unwrap();
    let begun = Instant::now();
    let sent = inside("gleaner-lab-1", move || {
        TcpStream::connect(to)
            .unwrap()
            .write_all(&vec![0; BYTES])
            .unwrap();
    });
    sent.join().unwrap();
    assert_eq!(received.join().unwrap(), BYTES);
    let took = begun.elapsed();
    assert!(
        took > Duration::from_millis(1300),
        "{BYTES} bytes in {took:?}"
    );
    succeeded(&lab(&["down"]));

    succeeded(&one.up(&["--hosts", "1", "--loss", "50%"]));
    let (port, ready) = std::sync::mpsc::channel();
    let received = inside("gleaner-lab-collector", move || {
        let socket = UdpSocket::bind((COLLECTOR, 0)).unwrap();
        port.send(socket.local_addr().unwrap()).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let (mut count, mut byte) = (0, [0]);
        while socket.recv(&mut byte).unwrap() > 0 && byte[0] == 0 {
            count += 1;
        }
        count
    });
    let to = ready.recv().unwrap();
    let sent = inside("gleaner-lab-1", move || {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        for _ in 0..500 {
            socket.send_to(&[0], to).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        for _ in 0..100 {
            socket.send_to(&[1], to).unwrap(); // marks the end; sent often, since it may be lost too
        }
    });
    sent.join().unwrap();
    let received = received.join().unwrap();
    assert!(
        (50..400).contains(&received),
        "{received} of 500 came through at 50 % loss"
    );
}

#[test]
fn without_root_it_says_so() {
    let output = Command::new("unshare")
        .args(["--user", "--"])
        .arg(program("gleaner").unwrap())
        .args(["lab", "up"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("need root"), "{}", said(&output));
}
