//! The owner's socket: effects and permissions of each command, and the handling of any input without harm.

use crate::host::{Daemon, Host, MIB, SIZE};
use gleaner_harness::{wait_for, wait_for_some};
use gleaner_schemas::lending::{OwnerCommand, OwnerReply, QuotaReason, RefusalKind, SLAB_BYTES};
use gleaner_schemas::live::OwnerState;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

const PAUSE: OwnerCommand = OwnerCommand::Pause { duration_ms: None };

#[test]
fn a_pause_takes_all_back_at_once_and_outlasts_a_restart() {
    let host = Host::new();
    let daemon = host.daemon();
    let mut agent = host.agent();
    agent.lend(&daemon);
    let lending = daemon.lending(PAUSE);
    // All memory is given back before the answer is sent.
    assert_eq!((lending.resident_bytes, lending.leases.len()), (0, 0));
    assert!(lending.is_paused && lending.paused_until_time_ms.is_none());
    assert_eq!(lending.quota.reason, QuotaReason::Paused);
    let reclaimed = lending.reclaimed.unwrap();
    assert_eq!(
        (reclaimed.cause.as_str(), reclaimed.bytes),
        ("paused", SIZE)
    );
    drop((daemon, agent));

    let daemon = host.daemon();
    let mut agent = host.agent();
    agent.sample();
    let lending = wait_for_some("the sample's figures", || {
        Some(daemon.status()).filter(|lending| lending.quota.physical_bytes > 0)
    });
    assert!(
        lending.is_paused && lending.quota.unleased_bytes == 0,
        "{lending:?}"
    );
    assert!(!daemon.lending(OwnerCommand::Resume).is_paused);
    agent.lend(&daemon);

    // A pause for a limited time.
    let lending = daemon.lending(OwnerCommand::Pause {
        duration_ms: Some(200),
    });
    let until_ms = lending.paused_until_time_ms.unwrap();
    assert!((lending.time_ms - 1000..=lending.time_ms + 200).contains(&until_ms));
    wait_for("its end", || !daemon.status().is_paused);
    agent.lend(&daemon);
}

#[test]
fn a_cap_takes_back_what_is_above_it_and_outlasts_a_restart() {
    let host = Host::new();
    let daemon = host.daemon();
    let mut agent = host.agent();
    agent.lend(&daemon);
    let cap = |bytes| OwnerCommand::Cap { bytes };
    let lending = daemon.lending(cap(Some(SIZE / 2)));
    assert_eq!(lending.cap_bytes, Some(SIZE / 2));
    assert_eq!(lending.quota.lent_bytes, SIZE / 2);
    assert!(
        lending.resident_bytes <= SIZE / 2,
        "{}",
        lending.resident_bytes
    );
    let lease = &lending.leases[0];
    assert_eq!(
        (lease.granted_bytes, lease.remaining_bytes),
        (SIZE, SIZE / 2)
    );
    let reclaimed = lending.reclaimed.unwrap();
    assert_eq!(
        (reclaimed.bytes, reclaimed.remaining_lent_bytes),
        (SIZE / 2, SIZE / 2)
    );
    // With a cap of 0 nothing stays leased.
    let lending = daemon.lending(cap(Some(0)));
    assert_eq!((lending.resident_bytes, lending.quota.lent_bytes), (0, 0));
    drop((daemon, agent));

    let daemon = host.daemon();
    let mut agent = host.agent();
    assert_eq!(daemon.status().cap_bytes, Some(0));
    agent.sample();
    assert_eq!(daemon.lending(cap(None)).cap_bytes, None);
    agent.lend(&daemon);
    assert!(daemon.status().resident_bytes.is_multiple_of(SLAB_BYTES));
}

