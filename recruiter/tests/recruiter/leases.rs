//! Tests of granting, refusing, finding, renewing and ending leases.

use crate::hosts::{Host, Manner};
use crate::running::{Answer, GIB, MIB, QUICK, Recruiter, asked, lease_id, wait_for};
use gleaner_schemas::lending::{Refusal, RefusalKind, RequestKind};
use serde_json::json;

fn refusing(kind: RefusalKind) -> Manner {
    Manner::Refuses(Refusal {
        kind,
        detail: "the owner is there".into(),
        retry_in_ms: Some(7000),
    })
}

/// Checks the status and the kind of a refusal, and words that its text must contain.
#[track_caller]
fn assert_refused(answer: &Answer, status: u16, kind: &str, words: &[&str]) {
    let body = &answer.body;
    assert_eq!(
        (answer.status, &body["kind"]),
        (status, &json!(kind)),
        "{body}"
    );
    assert_eq!(answer.media, "application/problem+json");
    assert_eq!(body["status"], status);
    assert_eq!(body["type"], format!("urn:gleaner:refusal:{kind}"));
    let detail = body["detail"].as_str().unwrap();
    for word in words {
        assert!(detail.contains(word), "{word:?} is not in {detail:?}");
    }
    let in_header = answer.retry_after.as_ref();
    let in_header = in_header.map(|s| s.parse::<i64>().unwrap());
    let in_body = body["retry_in_ms"].as_i64();
    assert_eq!(in_header, in_body.map(|ms| (ms + 999) / 1000), "{body}");
}

#[test]
fn a_lease_is_granted_found_renewed_and_ended() {
    let folder = tempfile::tempdir().unwrap();
    let recruiter = Recruiter::start(folder.path(), QUICK);
    let host = Host::new(1, GIB).link(&recruiter.url);
    recruiter.ready(1);
    let granted = recruiter.lease("pager", &asked(3 * MIB, "a"));
    assert_eq!(granted.status, 201, "{}", granted.body);
    let id = lease_id(&granted);
    let lease = &granted.body["leases"][0];
    assert_eq!(lease["granted_bytes"], 4 * MIB); // rounded up to whole slabs
    assert_eq!(lease["host_id"], host.id);
    assert_eq!(lease["client"], "pager");
    assert_eq!(lease["address"], "127.0.0.1:1");
    // A repeated request with the same key gets the same lease.
    let again = recruiter.lease("pager", &asked(3 * MIB, "a"));
    assert_eq!((again.status, lease_id(&again)), (200, id.clone()));
    // A request for another size with the same key is refused.
    let other = recruiter.lease("pager", &asked(30 * MIB, "a"));
    assert_refused(&other, 409, "malformed", &["\"a\"", "another key"]);
    // Keys of different clients are independent.
    let others = recruiter.lease("cache", &asked(3 * MIB, "a"));
    assert_eq!(others.status, 201);
    assert_ne!(lease_id(&others), id);

    let path = format!("/v1/leases/{id}/renew");
    let renewed = recruiter.post(&path, "pager", &json!({ "term_ms": 120_000 }));
    assert_eq!(renewed.status, 200, "{}", renewed.body);
    assert_eq!(renewed.body["expires_in_ms"], 120_000);
    let foreign = recruiter.post(&path, "cache", &json!({}));
    assert_refused(&foreign, 403, "not_yours", &["cache"]);
    assert_refused(
        &recruiter.delete(&id, "cache"),
        403,
        "not_yours",
        &["cache"],
    );

    assert_eq!(recruiter.delete(&id, "pager").status, 204);
    assert_eq!(recruiter.delete(&id, "pager").status, 204); // also if the lease has already ended
    let gone = recruiter.post(&path, "pager", &json!({}));
    assert_refused(&gone, 404, "unknown_lease", &[&id]);
    // Only one lease remains: that of the other client.
    assert_eq!(host.leases_count(), 1);
    let all = recruiter.get("/v1/leases").body;
    assert_eq!(all["leases"].as_array().unwrap().len(), 1);
}

