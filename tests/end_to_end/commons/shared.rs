//! Hosts that share the blocks of one sealed folder: real services with certificates, on loopback addresses.

use super::mounted::assert_equal;
use super::server::{Manner, Server};
use super::stage::{Stage, commons, is_mounted, unmount};
use gleaner_harness::{Random, Running, succeed, unused_address, wait_for};
use gleaner_trust::{Authority, Role};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use tempfile::TempDir;

const LARGE: &str = "lib/deep/er/large";
/// Number of blocks of [`LARGE`].
const LARGE_BLOCKS: u64 = 40;

/// Id of a host. One of digits alone would be no name of a server.
fn host_id(number: usize) -> String {
    format!("a{number:07x}{number:024x}")
}

/// Hosts with the same list of members and the same source.
struct Fleet {
    /// Dropped first: their mounts lie in the stage's folder.
    hosts: Vec<Host>,
    stage: Stage,
    server: Server,
    _folder: TempDir,
}

/// A service; its mounts are removed when the value is dropped.
struct Host {
    running: Option<Running>,
    points: Vec<PathBuf>,
    socket: PathBuf,
}

impl Fleet {
    /// Starts services with this many mounts each.
    fn start(hosts_count: usize, mounts_count: usize) -> Self {
        let stage = Stage::new(&mut Random::new());
        let server = Server::start(stage.input(), Manner::Proper);
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::init(&folder.path().join("pki"), "test", 10).unwrap();
        let members: Vec<(String, SocketAddr)> = (0..hosts_count)
            .map(|number| (host_id(number), unused_address()))
            .collect();
        let hosts = (0..hosts_count).map(|number| {
            let points: Vec<_> = (0..mounts_count)
                .map(|mount| stage.point(&format!("host-{number}-{mount}")))
                .collect();
            let folder = folder.path();
            Host::start(
                &stage, &server, &authority, folder, &members, number, points,
            )
        });
        let hosts = hosts.collect();
        Self {
            hosts,
            stage,
            server,
            _folder: folder,
        }
    }

    /// Number of requests of the large file that the source has received.
    fn source_reads(&self) -> u64 {
        self.server.requests(&format!("/{LARGE}"))
    }

    /// Waits until each block of the large file is held by its home.
    fn wait_for_homes(&self) {
        wait_for("all blocks at their homes", || {
            let held = self.hosts.iter().map(|host| {
                let status = host.status();
                status["cluster"]["hold_frames_count"].as_u64().unwrap()
            });
            held.sum::<u64>() == LARGE_BLOCKS
        });
    }

    fn large(&self) -> Vec<u8> {
        fs::read(self.stage.input().join(LARGE)).unwrap()
    }
}

impl Host {
    fn start(
        stage: &Stage,
        server: &Server,
        authority: &Authority,
        folder: &Path,
        members: &[(String, SocketAddr)],
        number: usize,
        points: Vec<PathBuf>,
    ) -> Self {
        let (host_id, address) = &members[number];
        let path = |end: &str| folder.join(format!("host-{number}.{end}"));
        let role = Role::Host {
            host_id: host_id.clone(),
        };
        let issued = authority.issue(&role, 10).unwrap();
        fs::write(path("crt"), issued.certificate_pem).unwrap();
        fs::write(path("key"), issued.key_pem).unwrap();
        let list: Vec<_> = members
            .iter()
            .map(|(host_id, address)| format!("{host_id}@{address}"))
            .collect();
        let mut text = format!(
            "name = \"test\"\nhost_id = {host_id:?}\nlisten = \"{address}\"\nmembers = {list:?}\n\
             certificate = {:?}\nkey = {:?}\nauthority = {:?}\nsocket = {:?}\n\
             local_listen = \"127.0.0.1:0\"\nkernel_cache = false\nhold = \"64MiB\"\n\
             peer_timeout = \"60s\"\nfetch_wait = \"60s\"\nsource_timeout = \"200s\"\n",
            path("crt"),
            path("key"),
            folder.join("pki/authority.crt"),
            path("sock"),
        );
        for point in &points {
            text.push_str(&format!(
                "[[mounts]]\ncatalog = \"{}{}\"\nfolder = {point:?}\nsource = \"{}\"\n",
                stage.catalog().display(),
                stage.pin,
                server.url(),
            ));
        }
        fs::write(path("toml"), text).unwrap();
        let mut command = commons();
        command.arg("run").arg("--config").arg(path("toml"));
        let running = Running::start(command.stdout(Stdio::piped()));
        for _ in &points {
            assert!(running.printed().starts_with("mounted "));
        }
        Self {
            running: Some(running),
            points,
            socket: path("sock"),
        }
    }

