//! A round of lending: an idle host lends, a client gets a lease, the owner returns, and the memory is
//! reclaimed.

use super::client::{CLIENT, LEASE_BYTES, lease_request};
use super::cluster::{CAP_BYTES, Cluster};
use crate::delivery::running::wait_for;
use serde_json::json;
use std::time::{Duration, Instant};

/// Maximum time for the reclaim. It takes milliseconds on an idle machine; if memory were returned gradually,
/// it would take minutes.
const AT_ONCE: Duration = Duration::from_secs(15);

#[test]
fn what_an_idle_host_lends_is_leased_and_is_its_owners_again_when_they_return() {
    let mut cluster = Cluster::start(1, 1);
    let (host, recruiter) = (&cluster.hosts[0], &cluster.recruiters[0]);
    wait_for("the quota", || {
        let (status, quotas) = recruiter.ask("GET", "/v1/quotas", None).unwrap();
        status == 200 && quotas["hosts"][0]["quota_bytes"] == CAP_BYTES
    });
    let request = lease_request("whole", 60_000);
    let mut granted = None;
    wait_for("a lease", || {
        // A recruiter that has just started answers 503 for one announcement interval.
        let (status, answer) = recruiter.ask("POST", "/v1/leases", Some(&request)).unwrap();
        assert!(matches!(status, 201 | 503), "{answer}");
        granted = (status == 201).then_some(answer);
        granted.is_some()
    });
    let granted = granted.unwrap();
    let lease = &granted["leases"][0];
    assert_eq!(lease["host_id"], host.id.as_str());
    assert_eq!(lease["granted_bytes"], LEASE_BYTES);
    let lending = host.lending();
    assert_eq!(lending.quota.lent_bytes, LEASE_BYTES);
    assert_eq!(lending.linked_recruiters.len(), 1);
    assert_eq!(lease["lease_id"], lending.leases[0].lease_id.as_str());
    // A request with the same key gets the same lease.
    let (status, again) = recruiter.ask("POST", "/v1/leases", Some(&request)).unwrap();
    assert_eq!(
        (status, &again["leases"][0]["lease_id"]),
        (200, &lease["lease_id"])
    );

    assert_eq!(host.log(), []);

    let returned = Instant::now();
    host.agent.owner_returns();
    let is_over = || {
        let (_, all) = recruiter.ask("GET", "/v1/leases", None).unwrap();
        host.lending().leases.is_empty() && all["leases"] == json!([])
    };
    wait_for("the owner's memory", || {
        is_over() || returned.elapsed() > AT_ONCE
    });
    let log = host.log();
    assert!(is_over(), "not at once: {log:?}");
    let [back] = &log[..] else {
        panic!("once: {log:?}")
    };
    assert_eq!((back.cause.as_str(), back.steps_count), ("owner", 1));
    assert_eq!(
        (back.peak_lent_bytes, back.remaining_lent_bytes),
        (LEASE_BYTES, 0)
    );
    // Nothing was written to the lease, so that no memory had to be returned: 0 bytes.
    assert_eq!(
        (back.bytes, &back.clients[..]),
        (0, &[CLIENT.to_owned()][..])
    );
    assert!(
        u128::from(back.full_reclaim_us) < AT_ONCE.as_micros(),
        "{back:?}"
    );
    let lending = host.lending();
    assert_eq!(
        (
            lending.quota.quota_bytes,
            lending.quota.lent_bytes,
            lending.resident_bytes
        ),
        (0, 0, 0)
    );
    wait_for("the recruiter to know", || recruiter.knows(&cluster.hosts));
    let path = format!("/v1/leases/{}", lease["lease_id"].as_str().unwrap());
    let (status, gone) = recruiter
        .ask("POST", &format!("{path}/renew"), Some(&json!({})))
        .unwrap();
    assert_eq!(status, 404, "{gone}");
    let (status, refused) = recruiter
        .ask("POST", "/v1/leases", Some(&lease_request("later", 60_000)))
        .unwrap();
    assert!(
        status == 503 && refused["retry_in_ms"].is_number(),
        "{refused}"
    );
    let (status, _) = recruiter.ask("DELETE", &path, None).unwrap();
    assert_eq!(status, 204, "what is over counts as ended");

    host.agent.owner_leaves();
    wait_for("the quota to be back", || {
        host.lending().quota.unleased_bytes == CAP_BYTES
    });
    assert_eq!(cluster.hosts[0].end(), Some(0));
}
