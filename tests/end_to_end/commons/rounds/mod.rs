//! Hosts that share blocks, of which in each round one is killed, stopped, disconnected or lied to, or whose
//! source is unreachable or changed. Meanwhile, readers on all hosts compare every byte.
//!
//! The environment variable `GLEANER_KILL_ROUNDS` (default 20) sets the number of rounds. `GLEANER_SEED`
//! repeats a run, as far as timing allows.

mod fault;

use super::fleet::{Host, HostSettings, Site, member};
use super::hostile::{Conduct, HostileMember};
use super::injection::{FaultyHosts, avoids_a_member, run_rounds};
use super::mounted::assert_equal;
use super::readers::SOURCE_TIMEOUT_KEY;
use super::server::{Manner, Server};
use super::stage::{BLOCK, LARGE, Stage};
use fault::Fault;
use gleaner_harness::{Random, Relay, number, unused_address};
use rustix::process::Signal;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

const HOSTS: usize = 4;
/// Memory for 16 of the 40 blocks: all hosts together hold the file, and no host does.
const MEMORY_KEYS: &str = "local = \"1MiB\"\nhold = \"1MiB\"\n";

/// Hosts whose connections all pass relays.
struct Commons {
    /// Dropped first: their mounts lie in the stage's folder.
    hosts: Vec<Host>,
    /// Relay from each host to each other member; `None` for the host itself.
    cables: Vec<Vec<Option<Relay>>>,
    to_source: Relay,
    hostile: HostileMember,
    server: Server,
    stage: Stage,
    _site: Site,
    listen: Vec<SocketAddr>,
    wanted: Vec<u8>,
    /// Blocks that came from other hosts, of services that were restarted.
    shared_blocks: u64,
}

impl Commons {
    fn start(random: &mut Random) -> Self {
        let stage = Stage::new(random);
        let server = Server::start(stage.input(), Manner::Proper);
        let to_source = Relay::to(Some(server.address));
        let site = Site::new();
        let hostile = HostileMember::start(&site.certify(HOSTS));
        let listen: Vec<SocketAddr> = (0..HOSTS).map(|_| unused_address()).collect();
        let targets: Vec<_> = listen.iter().copied().chain([hostile.address]).collect();
        let cables: Vec<Vec<Option<Relay>>> = (0..HOSTS)
            .map(|from| {
                let targets = targets.iter().enumerate();
                let cable = |(to, address): (usize, &SocketAddr)| {
                    (to != from).then(|| Relay::to(Some(*address)))
                };
                targets.map(cable).collect()
            })
            .collect();
        let source = format!("http://{}", to_source.address);
        let keys = format!("{MEMORY_KEYS}{SOURCE_TIMEOUT_KEY}");
        let hosts = (0..HOSTS).map(|host| {
            let cables = cables[host].iter().enumerate();
            let settings = HostSettings {
                number: host,
                listen: listen[host],
                members: cables
                    .map(|(to, cable)| {
                        member(to, cable.as_ref().map_or(listen[host], |c| c.address))
                    })
                    .collect(),
                source: &source,
                points: vec![stage.point(&format!("host-{host}"))],
                keys: &keys,
            };
            Host::start(&stage, &site, settings)
        });
        Self {
            hosts: hosts.collect(),
            wanted: fs::read(stage.input().join(LARGE)).unwrap(),
            cables,
            to_source,
            hostile,
            server,
            stage,
            _site: site,
            listen,
            shared_blocks: 0,
        }
    }

    /// Relays between a host and all other hosts, in both directions.
    fn cables_of(&self, host: usize) -> impl Iterator<Item = (usize, &Relay)> {
        let all = self.cables.iter().enumerate().flat_map(|(from, cables)| {
            let cables = cables.iter().enumerate();
            cables.filter_map(move |(to, cable)| Some((from, to, cable.as_ref()?)))
        });
        let between = all.filter(|(_, to, _)| *to < HOSTS);
        let of_host = between.filter(move |(from, to, _)| *from == host || *to == host);
        of_host.map(|(_, to, cable)| (to, cable))
    }

