//! Structure-aware mutations of every message of the recruiter's HTTP API and of the memory server's owner
//! socket are sent to the built daemons. Each must be answered or disconnected, the daemons' memory must stay
//! bounded, and honest clients must be served meanwhile.

use super::client::lease_request;
use super::cluster::{Cluster, Host, Recruiter};
use crate::delivery::running::wait_for;
use gleaner_harness::{mutations, peak_bytes};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Maximum growth of a daemon's memory over all mutations. The mutations together have tens of MiB.
const MOST_GROWN_BYTES: u64 = 32 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// Asserts that an honest client's lease is granted and released.
#[track_caller]
fn is_served(recruiter: &Recruiter, key: &str) {
    let mut id = None;
    wait_for("an honest client's lease", || {
        let request = lease_request(key, 60_000);
        let asked = recruiter.ask("POST", "/v1/leases", Some(&request));
        let Ok((200 | 201, answer)) = asked else {
            return false;
        };
        id = answer["leases"][0]["lease_id"].as_str().map(str::to_owned);
        id.is_some()
    });
    let path = format!("/v1/leases/{}", id.unwrap());
    wait_for("its release", || {
        matches!(recruiter.ask("DELETE", &path, None), Ok((204, _)))
    });
}

#[test]
fn mutated_requests_for_leases_are_answered_and_the_recruiter_stays_small() {
    let cluster = Cluster::start(1, 1);
    let recruiter = &cluster.recruiters[0];
    is_served(recruiter, "before");
    let before = peak_bytes(recruiter.process());
    let mut request = lease_request("k", 1000);
    request["copies"] = json!(1);
    request["minimum_duration_ms"] = json!(1);
    request["avoided_host_ids"] = json!(["0".repeat(32)]);
    let all = [
        ("/v1/leases", request),
        ("/v1/leases/0123/renew", json!({ "term_ms": 1000 })),
    ];
    for (path, message) in all {
        for (index, (name, mutated)) in mutations(&message).into_iter().enumerate() {
            let (status, answer) = recruiter.ask("POST", path, Some(&mutated)).unwrap();
            assert!((200..504).contains(&status), "{path} {name}: {status}");
            assert_ne!(status, 500, "{path} {name}: {answer}");
            let bytes = answer.to_string().len();
            assert!(status < 400 || bytes < 2000, "{path} {name}: {bytes} bytes");
            if index % 40 == 0 {
                is_served(recruiter, &format!("{index}"));
            }
        }
    }
    let grown = peak_bytes(recruiter.process()).saturating_sub(before);
    assert!(grown < MOST_GROWN_BYTES, "{grown} bytes more");
    is_served(recruiter, "after");
}

/// Sends a message to the owner's socket; returns the answer, or `None` if the daemon closed the connection.
fn say(host: &Host, message: &Value) -> Option<Value> {
    let mut stream = UnixStream::connect(host.socket()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    let _ = stream.write_all(format!("{message}\n").as_bytes()); // the daemon may close the connection during a long line
    let mut reply = String::new();
    match BufReader::new(stream).read_line(&mut reply) {
        Ok(0) => None,
        Ok(_) => Some(serde_json::from_str(&reply).unwrap()),
        Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => None,
        Err(e) => panic!("neither an answer nor the end: {e}"),
    }
}

#[test]
fn mutated_commands_of_the_owner_are_answered_or_end_and_the_memory_server_lends_on() {
    let cluster = Cluster::start(1, 1);
    let host = &cluster.hosts[0];
    let before = peak_bytes(host.process());
    let all = [
        json!({ "command": "pause", "duration_ms": 1 }),
        json!({ "command": "resume" }),
        json!({ "command": "cap", "bytes": 1 << 20 }),
        json!({ "command": "status" }),
        json!({ "command": "log" }),
    ];
    for message in all {
        for (name, mutated) in mutations(&message) {
            let answer = say(host, &mutated);
            let is_short = mutated.to_string().len() < 4000;
            assert!(!is_short || answer.is_some(), "{message} {name}: hung up");
            host.lending();
        }
    }
    let grown = peak_bytes(host.process()).saturating_sub(before);
    assert!(grown < MOST_GROWN_BYTES, "{grown} bytes more");
    // Some mutations were valid commands, such as a cap. The owner's next commands undo them.
    for message in [json!({ "command": "resume" }), json!({ "command": "cap" })] {
        assert!(say(host, &message).is_some());
    }
    is_served(&cluster.recruiters[0], "after");
}
