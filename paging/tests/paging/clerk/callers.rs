//! Malicious callers of the clerk's own sockets: clients of its device, and callers of its status
//! socket.

use super::{Clerk, NO_HANG, PAGES, QUICK};
use crate::hostile::MOST_GROWN_BYTES;
use crate::hostile::pages::{Victim, attacks, greedy, while_attacked};
use crate::load::Load;
use gleaner_harness::{peak_bytes, wait_for};
use gleaner_paging::nbd::client::Server;
use gleaner_paging::nbd::wire::Command;
use std::io::Write;
use std::os::unix::net::UnixStream;
use tempfile::TempDir;

/// An attacked clerk, and an honest client of the upper half of its device, where no attacker writes.
struct AttackedClerk {
    clerk: Clerk,
    neighbour: Load,
    before_bytes: u64,
    _disk: TempDir,
}

impl AttackedClerk {
    fn start(hosts: usize) -> Self {
        let disk = tempfile::tempdir().unwrap();
        let path = disk.path().display().to_string();
        let clerk = Clerk::start(hosts, &["--disk-folder", &path], QUICK);
        let device = Server::Unix(clerk.socket());
        let own = (PAGES as u64 / 2, PAGES / 4);
        let mut neighbour = Load::new((&device, ""), own, 3, NO_HANG);
        neighbour.write_all();
        Self {
            before_bytes: peak_bytes(clerk.running.id()),
            clerk,
            neighbour,
            _disk: disk,
        }
    }

    fn victim(&self) -> Victim {
        Victim::unix(&self.clerk.socket())
    }

    /// Checks that the honest client still has its pages, and that the clerk's memory grew little.
    #[track_caller]
    fn stands(mut self) {
        self.neighbour.check_all();
        let clerk = &self.clerk;
        let outcome = &self.neighbour.outcome;
        assert_eq!(outcome.errors, 0, "{outcome:?}");
        let grown = peak_bytes(clerk.running.id()).saturating_sub(self.before_bytes);
        assert!(grown < MOST_GROWN_BYTES, "{grown} bytes more");
        println!("{grown} bytes more, {outcome:?}");
        assert_eq!(clerk.status()["counters"]["lost_pages_count"], 0);
    }
}

#[test]
fn mutated_messages_of_the_devices_client_are_answered_or_end_its_connection_alone() {
    let mut attacked = AttackedClerk::start(2);
    let victim = attacked.victim();
    while_attacked(&victim, &attacks(""), || attacked.neighbour.step());
    attacked.stands();
}

#[test]
fn answers_that_the_devices_client_does_not_take_take_little_memory() {
    let mut attacked = AttackedClerk::start(2);
    let victim = attacked.victim();
    let mut held = Vec::new();
    for (command, bytes) in [
        (Command::Read, 8 << 20), // never written: answered immediately
        (Command::Flush, 0),
        (Command::Cache, 8 << 20),
        (Command::Trim, 8 << 20),
        (Command::WriteZeroes, 8 << 20),
    ] {
        let mut stream = victim.going("");
        stream.write_all(&greedy(command, bytes, 2000)).unwrap();
        held.push(stream);
        for _ in 0..50 {
            attacked.neighbour.step();
        }
    }
    drop(held);
    attacked.stands();
}

#[test]
fn a_crowd_at_the_clerks_sockets_shuts_nobody_out() {
    const CROWD: usize = 500;
    let attacked = AttackedClerk::start(1);
    let clerk = &attacked.clerk;
    let status = clerk.folder.path().join("status.sock");
    let asking: Vec<UnixStream> = (0..CROWD)
        .map(|_| {
            let mut stream = UnixStream::connect(&status).unwrap();
            let _ = stream.write_all(&[b'x'; 4000]); // the clerk answers and closes meanwhile
            stream
        })
        .collect();
    assert!(clerk.status()["counters"].is_object());
    drop(asking);
    // Many idle clients complete the handshake, and then send nothing.
    let victim = attacked.victim();
    let hello = [3_u32.to_be_bytes().to_vec(), by_name()].concat();
    let idle: Vec<_> = (0..CROWD)
        .map(|_| {
            let mut stream = victim.connect();
            let _ = stream.write_all(&hello); // beyond the limit of clients, which closes the connection
            let _ = stream.read(&mut [0; 64]);
            stream
        })
        .collect();
    assert!(clerk.status()["clients_count"].as_u64() <= Some(64));
    drop(idle);
    wait_for("room for a client", || {
        clerk.status()["clients_count"].as_u64() < Some(32)
    });
    let device = Server::Unix(clerk.socket());
    let mut again = Load::new((&device, ""), (0, 8), 4, NO_HANG);
    again.check_all();
    attacked.stands();
}

/// Message with the old option `EXPORT_NAME`, which opens the export with the empty name.
fn by_name() -> Vec<u8> {
    let mut bytes = gleaner_paging::nbd::wire::OPTION_MAGIC
        .to_be_bytes()
        .to_vec();
    bytes.extend(1_u32.to_be_bytes());
    bytes.extend(0_u32.to_be_bytes());
    bytes
}
