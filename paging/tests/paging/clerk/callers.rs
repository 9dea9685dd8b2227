//! Callers of the clerk's own sockets that lie: clients of its device, and whoever asks how it stands.

use super::{Clerk, NO_HANG, PAGES, QUICK};
use crate::hostile::pages::{Victim, attacks, greedy};
use crate::hostile::{MOST_GROWN_BYTES, peak_bytes};
use crate::load::Load;
use gleaner_paging::nbd::client::Server;
use gleaner_paging::nbd::wire::Command;
use std::io::Write;
use std::os::unix::net::UnixStream;

/// A client of the device's upper half, which no liar writes to.
fn neighbour(clerk: &Clerk) -> Load {
    let device = Server::Unix(clerk.socket());
    let own = (PAGES as u64 / 2, PAGES / 4);
    let mut load = Load::new((&device, ""), own, 3, NO_HANG);
    load.write_all();
    load
}

/// The neighbour has its pages, and the clerk took little for all that.
#[track_caller]
fn stands(clerk: &Clerk, mut load: Load, before_bytes: u64) {
    load.check_all();
    assert_eq!(load.outcome.errors, 0, "{:?}", load.outcome);
    let grown = peak_bytes(clerk.program.child.id()).saturating_sub(before_bytes);
    assert!(grown < MOST_GROWN_BYTES, "{grown} bytes more");
    println!("{grown} bytes more, {:?}", load.outcome);
    assert_eq!(clerk.status()["pages"]["lost"], 0);
}

#[test]
fn mutated_messages_of_the_devices_client_are_answered_or_end_its_connection_alone() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().display().to_string();
    let clerk = Clerk::start(2, &["--disk", &disk], QUICK);
    let mut load = neighbour(&clerk);
    let before_bytes = peak_bytes(clerk.program.child.id());
    let victim = Victim::unix(&clerk.socket());
    let attacks = attacks("");
    println!("{} conversations", attacks.len());
    std::thread::scope(|scope| {
        let attacking: Vec<_> = (0..4)
            .map(|number| {
                let (victim, own) = (&victim, attacks.iter().skip(number).step_by(4));
                scope.spawn(move || own.for_each(|(name, bytes)| victim.hears(name, bytes)))
            })
            .collect();
        while attacking.iter().any(|attack| !attack.is_finished()) {
            load.step();
        }
        attacking
            .into_iter()
            .for_each(|attack| attack.join().unwrap());
    });
    stands(&clerk, load, before_bytes);
}

#[test]
fn answers_that_the_devices_client_does_not_take_take_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().display().to_string();
    let clerk = Clerk::start(2, &["--disk", &disk], QUICK);
    let mut load = neighbour(&clerk);
    let before_bytes = peak_bytes(clerk.program.child.id());
    let victim = Victim::unix(&clerk.socket());
    let mut held = Vec::new();
    for (command, bytes) in [
        (Command::Read, 8 << 20), // never written: answered at once
        (Command::Flush, 0),
        (Command::Cache, 8 << 20),
        (Command::Trim, 8 << 20),
        (Command::WriteZeroes, 8 << 20),
    ] {
        let mut stream = victim.going("");
        stream.write_all(&greedy(command, bytes, 2000)).unwrap();
        held.push(stream);
        for _ in 0..50 {
            load.step();
        }
    }
    drop(held);
    stands(&clerk, load, before_bytes);
}

#[test]
fn a_crowd_at_the_clerks_sockets_shuts_nobody_out() {
    const CROWD: usize = 500;
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().display().to_string();
    let clerk = Clerk::start(1, &["--disk", &disk], QUICK);
    let load = neighbour(&clerk);
    let before_bytes = peak_bytes(clerk.program.child.id());
    let status = clerk.folder.path().join("status.sock");
    let asking: Vec<UnixStream> = (0..CROWD)
        .map(|_| {
            let mut stream = UnixStream::connect(&status).unwrap();
            let _ = stream.write_all(&[b'x'; 4000]); // it is answered and closed meanwhile
            stream
        })
        .collect();
    assert!(clerk.status()["pages"].is_object());
    drop(asking);
    // In transmission, and idle.
    let victim = Victim::unix(&clerk.socket());
    let hello = [3_u32.to_be_bytes().to_vec(), by_name()].concat();
    let idle: Vec<_> = (0..CROWD)
        .map(|_| {
            let mut stream = victim.connect();
            let _ = stream.write_all(&hello); // beyond the bound, closed
            let _ = stream.read(&mut [0; 64]);
            stream
        })
        .collect();
    assert!(clerk.status()["clients_count"].as_u64() <= Some(64));
    drop(idle);
    stands(&clerk, load, before_bytes);
    // There is room again.
    let device = Server::Unix(clerk.socket());
    let mut again = Load::new((&device, ""), (0, 8), 4, NO_HANG);
    again.check_all();
}

/// The option that has an export of no name, by the old way.
fn by_name() -> Vec<u8> {
    let mut bytes = gleaner_paging::nbd::wire::OPTION_MAGIC
        .to_be_bytes()
        .to_vec();
    bytes.extend(1_u32.to_be_bytes());
    bytes.extend(0_u32.to_be_bytes());
    bytes
}