#[test]
fn copies_are_on_hosts_of_their_own_or_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let recruiter = Recruiter::start(folder.path(), QUICK);
    let hosts: Vec<_> = (1..=3)
        .map(|n| Host::new(n, GIB).link(&recruiter.url))
        .collect();
    recruiter.ready(3);
    let wanted = |copies: u64, key: &str| json!({ "bytes": MIB, "key": key, "copies": copies });
    let granted = recruiter.lease("pager", &wanted(3, "a"));
    assert_eq!(granted.status, 201, "{}", granted.body);
    assert!(hosts.iter().all(|host| host.leases_count() == 1));
    let again = recruiter.lease("pager", &wanted(3, "a"));
    assert_eq!(again.status, 200);
    assert_eq!(again.body["leases"].as_array().unwrap().len(), 3);
    let four = recruiter.lease("pager", &wanted(4, "b"));
    assert_refused(&four, 503, "no_memory", &["3 of 3 hosts", "4"]);
    // One host refuses, so the leases that the others granted are revoked.
    hosts[1].state().manner = refusing(RefusalKind::InUse);
    let refused = recruiter.lease("pager", &wanted(3, "c"));
    assert_refused(
        &refused,
        503,
        "in_use",
        &["2 of 3 copies", "the owner is there"],
    );
    assert_eq!(refused.body["retry_in_ms"], 7000);
    wait_for("the copies to be given back", || {
        hosts.iter().all(|host| host.leases_count() == 1)
    });
    // Fewer copies are requested than exist, so the superfluous ones are released.
    assert_eq!(recruiter.lease("pager", &wanted(1, "a")).status, 200);
    wait_for("copies too many to be ended", || {
        let left: usize = hosts
            .iter()
            .filter(|h| h.state().manner == Manner::Grants)
            .map(Host::leases_count)
            .sum();
        left <= 1
    });
}

#[test]
fn the_next_host_is_asked_when_one_refuses_or_is_silent() {
    let folder = tempfile::tempdir().unwrap();
    let more = format!("{QUICK}answer_timeout = \"300ms\"\ngrant_timeout = \"60s\"\n");
    let recruiter = Recruiter::start(folder.path(), &more);
    let busy = Host::new(1, GIB)
        .manner(refusing(RefusalKind::InUse))
        .link(&recruiter.url);
    let silent = Host::new(2, GIB)
        .manner(Manner::Silent)
        .link(&recruiter.url);
    let good = Host::new(3, GIB).link(&recruiter.url);
    recruiter.ready(3);
    for n in 0..8 {
        let granted = recruiter.lease("pager", &asked(MIB, &n.to_string()));
        assert_eq!(granted.status, 201, "{}", granted.body);
        assert_eq!(granted.body["leases"][0]["host_id"], good.id);
    }
    assert_eq!(good.leases_count(), 8);
    // Later requests avoid the host that did not answer, but not the host that refused.
    let asked_of = |host: &Host| host.state().asked.len();
    assert!(asked_of(&silent) <= 1, "{}", asked_of(&silent));
    good.state().manner = refusing(RefusalKind::NoMemory);
    let refused = recruiter.lease("pager", &asked(MIB, "none"));
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert!(asked_of(&busy) >= 1);
}

#[test]
fn requests_beyond_limits_are_refused_and_say_when_to_come_again() {
    let folder = tempfile::tempdir().unwrap();
    let more = "announce_every = \"500ms\"\nreserve_share = 0.25\nclient_memory_limit = \"560MiB\"\nclient_leases_limit = 2\n";
    let recruiter = Recruiter::start(folder.path(), more);
    let _host = Host::new(1, GIB).link(&recruiter.url);
    recruiter.ready(1);
    let much = recruiter.lease("pager", &asked(600 * MIB, "a"));
    assert_refused(
        &much,
        429,
        "client_limit",
        &["pager", "600.0 MiB", "560.0 MiB"],
    );
    assert_eq!(recruiter.lease("pager", &asked(MIB, "a")).status, 201);
    assert_eq!(recruiter.lease("pager", &asked(MIB, "b")).status, 201);
    let third = recruiter.lease("pager", &asked(MIB, "c"));
    assert_refused(&third, 429, "client_limit", &["2 leases"]);
    assert_eq!(recruiter.lease("a", &asked(500 * MIB, "a")).status, 201);
    let reserve = recruiter.lease("b", &asked(400 * MIB, "a"));
    assert_refused(&reserve, 503, "reserve", &["25 %", "400.0 MiB"]);
    let huge = json!({ "bytes": 100 * GIB, "key": "h" });
    let none = recruiter.lease("c", &json!({ "bytes": 530 * MIB, "key": "h", "copies": 1 }));
    assert_refused(&none, 503, "no_memory", &["0 of 1 hosts", "530.0 MiB"]);
    assert_refused(
        &recruiter.lease("c", &huge),
        429,
        "client_limit",
        &["100.0 GiB"],
    );
    let long = json!({ "bytes": MIB, "key": "l", "minimum_duration_ms": 3_600_000 });
    assert_refused(
        &recruiter.lease("d", &long),
        409,
        "too_long",
        &["3600 s", "--forecasts"],
    );
    for wrong in [
        json!({ "bytes": 0, "key": "a" }),
        json!({ "bytes": MIB, "key": "" }),
        json!({ "bytes": MIB, "key": "k", "copies": 17 }),
        json!({ "bytes": MIB, "key": "k", "term_ms": 1 }),
        json!({ "bytes": MIB, "key": "k", "unknown": 1 }),
        json!({ "bytes": MIB, "key": "k", "placement": "best" }),
        json!({ "bytes": MIB }),
    ] {
        let answer = recruiter.lease("e", &wrong);
        assert_refused(&answer, 400, "malformed", &[]);
    }
}