    fn status(&self) -> serde_json::Value {
        let mut command = commons();
        command.args(["status", "--json", "--socket"]);
        serde_json::from_str(&succeed(command.arg(&self.socket))).unwrap()
    }

    fn figure(&self, key: &str) -> u64 {
        let status = self.status();
        let figure = status[key].as_u64();
        figure.unwrap_or_else(|| panic!("no {key} in {status}"))
    }

    fn running(&self) -> &Running {
        self.running.as_ref().unwrap()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.kill();
        }
        for point in &self.points {
            unmount(point);
        }
    }
}

#[test]
fn a_block_that_one_host_has_read_costs_the_others_no_source_read() {
    let fleet = Fleet::start(3, 2);
    let [first, second, third] = &fleet.hosts[..] else {
        panic!("three hosts");
    };
    let wanted = fleet.large();
    assert!(fs::read(first.points[0].join(LARGE)).unwrap() == wanted);
    // Both mounts of one host have one memory.
    assert!(fs::read(first.points[1].join(LARGE)).unwrap() == wanted);
    assert_eq!(fleet.source_reads(), LARGE_BLOCKS);
    fleet.wait_for_homes();
    for host in [second, third] {
        assert!(fs::read(host.points[0].join(LARGE)).unwrap() == wanted);
        assert_eq!(host.figure("cluster_blocks_count"), LARGE_BLOCKS);
        assert_eq!(host.figure("fetched_blocks_count"), 0);
    }
    assert_eq!(fleet.source_reads(), LARGE_BLOCKS);

    let said = third.running().hear("listening on http://");
    let at = said.find("http://").unwrap();
    let mut scraped = ureq::get(format!("{}/metrics", &said[at..]))
        .call()
        .unwrap();
    let text = scraped.body_mut().read_to_string().unwrap();
    let reads = third.figure("cluster_reads_count");
    let line = format!("gleaner_commons_reads_total{{from=\"cluster\"}} {reads}");
    assert!(text.lines().any(|found| found == line), "{line} in {text}");
}

#[test]
fn reads_go_on_and_are_right_when_a_member_is_killed() {
    let fleet = Fleet::start(3, 1);
    let [first, second, third] = &fleet.hosts[..] else {
        panic!("three hosts");
    };
    let wanted = fleet.large();
    assert!(fs::read(first.points[0].join(LARGE)).unwrap() == wanted);
    fleet.wait_for_homes();
    third.running().kill();
    assert_equal(&second.points[0], &fleet.stage.input());
    assert_equal(&first.points[0], &fleet.stage.input());
    // Blocks whose home still runs do not need the source.
    assert!(fleet.source_reads() < 2 * LARGE_BLOCKS);
    let peers = second.status()["peers"].clone();
    let asked: Vec<_> = peers.as_array().unwrap().iter().collect();
    let is_asked = |number: usize| {
        let host_id = host_id(number);
        let peer = asked.iter().find(|peer| peer["host_id"] == host_id);
        peer.unwrap()["is_asked"].as_bool()
    };
    assert_eq!((is_asked(0), is_asked(2)), (Some(true), Some(false)));
}

#[test]
fn a_fleet_that_starts_at_once_reads_each_block_about_once() {
    let fleet = Fleet::start(8, 1);
    let wanted = fleet.large();
    thread::scope(|scope| {
        for host in &fleet.hosts {
            let (point, wanted) = (&host.points[0], &wanted);
            scope.spawn(move || {
                assert!(fs::read(point.join(LARGE)).unwrap() == *wanted);
            });
        }
    });
    let reads = fleet.source_reads();
    let most = LARGE_BLOCKS + LARGE_BLOCKS / 10;
    assert!(
        (LARGE_BLOCKS..=most).contains(&reads),
        "{reads} source reads"
    );
}

#[test]
fn sigterm_unmounts_all_folders() {
    let mut fleet = Fleet::start(2, 2);
    for host in &mut fleet.hosts {
        assert!(host.points.iter().all(|point| is_mounted(point)));
        let (code, said) = host.running.take().unwrap().end();
        assert_eq!(code, Some(0), "{said:?}");
        assert!(!host.points.iter().any(|point| is_mounted(point)));
    }
}
