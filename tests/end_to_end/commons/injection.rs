//! Rounds of faults, in each of which readers on all hosts compare every byte.

use super::readers::{Round, RoundEnd, RoundFault};
use gleaner_harness::{Random, wait_for};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::thread;

/// Hosts of a commons that suffer faults.
pub(super) trait FaultyHosts {
    type Fault: RoundFault;

    /// Path of the large file at each host's mount.
    fn files(&self) -> Vec<PathBuf>;

    /// Contents of the large file.
    fn wanted(&self) -> Vec<u8>;

    /// Waits for the state in which the fault is one; no reader runs yet.
    fn prepare(&self, _fault: Self::Fault) {}

    /// Begins the fault while readers run.
    fn begin(&mut self, fault: Self::Fault);

    /// Ends the fault while readers run.
    fn end(&mut self, fault: Self::Fault);

    /// Restores the state that the next round needs; no reader runs any more.
    fn recover(&mut self);
}

/// Runs rounds with faults of all kinds in random order.
pub(super) fn run_rounds<H: FaultyHosts>(hosts: &mut H, rounds: u64, random: &mut Random) {
    let mut faults: Vec<H::Fault> = Vec::new();
    for round in 1..=rounds {
        if faults.is_empty() {
            faults = H::Fault::all(random);
        }
        let chosen = random.below(faults.len() as u64) as usize;
        let fault = faults.swap_remove(chosen);
        println!("round {round}: {fault:?}");
        suffer(hosts, fault, random);
    }
}

/// Runs readers on all hosts while a fault begins and ends; then each host must read every byte.
fn suffer<H: FaultyHosts>(hosts: &mut H, fault: H::Fault, random: &mut Random) {
    let (files, wanted) = (hosts.files(), hosts.wanted());
    hosts.prepare(fault);
    let round = Round::new(fault, &wanted, files.len());
    thread::scope(|scope| {
        let _end = RoundEnd(&round);
        round.start(scope, &files, random);
        let before = random.below(60);
        round.wait(|reads| reads.iter().sum::<u64>() >= before);
        hosts.begin(fault);
        round.wait_for_each(2, |host| !fault.kills(host) && !fault.stops(host));
        hosts.end(fault);
        round.wait_for_each(1, |host| !fault.kills(host));
    });
    round.judge();
    for file in &files {
        wait_for("every byte after the fault", || {
            let read = fs::read(file);
            assert!(read.as_ref().is_ok_and(|r| *r == wanted) || read.is_err());
            read.is_ok()
        });
    }
    hosts.recover();
}

/// Returns true if the host with this status does not ask some member at present.
pub(super) fn avoids_a_member(status: &Value) -> bool {
    let mut peers = status["peers"].as_array().unwrap().iter();
    peers.any(|peer| peer["is_asked"] == false)
}
