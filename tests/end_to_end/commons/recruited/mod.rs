//! Hosts whose members a recruiter lists: real services, memory servers and a recruiter with certificates, on
//! loopback addresses. The owners' agents are the test's.

mod daemon;
mod deployment;
mod returns;
mod rounds;

use super::mounted::assert_equal;
use super::stage::{BLOCK, LARGE, LARGE_BLOCKS, Stage};
use deployment::{LONG_TIMEOUTS, OWN_BLOCKS, RecruitedFleet};
use gleaner_harness::{Random, wait_for};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;

impl RecruitedFleet {
    fn large(&self) -> Vec<u8> {
        fs::read(self.stage.input().join(LARGE)).unwrap()
    }
}

/// Reads the large file through a mount.
fn assert_reads(point: &Path, wanted: &[u8]) {
    assert!(fs::read(point.join(LARGE)).unwrap() == wanted);
}

#[test]
fn blocks_that_a_host_evicts_are_found_in_others_leases_until_their_owners_return() {
    blocks_are_found_in_others_leases("gms");
}

#[test]
fn blocks_that_homes_hold_are_found_in_their_leases_until_their_owners_return() {
    blocks_are_found_in_others_leases("hash");
}

fn blocks_are_found_in_others_leases(policy: &str) {
    let holds = ["0B", "64MiB", "64MiB"];
    let keys = format!("policy = {policy:?}\n{LONG_TIMEOUTS}");
    let deployment = RecruitedFleet::start(Stage::new(&mut Random::new()), &holds, &keys);
    deployment.wait_until_joined(&holds);
    let [reader, one, other] = &deployment.hosts[..] else {
        panic!("three hosts");
    };
    let wanted = deployment.large();
    assert_reads(&reader.point, &wanted);
    // A busy machine may drop a few blocks on their way.
    let many = (LARGE_BLOCKS - OWN_BLOCKS as u64) / 2;
    wait_for("the evicted blocks at other hosts", || {
        let held = [one, other].map(|host| host.global("global_blocks_count"));
        held.iter().sum::<u64>() >= many
    });
    assert!(reader.figure(Some("cluster"), "puts_count") >= many);
    // The directory learns of the puts a moment after the blocks have arrived.
    wait_for("reads from other hosts' memory", || {
        assert_reads(&reader.point, &wanted);
        reader.figure(None, "cluster_blocks_count") >= many
    });
    // Blocks that one host has read, others get from memory as well; then each has blocks in its leases.
    let before = deployment.server.requests(&format!("/{LARGE}"));
    for host in [one, other] {
        assert_reads(&host.point, &wanted);
    }
    assert!(other.figure(None, "cluster_blocks_count") > 0);
    assert!(deployment.server.requests(&format!("/{LARGE}")) < before + LARGE_BLOCKS);

    for host in [one, other] {
        host.agent.owner_returns();
    }
    for host in &deployment.hosts {
        assert_equal(&host.point, &deployment.stage.input());
    }
    for host in [one, other] {
        wait_for("the end of the leases", || host.global("leased_bytes") == 0);
        assert!(host.global("lost_blocks_count") > 0);
    }
    deployment.recruiter.running.kill();
    for host in &deployment.hosts {
        wait_for("the link to end", || {
            host.status()["global"]["links"][0]["is_linked"] == false
        });
        let peers = host.status()["peers"].as_array().unwrap().len();
        assert_eq!(peers, 2, "the last members stay");
        assert_equal(&host.point, &deployment.stage.input());
    }
}

/// Moves a block from a full lease to the service's own memory, from where another block takes its place.
#[test]
fn a_used_block_leaves_its_place_in_a_full_lease_to_another_one() {
    let holds = ["0B", "8MiB"];
    let keys = format!("policy = \"hash\"\n{LONG_TIMEOUTS}");
    let deployment = RecruitedFleet::start(Stage::new(&mut Random::new()), &holds, &keys);
    deployment.wait_until_joined(&holds);
    let host = &deployment.hosts[1];
    assert_equal(&host.point, &deployment.stage.input());
    let file = File::open(host.point.join(LARGE)).unwrap();
    // The blocks that were read last are in memory, the others in the lease.
    for block in (0..LARGE_BLOCKS).chain((0..LARGE_BLOCKS).rev()) {
        file.read_exact_at(&mut [0], block * BLOCK as u64).unwrap();
    }
    // A block may be used at the moment in which it is written to the lease, and keeps its slot until then.
    let few = 2;
    let unused = host.global("leased_bytes") - host.global("leased_used_bytes");
    assert!(unused <= few * BLOCK as u64, "the lease is full");
    assert!(host.global("lost_blocks_count") <= few);
}

#[test]
fn with_short_timeouts_no_read_returns_other_bytes_while_owners_come_and_go() {
    let holds = ["64MiB"; 3];
    let deployment = RecruitedFleet::start(Stage::new(&mut Random::new()), &holds, "");
    deployment.wait_until_joined(&holds);
    let wanted = deployment.large();
    for _ in 0..3 {
        thread::scope(|scope| {
            for host in &deployment.hosts {
                let (point, wanted) = (&host.point, &wanted);
                scope.spawn(move || {
                    for _ in 0..4 {
                        assert!(fs::read(point.join(LARGE)).unwrap() == *wanted);
                    }
                });
            }
            for host in &deployment.hosts {
                host.agent.owner_returns();
            }
        });
        for host in &deployment.hosts {
            wait_for("the end of the leases", || host.global("leased_bytes") == 0);
            host.agent.owner_leaves();
        }
        for host in &deployment.hosts {
            wait_for("another lease", || host.global("leased_bytes") > 0);
        }
    }
}
