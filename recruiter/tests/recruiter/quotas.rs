//! Tests of the published quotas: JSON, events, files and metrics.

use crate::hosts::{Host, id};
use crate::running::{GIB, MIB, QUICK, Recruiter, agent, asked, wait_for};
use gleaner_schemas::lending::Quotas;
use std::io::{BufRead, BufReader, Read};
use std::sync::atomic::{AtomicBool, Ordering};

/// Reads the next event, and returns its name and its quotas.
fn event(lines: &mut impl BufRead) -> (String, Quotas) {
    let (mut name, mut line) = (String::new(), String::new());
    loop {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the events ended");
        if let Some(text) = line.strip_prefix("event: ") {
            name = text.trim().to_owned();
        }
        if let Some(data) = line.strip_prefix("data: ") {
            return (name, serde_json::from_str(data).unwrap());
        }
    }
}

#[test]
fn those_who_watch_hear_the_whole_and_then_what_changes() {
    let folder = tempfile::tempdir().unwrap();
    let recruiter = Recruiter::start(folder.path(), QUICK);
    let first = Host::new(1, GIB).link(&recruiter.url);
    let mut second = Host::new(2, GIB).link(&recruiter.url);
    recruiter.ready(2);
    let url = format!("{}/v1/quotas/watch", recruiter.url);
    let answer = agent().get(url).call().unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut lines = BufReader::new(answer.into_body().into_reader());
    let (name, all) = event(&mut lines);
    assert_eq!(name, "quotas");
    let ids: Vec<_> = all.hosts.iter().map(|h| h.host_id.clone()).collect();
    assert_eq!(ids, [id(1), id(2)]);
    assert_eq!(all.hosts[0].quota_bytes, GIB);

    first.state().quota.quota_bytes = 3 * GIB;
    let changed = loop {
        let (name, changed) = event(&mut lines);
        assert_eq!(name, "changed");
        if changed.hosts.iter().any(|h| h.quota_bytes == 3 * GIB) {
            break changed;
        }
    };
    assert!(
        changed.hosts.iter().all(|h| h.host_id == id(1)),
        "{changed:?}"
    );
    assert_eq!(recruiter.lease("pager", &asked(5 * GIB, "a")).status, 503);
    // The host that was removed is sent once more, with a quota of 0.
    second.leave();
    loop {
        let (_, changed) = event(&mut lines);
        let of_second = changed.hosts.iter().find(|h| h.host_id == id(2));
        if of_second.is_some_and(|h| h.quota_bytes == 0) {
            break;
        }
    }
    let all = recruiter.get("/v1/quotas").body;
    assert_eq!(all["hosts"].as_array().unwrap().len(), 1);
}

#[test]
fn quotas_are_in_files_that_are_whole_whenever_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("quotas.json");
    let prom = folder.path().join("gleaner.prom");
    let more = format!("{QUICK}quota_file = {json:?}\nquota_textfile = {prom:?}\n");
    let recruiter = Recruiter::start(folder.path(), &more);
    let host = Host::new(1, GIB).link(&recruiter.url);
    recruiter.ready(1);
    let read = || -> Quotas { serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap() };
    wait_for("the file", || json.exists() && read().hosts.len() == 1);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !done.load(Ordering::Relaxed) {
                read(); // an incomplete document would not parse
                reads += 1;
            }
            reads
        });
        for gib in 2..5 {
            host.state().quota.quota_bytes = gib * GIB;
            wait_for("the change", || read().hosts[0].quota_bytes == gib * GIB);
        }
        done.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 3);
    });
    let line = format!(
        "gleaner_memoryd_quota_bytes{{host_id=\"{}\"}} {}",
        id(1),
        4 * GIB
    );
    wait_for("the textfile", || {
        std::fs::read_to_string(&prom).unwrap().contains(&line)
    });
    // The file is also written if nothing has changed, so that readers see that its writer runs.
    let before = read().time_ms;
    wait_for("an announcement interval", || read().time_ms > before);
}

#[test]
fn the_metrics_tell_of_hosts_leases_and_refusals() {
    let folder = tempfile::tempdir().unwrap();
    let recruiter = Recruiter::start(folder.path(), QUICK);
    let _host = Host::new(1, GIB).link(&recruiter.url);
    recruiter.ready(1);
    assert_eq!(recruiter.lease("pager", &asked(MIB, "a")).status, 201);
    assert_eq!(recruiter.lease("pager", &asked(9 * GIB, "b")).status, 503);
    let mut text = String::new();
    let answer = agent()
        .get(format!("{}/metrics", recruiter.url))
        .call()
        .unwrap();
    answer
        .into_body()
        .into_reader()
        .read_to_string(&mut text)
        .unwrap();
    let has = |line: &str| assert!(text.contains(line), "{line} is not in {text}");
    has(&format!(
        "gleaner_memoryd_quota_bytes{{host_id=\"{}\"}} {}",
        id(1),
        GIB
    ));
    has(&format!(
        "gleaner_memoryd_lent_bytes{{host_id=\"{}\"}} {}",
        id(1),
        2 * MIB
    ));
    has("gleaner_recruiter_links 1");
    has("gleaner_recruiter_leases 1");
    has("gleaner_recruiter_granted_requests_total 1");
    has("gleaner_recruiter_rejected_requests_total{reason=\"no_memory\"} 1");
    has("gleaner_recruiter_grant_duration_seconds_count 1");
    assert!(text.ends_with("# EOF\n"));
}