    fn cables_between(&self, one: usize, other: usize) -> impl Iterator<Item = &Relay> {
        let both = [&self.cables[one][other], &self.cables[other][one]];
        both.into_iter().flatten()
    }

    /// Writes the first byte of a block at the source. The file keeps its time.
    fn write_at_source(&self, block: usize, byte: u8) {
        let path = self.stage.input().join(LARGE);
        let file = File::options().write(true).open(path).unwrap();
        let modified = file.metadata().unwrap().modified().unwrap();
        file.write_all_at(&[byte], (block * BLOCK) as u64).unwrap();
        file.set_modified(modified).unwrap();
    }
}

impl FaultyHosts for Commons {
    type Fault = Fault;

    fn files(&self) -> Vec<PathBuf> {
        let hosts = self.hosts.iter();
        hosts.map(|host| host.points[0].join(LARGE)).collect()
    }

    fn wanted(&self) -> Vec<u8> {
        self.wanted.clone()
    }

    fn begin(&mut self, fault: Fault) {
        match fault {
            Fault::Kill(host) => self.hosts[host].running().kill(),
            Fault::Stop(host) => self.hosts[host].running().signal(Signal::STOP),
            Fault::Part(one, other) => self.cables_between(one, other).for_each(|c| c.hold(true)),
            Fault::CutOff(host) => self.cables_of(host).for_each(|(_, cable)| {
                cable.lead_to(None);
                cable.cut();
            }),
            Fault::Garble(host) => self
                .cables_of(host)
                .filter(|(to, _)| *to == host)
                .for_each(|(_, cable)| cable.alter(|bytes| bytes.fill(0x55))),
            Fault::SourceSilent => self.to_source.hold(true),
            Fault::SourceGone => {
                self.to_source.lead_to(None);
                self.to_source.cut();
            }
            Fault::SourceChanged(block) => self.write_at_source(block, !self.wanted[block * BLOCK]),
            Fault::Hostile(conduct) => self.hostile.behave(conduct),
        }
    }

    fn end(&mut self, fault: Fault) {
        match fault {
            Fault::Kill(host) => self.hosts[host].restart(),
            Fault::Stop(host) => self.hosts[host].running().signal(Signal::CONT),
            Fault::Part(one, other) => self.cables_between(one, other).for_each(|c| c.hold(false)),
            Fault::CutOff(host) => self
                .cables_of(host)
                .for_each(|(to, cable)| cable.lead_to(Some(self.listen[to]))),
            Fault::Garble(host) => self.cables_of(host).for_each(|(_, c)| c.alter_nothing()),
            Fault::SourceSilent => self.to_source.hold(false),
            Fault::SourceGone => self.to_source.lead_to(Some(self.server.address)),
            Fault::SourceChanged(block) => self.write_at_source(block, self.wanted[block * BLOCK]),
            Fault::Hostile(_) => self.hostile.behave(Conduct::Empty),
        }
    }

    /// Restarts hosts that would not ask some member for a minute: the next round needs them.
    fn recover(&mut self) {
        let shared = AtomicU64::new(0);
        thread::scope(|scope| {
            for host in &mut self.hosts {
                let shared = &shared;
                scope.spawn(move || {
                    let status = host.status();
                    if avoids_a_member(&status) {
                        let count = status["cluster_blocks_count"].as_u64().unwrap();
                        shared.fetch_add(count, Ordering::SeqCst);
                        host.restart();
                    }
                });
            }
        });
        self.shared_blocks += shared.into_inner();
    }
}

#[test]
fn whatever_fails_every_byte_is_right_and_no_read_hangs() {
    let mut random = Random::new();
    let mut commons = Commons::start(&mut random);
    let rounds = number("GLEANER_KILL_ROUNDS", 20);
    run_rounds(&mut commons, rounds, &mut random);
    for host in &commons.hosts {
        assert_equal(&host.points[0], &commons.stage.input());
        commons.shared_blocks += host.figure("cluster_blocks_count");
    }
    assert!(commons.shared_blocks > 0, "no host asked another one");
    assert!(
        commons.hostile.dishonest() > 0,
        "nobody asked the hostile member"
    );
}