/// Reply to a command of user `nobody`.
fn as_nobody(daemon: &Daemon, command: &str) -> OwnerReply {
    let script = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); \
        s.sendall(sys.argv[2].encode() + b'\\n'); print(s.makefile().readline())";
    let output = Command::new("python3")
        .args(["-c", script])
        .arg(daemon.socket())
        .arg(command)
        .uid(65_534)
        .gid(65_534)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&said)
        .unwrap_or_else(|e| panic!("{e}: {said}{}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn a_user_without_privilege_sees_no_lease_no_client_and_no_time_of_the_owners() {
    let host = Host::new();
    let daemon = host.daemon();
    let mut agent = host.agent();
    agent.lend(&daemon);
    let seen = daemon.status();
    assert!(!seen.leases.is_empty() && !seen.are_leases_hidden);
    assert!(seen.quota.idle_for_ms.is_some());
    let command = r#"{"command":"status"}"#;
    let OwnerReply::Lending(lending) = as_nobody(&daemon, command) else {
        panic!("no status");
    };
    assert!(lending.are_leases_hidden && lending.leases.is_empty());
    assert_eq!(lending.quota.lent_bytes, SIZE);
    let quota = &lending.quota;
    assert_eq!((quota.idle_for_ms, quota.idle_in_ms), (None, None));
    let OwnerReply::Refused(refusal) = as_nobody(&daemon, r#"{"command":"log"}"#) else {
        panic!("the log was shown");
    };
    assert_eq!(refusal.kind, RefusalKind::NotYours);
    // The answer to a user's own command does not name any client, either.
    let OwnerReply::Lending(lending) = as_nobody(&daemon, r#"{"command":"pause"}"#) else {
        panic!("no answer");
    };
    assert_eq!(lending.resident_bytes, 0);
    assert!(lending.reclaimed.unwrap().clients.is_empty());
}

#[test]
fn a_flood_of_caps_is_written_as_the_newest_and_holds_up_nobody() {
    let host = Host::new();
    let daemon = host.daemon();
    let flood = |from: u64| {
        let mut stream = std::os::unix::net::UnixStream::connect(daemon.socket()).unwrap();
        for bytes in 0..8 {
            let command = OwnerCommand::Cap {
                bytes: Some((from * 8 + bytes) * MIB),
            };
            let line = serde_json::to_string(&command).unwrap() + "\n";
            stream.write_all(line.as_bytes()).unwrap();
        }
        stream
    };
    let crowd: Vec<_> = (0..30).map(flood).collect();
    // The answer comes after all commands of the crowd were handled, and the cap survives a restart.
    let cap = OwnerCommand::Cap {
        bytes: Some(3 * MIB),
    };
    assert_eq!(daemon.lending(cap).cap_bytes, Some(3 * MIB));
    drop((crowd, daemon));
    assert_eq!(host.daemon().status().cap_bytes, Some(3 * MIB));
}

#[test]
fn everybody_may_take_memory_back_and_undo_what_is_theirs() {
    let host = Host::new();
    let daemon = host.daemon();
    let is_fine = |reply| matches!(reply, OwnerReply::Lending(_));
    let is_refused = |reply| match reply {
        OwnerReply::Refused(refusal) => {
            assert!(refusal.detail.contains("user 0"), "{}", refusal.detail);
            refusal.kind == RefusalKind::NotYours
        }
        _ => false,
    };
    assert!(is_fine(as_nobody(&daemon, r#"{"command":"pause"}"#)));
    assert!(is_fine(as_nobody(&daemon, r#"{"command":"resume"}"#)));
    assert!(!daemon.status().is_paused);
    daemon.lending(PAUSE);
    assert!(is_refused(as_nobody(&daemon, r#"{"command":"resume"}"#)));
    // A shorter pause would end the present pause earlier.
    assert!(is_fine(as_nobody(
        &daemon,
        r#"{"command":"pause","duration_ms":1}"#
    )));
    let lending = daemon.status();
    assert!(lending.is_paused && lending.paused_until_time_ms.is_none());
    daemon.lending(OwnerCommand::Cap {
        bytes: Some(64 * MIB),
    });
    assert!(is_refused(as_nobody(&daemon, r#"{"command":"cap"}"#)));
    assert!(is_refused(as_nobody(
        &daemon,
        r#"{"command":"cap","bytes":99999999}"#
    )));
    assert!(is_fine(as_nobody(
        &daemon,
        r#"{"command":"cap","bytes":1048576}"#
    )));
    assert_eq!(daemon.status().cap_bytes, Some(MIB));
    // Root may undo any user's commands.
    assert_eq!(
        daemon.lending(OwnerCommand::Cap { bytes: None }).cap_bytes,
        None
    );
    assert!(!daemon.lending(OwnerCommand::Resume).is_paused);
}

#[test]
fn garbage_does_no_harm() {
    let host = Host::new();
    let daemon = host.daemon();
    let mut agent = host.agent();
    agent.lend(&daemon);
    let mut crowd = Vec::new();
    for i in 0..60_u8 {
        let mut client = daemon.connect();
        let garbage: Vec<u8> = (0..5000).map(|j| (j as u8).wrapping_mul(i)).collect();
        // The daemon may close the connection before all bytes are sent.
        let _ = client.write_all(&garbage);
        let _ = client.write_all(b"{\"command\":\"cap\",\"bytes\":-1}\n{\"command\":7}\n[]\n\n");
        crowd.push(client);
    }
    let mut client = daemon.connect();
    client.write_all(b"{\"command\":\"destroy\"}\n").unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let mut said = String::new();
    client.read_to_string(&mut said).unwrap();
    assert!(
        said.contains("malformed") && said.contains("destroy"),
        "{said}"
    );
    agent.lend(&daemon);
    agent.owner(OwnerState::InUse, None);
    daemon.has_reclaimed_all("owner", 1);
    drop(crowd);

    // An unreadable file may have contained a pause.
    drop(daemon);
    std::fs::create_dir_all(host.path("state")).unwrap();
    std::fs::write(host.path("state/owner.json"), "{").unwrap();
    let daemon = host.daemon();
    assert!(daemon.status().is_paused);
}
