//! Memory is given back, whatever happens to the owner, the agent and the daemon.

use crate::host::{Host, SIZE, idle, row};
use gleaner_harness::wait_for;
use gleaner_schemas::live::OwnerState;
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn all_of_it_when_the_owner_returns_or_nobody_can_tell() {
    let host = Host::new();
    let daemon = host.daemon();
    let mut agent = host.agent();
    let lending = agent.lend(&daemon);
    assert_eq!(lending.quota.lent_bytes, SIZE);
    assert!(
        lending.is_agent_connected && lending.leases.len() == 1,
        "{lending:?}"
    );

    let words = [
        (OwnerState::InUse, Some("input"), "owner"),
        (OwnerState::InUse, Some("load"), "load"),
        (OwnerState::InUse, Some("gap"), "owner_unknown"),
        (OwnerState::Unknown, None, "owner_unknown"),
    ];
    for (i, (state, source, cause)) in words.into_iter().enumerate() {
        agent.lend(&daemon);
        agent.owner(state, source);
        daemon.has_reclaimed_all(cause, i + 1);
    }

    // The agent ends.
    agent.lend(&daemon);
    drop(agent);
    daemon.has_reclaimed_all("agent_lost", 5);
    // Another agent is silent for three seconds.
    let mut agent = host.agent();
    agent.lend(&daemon);
    daemon.has_reclaimed_all("agent_lost", 6);
    // An agent connects again and sends an invalid message.
    drop(agent);
    let mut agent = host.agent();
    agent.lend(&daemon);
    agent.stream.write_all(b"\x00\xff{}\n").unwrap();
    daemon.has_reclaimed_all("agent_lost", 7);

    // The daemon is ended by a signal.
    let mut agent = host.agent();
    agent.lend(&daemon);
    let socket = daemon.socket().to_owned();
    let (code, said) = daemon.running.end();
    assert_eq!(code, Some(0), "{said:?}");
    assert!(!socket.exists());
    let log = std::fs::read_to_string(host.path("state/lending.jsonl")).unwrap();
    assert_eq!(log.lines().count(), 8);
    assert!(log.ends_with("\"clients\":[\"standalone\"]}\n"), "{log}");
    assert!(
        log.lines().last().unwrap().contains("\"cause\":\"ending\""),
        "{log}"
    );

    // The restarted daemon continues the log.
    let daemon = host.daemon();
    assert_eq!(daemon.log().len(), 8);
}

#[test]
fn all_of_it_when_the_agent_is_killed() {
    let host = Host::new();
    let agent_path = host.path("agent.sock");
    std::fs::remove_file(&agent_path).unwrap();
    let script = r#"
import json, socket, sys, time
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
connection, _ = listener.accept()
for line in open(sys.argv[2]):
    connection.sendall(line.encode())
while True:
    connection.sendall(b'{"type":"alive","time_ms":1}\n')
    time.sleep(0.5)
"#;
    // This agent sends the same sample as the agent of the other test.
    let (said, sample) = (host.path("said"), idle(row(8 << 30)));
    std::fs::write(&said, serde_json::to_string(&sample).unwrap() + "\n").unwrap();
    let mut agent = Command::new("python3")
        .args(["-c", script])
        .args([&agent_path, &said])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let daemon = host.daemon();
    wait_for("all of it lent and written", || {
        daemon.status().resident_bytes >= SIZE
    });
    agent.kill().unwrap();
    daemon.has_reclaimed_all("agent_lost", 1);
    agent.wait().unwrap();
}

#[test]
fn its_own_place_is_small_locked_and_first_to_be_killed() {
    let host = Host::new();
    let daemon = host.daemon();
    let adjusted =
        std::fs::read_to_string(format!("/proc/{}/oom_score_adj", daemon.pid())).unwrap();
    assert_eq!(adjusted.trim(), "1000");
    let mut agent = host.agent();
    let lending = agent.lend(&daemon);
    assert!(lending.is_locked);
    assert!(daemon.bytes("VmLck") >= SIZE);
    agent.owner(OwnerState::InUse, None);
    daemon.has_reclaimed_all("owner", 1);
    let daemon_bytes = daemon.status().daemon_bytes;
    assert!((1..32 << 20).contains(&daemon_bytes), "{daemon_bytes}");
}

/// Returns the flags of the mappings of which at least half of [`SIZE`] is in memory (proc_pid_smaps(5)).
fn flags_of_large_mappings(pid: u32) -> Vec<String> {
    let smaps = std::fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
    let mut is_large = false;
    let mut flags = Vec::new();
    for line in smaps.lines() {
        if let Some(size) = line.strip_prefix("Rss:") {
            let kib: u64 = size.trim().trim_end_matches(" kB").parse().unwrap();
            is_large = kib << 10 >= SIZE / 2;
        } else if let Some(found) = line.strip_prefix("VmFlags:")
            && is_large
        {
            flags.push(found.to_owned());
        }
    }
    flags
}

#[test]
fn guests_pages_are_in_no_core_dump() {
    let host = Host::new();
    let daemon = host.daemon();
    let mut agent = host.agent();
    agent.lend(&daemon);
    let all = flags_of_large_mappings(daemon.pid());
    let are_left_out = |flags: &String| flags.split_whitespace().any(|flag| flag == "dd");
    assert!(!all.is_empty() && all.iter().all(are_left_out), "{all:?}");
}