#[test]
fn a_lease_that_its_host_took_back_is_gone_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let recruiter = Recruiter::start(folder.path(), QUICK);
    let host = Host::new(1, GIB).link(&recruiter.url);
    recruiter.ready(1);
    let id = lease_id(&recruiter.lease("pager", &asked(MIB, "a")));
    host.state().leases.clear(); // the owner has returned
    wait_for("the lease to be gone", || {
        recruiter.get(&format!("/v1/leases/{id}")).status == 404
    });
    // The key of the ended lease can be used for another lease.
    assert_eq!(recruiter.lease("pager", &asked(MIB, "a")).status, 201);
    // The renewal carries the client's name, so that the host can check it.
    let id = lease_id(&recruiter.lease("pager", &asked(MIB, "a")));
    let path = format!("/v1/leases/{id}/renew");
    assert_eq!(recruiter.post(&path, "pager", &json!({})).status, 200);
    let named = |asked: &RequestKind| matches!(asked, RequestKind::Renew { client: Some(c), .. } if c == "pager");
    assert!(host.state().asked.iter().any(named));
}

#[test]
fn nothing_is_granted_or_denied_before_hosts_have_had_time_to_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let recruiter = Recruiter::start(folder.path(), "announce_every = \"1h\"\n");
    let _host = Host::new(1, GIB).link(&recruiter.url);
    wait_for("the host", || {
        recruiter.get("/healthz").body["links_count"] == 1
    });
    let early = recruiter.lease("pager", &asked(MIB, "a"));
    assert_refused(&early, 503, "starting", &["just started"]);
    let unknown = format!("/v1/leases/{:032x}", 1);
    assert_refused(&recruiter.get(&unknown), 503, "starting", &["just started"]);
    let renewed = recruiter.post(&format!("{unknown}/renew"), "pager", &json!({}));
    assert_refused(&renewed, 503, "starting", &["just started"]);
}

#[test]
fn sighup_changes_what_is_granted_and_a_broken_file_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let recruiter = Recruiter::start(
        folder.path(),
        &format!("{QUICK}client_memory_limit = \"4MiB\"\n"),
    );
    let _host = Host::new(1, GIB).link(&recruiter.url);
    recruiter.ready(1);
    assert_eq!(recruiter.lease("pager", &asked(2 * MIB, "a")).status, 201);
    let more = || recruiter.lease("pager", &asked(8 * MIB, "b"));
    assert_refused(&more(), 429, "client_limit", &["4.0 MiB"]);
    let broken = format!("{QUICK}client_memory_limit = \"64MiB\"\nextra_hosts_limits = 1\n");
    let said = recruiter.reload(
        folder.path(),
        &broken,
        "continues with its present settings",
    );
    assert!(
        said.contains("line 6") && said.contains("extra_hosts_limits"),
        "{said}"
    );
    assert_refused(&more(), 429, "client_limit", &["4.0 MiB"]);
    let wider = format!("{QUICK}client_memory_limit = \"64MiB\"\nquota_file = \"/q\"\n");
    let said = recruiter.reload(folder.path(), &wider, "take effect after a restart");
    assert!(said.contains("changes of quota_file take effect"), "{said}");
    // The same recruiter still knows its hosts and leases.
    assert_eq!(more().status, 201);
    assert_eq!(recruiter.get("/healthz").body["links_count"], 1);
}
