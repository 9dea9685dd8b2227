//! The answer to a request for a lease is lost. If the client repeats the request with the same key, every
//! recruiter finds the same lease.

use super::client::lease_request;
use super::cluster::{Cluster, Recruiter};
use crate::delivery::running::wait_for;
use serde_json::{Value, json};
use std::time::Duration;

/// Interval between announcements. It is long, since a link ends after three missed announcements, and the
/// test needs the time of two requests before that.
const ANNOUNCE_EVERY: Duration = Duration::from_secs(5);

#[test]
fn a_grant_whose_answer_is_lost_is_found_by_its_key() {
    let mut cluster = Cluster::with_interval(1, 2, ANNOUNCE_EVERY);
    let request = lease_request("lost", 3_600_000);
    wait_for("the recruiters to be ready", || {
        cluster.recruiters.iter().all(|recruiter| {
            let (_, health) = recruiter.ask("GET", "/healthz", None).unwrap();
            health["grants_in_ms"] == 0
        })
    });
    let ids = |cluster: &Cluster| -> Vec<String> {
        let leases = cluster.hosts[0].lending().leases;
        leases.into_iter().map(|lease| lease.lease_id).collect()
    };

    // The memory server receives both requests, but its answers do not reach the recruiters. So only the
    // memory server can recognise that the two requests have the same key.
    let cut = |cluster: &Cluster, is_cut| {
        let cables = &cluster.hosts[0].cables;
        cables.iter().for_each(|cable| cable.hold_to_server(is_cut));
    };
    cut(&cluster, true);
    let mut granted = Vec::new();
    for recruiter in &cluster.recruiters {
        let (status, refused) = recruiter.ask("POST", "/v1/leases", Some(&request)).unwrap();
        let is_late = |text: &str| text.contains("it did not answer in time");
        assert!(
            status == 503 && refused["detail"].as_str().is_some_and(is_late),
            "{status}: {refused}"
        );
        granted.push(ids(&cluster));
    }
    let [first, second] = &granted[..] else {
        panic!("{granted:?}")
    };
    assert_eq!((first.len(), first), (1, second));

    // The first recruiter never receives the memory server's answer, since it is killed.
    cluster.recruiters[0].kill();
    cut(&cluster, false);
    let lease_id = json!(first[0]);
    assert_eq!(found(&cluster.recruiters[1], &request), lease_id);
    cluster.recruiters[0].restart();
    assert_eq!(found(&cluster.recruiters[0], &request), lease_id);
    assert_eq!(&ids(&cluster), first);
    cluster.agrees();
}

/// Requests a lease; returns the id of the single lease in the answer.
fn found(recruiter: &Recruiter, request: &Value) -> Value {
    let mut lease_id = Value::Null;
    wait_for("the lease", || {
        let (status, answer) = recruiter.ask("POST", "/v1/leases", Some(request)).unwrap();
        assert!(matches!(status, 200 | 201 | 503), "{answer}");
        lease_id = answer["leases"][0]["lease_id"].clone();
        status != 503
    });
    lease_id
}
