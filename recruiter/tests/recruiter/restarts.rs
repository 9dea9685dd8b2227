//! Tests of killed recruiters and silent hosts: no lease is lost, and none is granted twice.

use crate::hosts::{Host, Manner};
use crate::running::{GIB, MIB, QUICK, Recruiter, asked, lease_id, wait_for};
use serde_json::json;

#[test]
fn killed_and_restarted_it_rebuilds_itself_and_finds_leases_by_their_key() {
    let folder = tempfile::tempdir().unwrap();
    let recruiter = Recruiter::start(folder.path(), QUICK);
    let address = recruiter.url.trim_start_matches("http://").to_owned();
    let hosts: Vec<_> = (1..=3)
        .map(|n| Host::new(n, GIB).link(&recruiter.url))
        .collect();
    recruiter.ready(3);
    let wanted = json!({ "bytes": MIB, "key": "a", "copies": 2 });
    let before = recruiter.lease("pager", &wanted);
    assert_eq!(before.status, 201, "{}", before.body);
    let one = lease_id(&recruiter.lease("pager", &asked(MIB, "b")));
    recruiter.kill();
    let recruiter = Recruiter::start_at(folder.path(), &address, QUICK);
    // Until its hosts are known, the recruiter neither denies leases that may exist, nor grants any.
    let path = format!("/v1/leases/{one}/renew");
    wait_for("the lease to be known again", || {
        let renewed = recruiter.post(&path, "pager", &json!({}));
        assert!([200, 503].contains(&renewed.status), "{}", renewed.body);
        assert!(renewed.status == 200 || renewed.retry_after.is_some());
        renewed.status == 200
    });
    recruiter.ready(3);
    let after = recruiter.lease("pager", &wanted);
    assert_eq!(after.status, 200, "{}", after.body);
    let ids = |answer: &crate::running::Answer| {
        let leases = answer.body["leases"].as_array().unwrap().iter();
        let mut ids: Vec<_> = leases.map(|l| l["lease_id"].to_string()).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(&before), ids(&after));
    assert_eq!(hosts.iter().map(Host::leases_count).sum::<usize>(), 3);
}

#[test]
fn two_recruiters_know_the_same_and_either_may_be_asked() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let first = Recruiter::start(folders[0].path(), QUICK);
    let second = Recruiter::start(folders[1].path(), QUICK);
    let hosts: Vec<_> = (1..=2)
        .map(|n| Host::new(n, GIB).link(&first.url).link(&second.url))
        .collect();
    first.ready(2);
    second.ready(2);
    let id = lease_id(&first.lease("pager", &asked(MIB, "a")));
    wait_for("the other to know the lease", || {
        second.get(&format!("/v1/leases/{id}")).status == 200
    });
    let again = second.lease("pager", &asked(MIB, "a"));
    assert_eq!((again.status, lease_id(&again)), (200, id.clone()));
    drop(first);
    let path = format!("/v1/leases/{id}/renew");
    assert_eq!(second.post(&path, "pager", &json!({})).status, 200);
    assert_eq!(second.delete(&id, "pager").status, 204);
    assert_eq!(hosts.iter().map(Host::leases_count).sum::<usize>(), 0);
}

#[test]
fn a_host_that_leaves_cannot_be_reached_and_after_three_missed_announcements_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let recruiter = Recruiter::start(
        folder.path(),
        "announce_every = \"1s\"\nreserve_share = 0.0\n",
    );
    let mut host = Host::new(1, GIB).link(&recruiter.url);
    recruiter.ready(1);
    let id = lease_id(&recruiter.lease("pager", &asked(MIB, "a")));
    host.leave();
    let path = format!("/v1/leases/{id}");
    wait_for("the host to be out of reach", || {
        let hosts = recruiter.get("/v1/hosts").body;
        hosts["hosts"][0]["is_reachable"] != true
    });
    // At first the recruiter still knows the lease, but cannot have it renewed, since its host is not linked.
    let lease = recruiter.get(&path);
    if lease.status == 200 {
        assert_eq!(lease.body["is_reachable"], false, "{}", lease.body);
        let renewed = recruiter.post(&format!("{path}/renew"), "pager", &json!({}));
        assert_eq!(renewed.status, 503, "{}", renewed.body);
    }
    recruiter.hear("missed three announcements");
    // The recruiter must not say that the lease has ended, since the host may still have it.
    let told = recruiter.get(&path);
    assert_eq!(
        (told.status, &told.body["kind"]),
        (503, &json!("unreachable"))
    );
    assert_eq!(recruiter.get("/v1/hosts").body["hosts"], json!([]));
    // The host reconnects and announces its lease.
    let host = host.link(&recruiter.url);
    wait_for("the lease to be back", || {
        recruiter.get(&path).status == 200
    });
    assert_eq!(host.leases_count(), 1);
}

#[test]
fn of_two_memory_servers_with_one_hosts_id_the_later_counts() {
    let folder = tempfile::tempdir().unwrap();
    let recruiter = Recruiter::start(folder.path(), QUICK);
    let mut first = Host::new(1, GIB).link(&recruiter.url);
    recruiter.ready(1);
    let second = Host::new(1, 2 * GIB);
    second.state().incarnation = "another".into();
    let second = second.link(&recruiter.url);
    wait_for("the first to be sent away", || {
        !first.state().sent_away.is_empty()
    });
    let why = first.state().sent_away[0].clone();
    assert!(why.detail.contains("machine-id"), "{why:?}");
    assert!(why.retry_in_ms.is_some());
    first.leave();
    wait_for("the second to be the host", || {
        recruiter.get("/v1/hosts").body["hosts"][0]["incarnation"] == "another"
    });
    drop(second);
}

#[test]
fn what_was_granted_by_an_answer_that_was_lost_is_found_by_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let more = format!("{QUICK}answer_timeout = \"300ms\"\ngrant_timeout = \"60s\"\n");
    let recruiter = Recruiter::start(folder.path(), &more);
    let host = Host::new(1, GIB)
        .manner(Manner::GrantsInSilence)
        .link(&recruiter.url);
    recruiter.ready(1);
    let refused = recruiter.lease("pager", &asked(MIB, "a"));
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert_eq!(refused.body["kind"], "unreachable");
    // For a while the host is avoided, and the refusal says so.
    let other = recruiter.lease("pager", &asked(MIB, "b"));
    let detail = other.body["detail"].as_str().unwrap();
    assert!(detail.contains("failed lately"), "{detail}");
    assert!(other.retry_after.is_some());
    // The lease exists nevertheless.
    wait_for("the announcement", || {
        recruiter.lease("pager", &asked(MIB, "a")).status == 200
    });
    assert_eq!(host.leases_count(), 1);
}
