//! Hosts that share the blocks of one sealed folder: real services with certificates, on loopback addresses.

use super::fleet::{Host, HostSettings, Site, host_id, member};
use super::mounted::assert_equal;
use super::server::{Manner, Server};
use super::stage::{LARGE, LARGE_BLOCKS, Stage, is_mounted};
use gleaner_harness::{Random, unused_address, wait_for};
use std::fs;
use std::net::SocketAddr;
use std::thread;

/// Memory and times that no test exhausts.
const KEYS: &str =
    "hold = \"64MiB\"\npeer_timeout = \"60s\"\nfetch_wait = \"60s\"\nsource_timeout = \"200s\"\n";

/// Hosts with the same list of members and the same source.
struct Fleet {
    /// Dropped first: their mounts lie in the stage's folder.
    hosts: Vec<Host>,
    stage: Stage,
    server: Server,
    _site: Site,
}

impl Fleet {
    /// Starts services with this many mounts each.
    fn start(hosts_count: usize, mounts_count: usize) -> Self {
        let stage = Stage::new(&mut Random::new());
        let server = Server::start(stage.input(), Manner::Proper);
        let site = Site::new();
        let addresses: Vec<SocketAddr> = (0..hosts_count).map(|_| unused_address()).collect();
        let members = addresses.iter().enumerate();
        let members: Vec<_> = members.map(|(number, at)| member(number, *at)).collect();
        let source = server.url();
        let hosts = (0..hosts_count).map(|number| {
            let settings = HostSettings {
                number,
                listen: addresses[number],
                members: members.clone(),
                source: &source,
                points: (0..mounts_count)
                    .map(|mount| stage.point(&format!("host-{number}-{mount}")))
                    .collect(),
                keys: KEYS,
            };
            Host::start(&stage, &site, settings)
        });
        let hosts = hosts.collect();
        Self {
            hosts,
            stage,
            server,
            _site: site,
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
    let line = format!("gleaner_commons_reads_total{{commons=\"test\",from=\"cluster\"}} {reads}");
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
fn eight_mounts_that_read_every_byte_at_once_fetch_each_block_about_once() {
    let fleet = Fleet::start(8, 1);
    let input = fleet.stage.input();
    thread::scope(|scope| {
        for host in &fleet.hosts {
            let (point, input) = (&host.points[0], &input);
            scope.spawn(move || assert_equal(point, input));
        }
    });
    let fetched = fleet.hosts.iter();
    let fetched: u64 = fetched
        .map(|host| host.figure("fetched_blocks_count"))
        .sum();
    let blocks = fleet.stage.blocks_count();
    assert!(
        (blocks..=blocks + blocks / 10).contains(&fetched),
        "{fetched} fetches of {blocks} blocks"
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
