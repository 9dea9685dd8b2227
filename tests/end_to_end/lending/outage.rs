//! While no recruiter runs, no lease is granted, but none is lost either.

use super::client::lease_request;
use super::cluster::Cluster;
use crate::delivery::running::wait_for;
use serde_json::json;
use std::time::{Duration, Instant};

/// Term of leases, longer than it takes to kill two recruiters.
const TERM_MS: i64 = 6000;

#[test]
fn an_outage_of_all_recruiters_costs_no_lease() {
    let mut cluster = Cluster::start(2, 2);
    let mut ids = Vec::new();
    for key in ["a", "b", "c", "d"] {
        wait_for("a lease", || {
            let request = lease_request(key, TERM_MS);
            let (status, answer) = cluster.recruiters[0]
                .ask("POST", "/v1/leases", Some(&request))
                .unwrap();
            let id = answer["leases"][0]["lease_id"].as_str().map(str::to_owned);
            ids.extend(id.filter(|_| status == 201));
            matches!(status, 200 | 201)
        });
        // The leases granted so far are renewed, since they could expire while the test waits for the next
        // one.
        for id in &ids {
            let path = format!("/v1/leases/{id}/renew");
            let term = json!({ "term_ms": 60_000 });
            let (status, answer) = cluster.recruiters[0]
                .ask("POST", &path, Some(&term))
                .unwrap();
            assert_eq!(status, 200, "{answer}");
        }
    }
    let count = |cluster: &Cluster| -> usize {
        cluster.hosts.iter().map(|h| h.lending().leases.len()).sum()
    };
    assert_eq!((ids.len(), count(&cluster)), (4, 4));
    for id in &ids {
        let path = format!("/v1/leases/{id}/renew");
        let term = json!({ "term_ms": TERM_MS });
        let (status, answer) = cluster.recruiters[1]
            .ask("POST", &path, Some(&term))
            .unwrap();
        assert_eq!(status, 200, "{answer}");
    }
    let renewed = Instant::now();
    cluster
        .recruiters
        .iter_mut()
        .for_each(super::cluster::Recruiter::kill);
    // The outage lasts twice as long as the leases' term.
    let outage = Duration::from_millis(2 * TERM_MS.unsigned_abs());
    while renewed.elapsed() < outage {
        assert_eq!(count(&cluster), 4, "a lease ran out during the outage");
        std::thread::sleep(Duration::from_millis(50));
    }
    let term = json!({ "term_ms": 60_000 });
    cluster.recruiters[0].restart();
    for id in &ids {
        let path = format!("/v1/leases/{id}/renew");
        wait_for("a lease to be renewed", || {
            // A recruiter that has just started answers 503 until every host has announced itself.
            let (status, answer) = cluster.recruiters[0]
                .ask("POST", &path, Some(&term))
                .unwrap();
            assert!(matches!(status, 200 | 503), "{answer}");
            status == 200
        });
    }
    assert_eq!(count(&cluster), 4);
}
