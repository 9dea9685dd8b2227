//! Rounds of faults: in each, a service, a memory server or the recruiter is killed, a service is stopped, or an owner
//! returns. Meanwhile, readers on all hosts compare every byte.
//!
//! The environment variable `GLEANER_KILL_ROUNDS` (default 8) sets the number of rounds of both policies together;
//! `gms` has a quarter of them. `GLEANER_SEED` repeats a run, as far as timing allows.

use super::deployment::{Host, RecruitedFleet};
use crate::commons::injection::{FaultyHosts, avoids_a_member, run_rounds};
use crate::commons::mounted::assert_equal;
use crate::commons::readers::{RoundFault, SOURCE_TIMEOUT_KEY};
use crate::commons::stage::{LARGE, Stage};
use gleaner_harness::{Random, number, wait_for};
use rustix::process::Signal;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// Memory that each host leases at most. The first host needs the others' memory, so that some blocks always come from
/// another host. A lease of a killed service lasts until its term ends; many of this size fit in a host's quota.
const HOLDS: [&str; 3] = ["0B", "8MiB", "8MiB"];
/// Duration of a stop: longer than `peer_timeout`, 500 ms by default.
const STOP: Duration = Duration::from_millis(1500);

/// A fault of one host, or of the recruiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    KillService(usize),
    StopService(usize),
    KillRecruiter,
    KillMemoryServer(usize),
    ReturnOwner(usize),
}

impl RoundFault for Fault {
    fn all(random: &mut Random) -> Vec<Self> {
        let hosts = HOLDS.len() as u64;
        // All hosts but the first one have leases.
        let mut from = |first: u64| (first + random.below(hosts - first)) as usize;
        vec![
            Self::KillService(from(0)),
            Self::StopService(from(0)),
            Self::KillRecruiter,
            Self::KillMemoryServer(from(1)),
            Self::ReturnOwner(from(1)),
        ]
    }

    fn kills(self, host: usize) -> bool {
        self == Self::KillService(host)
    }

    fn stops(self, host: usize) -> bool {
        self == Self::StopService(host)
    }

    fn loses(self, _block: usize) -> bool {
        false
    }
}

/// Hosts that suffer faults.
struct FaultyFleet {
    fleet: RecruitedFleet,
    /// Blocks that came from other hosts, of services that were restarted.
    shared_blocks: u64,
}

impl FaultyFleet {
    /// Asserts that no program has ended by itself.
    #[track_caller]
    fn assert_running(&self) {
        let of_host = |host: &Host| {
            host.service.running.is_running() && host.memory_server.running.is_running()
        };
        assert!(
            self.fleet.hosts.iter().all(of_host),
            "a program of a host has died"
        );
        assert!(
            self.fleet.recruiter.running.is_running(),
            "the recruiter has died"
        );
    }

    /// Counts the shared blocks of a service that is about to be killed.
    fn count_shared(&mut self, host: usize) {
        self.shared_blocks += self.fleet.hosts[host].figure(None, "cluster_blocks_count");
    }

    /// Waits until every host is linked with the recruiter, and knows all others.
    fn wait_until_listed(&self) {
        for host in &self.fleet.hosts {
            wait_for("the members", || self.fleet.is_joined(&host.status()));
        }
    }
}

impl FaultyHosts for FaultyFleet {
    type Fault = Fault;

    fn files(&self) -> Vec<PathBuf> {
        let hosts = self.fleet.hosts.iter();
        hosts.map(|host| host.point.join(LARGE)).collect()
    }

    fn wanted(&self) -> Vec<u8> {
        self.fleet.large()
    }

    fn prepare(&self, fault: Fault) {
        if let Fault::KillMemoryServer(host) | Fault::ReturnOwner(host) = fault {
            let host = &self.fleet.hosts[host];
            wait_for("a lease", || host.global("leased_bytes") > 0);
        }
    }

    fn begin(&mut self, fault: Fault) {
        self.assert_running();
        match fault {
            Fault::KillService(host) => {
                self.count_shared(host);
                self.fleet.hosts[host].service.running.kill();
            }
            Fault::StopService(host) => {
                let service = &self.fleet.hosts[host].service;
                service.running.signal(Signal::STOP);
                thread::sleep(STOP);
            }
            Fault::KillRecruiter => {
                self.fleet.recruiter.running.kill();
                for host in &self.fleet.hosts {
                    wait_for("the link to end", || !self.fleet.is_joined(&host.status()));
                }
            }
            Fault::KillMemoryServer(host) => self.fleet.hosts[host].kill_memory_server_of_blocks(),
            Fault::ReturnOwner(host) => self.fleet.hosts[host].return_owner_of_blocks(),
        }
    }

    fn end(&mut self, fault: Fault) {
        match fault {
            Fault::KillService(host) => self.fleet.hosts[host].restart_service(),
            Fault::StopService(host) => {
                let service = &self.fleet.hosts[host].service;
                service.running.signal(Signal::CONT);
            }
            Fault::KillRecruiter => self.fleet.restart_recruiter(),
            Fault::KillMemoryServer(host) => self.fleet.hosts[host].restart_memory_server(),
            Fault::ReturnOwner(host) => self.fleet.hosts[host].agent.owner_leaves(),
        }
    }

    /// Restarts hosts that would not ask some member for a minute: the next round needs them.
    fn recover(&mut self) {
        self.assert_running();
        for host in 0..self.fleet.hosts.len() {
            if avoids_a_member(&self.fleet.hosts[host].status()) {
                self.count_shared(host);
                self.fleet.hosts[host].restart_service();
            }
        }
        self.wait_until_listed();
    }
}

fn run_rounds_under(policy: &str, rounds: u64) {
    let mut random = Random::new();
    let keys = format!("policy = {policy:?}\n{SOURCE_TIMEOUT_KEY}");
    let fleet = RecruitedFleet::start(Stage::new(&mut random), &HOLDS, &keys);
    fleet.wait_until_joined(&HOLDS);
    let mut faulty = FaultyFleet {
        fleet,
        shared_blocks: 0,
    };
    run_rounds(&mut faulty, rounds, &mut random);
    for host in 0..HOLDS.len() {
        let point = &faulty.fleet.hosts[host].point;
        assert_equal(point, &faulty.fleet.stage.input());
        faulty.count_shared(host);
    }
    assert!(faulty.shared_blocks > 0, "no host asked another one");
    // The last round may have ended between a new link and its list of members.
    faulty.wait_until_listed();
    faulty.assert_running();
}

/// Number of rounds of both policies together.
fn rounds() -> u64 {
    number("GLEANER_KILL_ROUNDS", 8)
}

#[test]
fn whatever_fails_homes_that_a_recruiter_lists_read_every_byte_in_time() {
    run_rounds_under("hash", rounds() - rounds() / 4);
}

#[test]
fn whatever_fails_hosts_with_global_memory_read_every_byte_in_time() {
    run_rounds_under("gms", rounds() / 4);
}
