//! Tests the collector's status: page, JSON, metrics and command.

use crate::made::{body, id, inventory};
use crate::running::{Collector, agent, program, wait_for};
use gleaner_harness::now_ms;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Text and headers of a page, as a browser receives them.
fn page(collector: &Collector, query: &str) -> (String, ureq::http::HeaderMap) {
    let address = format!("{}/{query}", collector.url);
    let mut answer = agent().get(&address).call().unwrap();
    assert_eq!(answer.status(), 200);
    let text = answer.body_mut().read_to_string().unwrap();
    (text, answer.headers().clone())
}

/// Lines of the metrics that begin with `name`, without values that vary.
fn sample(collector: &Collector, name: &str) -> Option<String> {
    let text = collector.get("/metrics").1;
    let text = text.as_str().unwrap().to_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().to_owned())
}

/// Starts a collector that knows `hosts` from an earlier run.
fn with_hosts(folder: &Path, hosts: &Value, more: &str) -> Collector {
    let data = folder.join("data");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("hosts.json"), hosts.to_string()).unwrap();
    Collector::start(folder, more)
}

fn host(name: &str, version: &str, last_received_time_ms: i64) -> Value {
    serde_json::json!({
        "host_name": name, "agent_version": version, "sample_interval_ms": 90_000,
        "last_received_time_ms": last_received_time_ms, "last_record_time_ms": last_received_time_ms - 30_000,
        "skew_ms": 0, "databases": {},
    })
}

#[test]
fn the_page_shows_hosts_and_takes_no_name_for_markup() {
    let folder = tempfile::tempdir().unwrap();
    let now = now_ms();
    let hosts = serde_json::json!({
        id(1): host("<img src=x onerror=alert(1)>", "0.1.0", now),
        id(2): host("beaver", "0.1.0", now),
        id(3): host("otter", "0.1.0", now),
    });
    let collector = with_hosts(folder.path(), &hosts, "");
    let (text, headers) = page(&collector, "");
    assert!(text.contains("All 3 hosts are heard of"), "{text}");
    assert!(text.contains("&#60;img src=x onerror"), "{text}");
    assert!(!text.contains("<img"));
    let policy = headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");

    let at = |text: &str, name: &str| text.find(&format!(">{name} <small")).unwrap();
    assert!(at(&text, "beaver") < at(&text, "otter"));
    let (text, _) = page(&collector, "?sort=-name");
    assert!(at(&text, "beaver") > at(&text, "otter"));
    let (text, _) = page(&collector, "?q=%20OTT&sort=nonsense&page=99&state=");
    assert!(text.contains("1 of 3 hosts") && !text.contains(">beaver <small"));
    let (text, _) = page(&collector, "?q=%22%3E%3Cscript%3Ealert(1)");
    assert!(text.contains("No host is like that") && !text.contains("<script>alert"));
    let (text, _) = page(&collector, "?state=silent");
    assert!(text.contains("0 of 3 hosts"), "{text}");
}

#[test]
fn what_is_wrong_is_told_alike_by_page_status_metrics_and_command() {
    let folder = tempfile::tempdir().unwrap();
    let now = now_ms();
    let mut hosts = serde_json::json!({
        id(1): host("well", "0.1.0", now),
        id(2): host("gone", "0.0.9", now - 86_400_000 * 3),
        id(3): host("early", "0.1.0", now),
        id(4): host("strange", "0.1.0", now),
    });
    hosts[id(3)]["skew_ms"] = Value::from(-3_600_000);
    hosts[id(4)]["last_rejection"] = serde_json::json!({
        "time_ms": now, "kind": "newer", "reason": "too new for me",
    });
    let file = folder.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let more = format!("dataset = {file:?}\nseal_after = \"1s\"\ndisk_reserve = \"1024TiB\"");
    let collector = with_hosts(folder.path(), &hosts, &more);
    let answer = collector.send(&body(&id(1), &id(9), 1..=2));
    assert_eq!(answer.0, 503, "{answer:?}");

    let status = collector.get("/v1/status").1;
    let kinds: Vec<&str> = status["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| problem["kind"].as_str().unwrap())
        .collect();
    let expected = [
        "disk_full",
        "hosts_rejected",
        "hosts_silent",
        "clocks_wrong",
        "several_versions",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(status["is_well"], false);
    assert_eq!(
        status["hosts_by_state"],
        serde_json::json!({"rejected": 1, "silent": 1, "clock_wrong": 1, "well": 1})
    );
    let (text, _) = page(&collector, "");
    let severities: Vec<_> = text.match_indices("class=\"severity\"").collect();
    assert_eq!(severities.len(), expected.len());
    assert!(text.contains("too new for me. Upgrade this collector."));
    assert!(text.contains("gone (00000000): for 3 days"), "{text}");
    for (labels, value) in [
        (r#"{kind="disk_full",severity="fault"}"#, "1"),
        (r#"{kind="cannot_seal",severity="fault"}"#, "0"),
        (r#"{kind="hosts_silent",severity="warning"}"#, "1"),
    ] {
        let found = sample(&collector, &format!("gleaner_collector_problem{labels}"));
        assert_eq!(found.as_deref(), Some(value), "{labels}");
    }
    let (code, said) = ask(&["--url", &collector.url]);
    assert_eq!(code, Some(3));
    assert!(said.starts_with("fault: The disk is full"), "{said}");
    assert!(
        said.contains("\nrejected     strange  00000000  "),
        "{said}"
    );
}

#[test]
fn a_collector_that_cannot_seal_is_not_well_until_it_can() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let more = format!("dataset = {file:?}\nseal_after = \"1s\"");
    let collector = Collector::start(folder.path(), &more);
    assert_eq!(collector.send(&body(&id(1), &id(9), 1..=2)).0, 200);
    collector.hear("cannot seal");
    let problem = |kind: &str| {
        let name = format!("gleaner_collector_problem{{kind=\"{kind}\",severity=\"fault\"}}");
        sample(&collector, &name)
    };
    assert_eq!(problem("cannot_seal").as_deref(), Some("1"));
    assert_eq!(ask(&["--url", &collector.url]).0, Some(3));
    std::fs::remove_file(&file).unwrap();
    collector.seal();
    assert_eq!(problem("cannot_seal").as_deref(), Some("0"));
    assert_eq!(ask(&["--url", &collector.url]).0, Some(0));
    let rows = sample(&collector, "gleaner_collector_dataset_rows ");
    assert_eq!(rows.as_deref(), Some("8"));
}

#[test]
fn the_command_finds_the_collector_by_its_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "");
    assert_eq!(collector.send(&inventory(&id(1), &id(2), 1)).0, 200);
    let (code, json) = ask(&["--url", &collector.url, "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &json["hosts_count"]), (Some(0), &Value::from(1)));
    assert_eq!(json["hosts"][0]["host_name"], "otter");

    let file = folder.path().join("asked.toml");
    let address = collector.url.strip_prefix("http://").unwrap();
    std::fs::write(&file, format!("local_listen = {address:?}\n")).unwrap();
    let (code, said) = ask(&["--config", file.to_str().unwrap()]);
    assert_eq!(code, Some(0));
    assert!(said.contains("otter"), "{said}");
    collector.kill();
    assert_eq!(ask(&["--config", file.to_str().unwrap()]).0, Some(3));
    assert_eq!(ask(&["--url", "https://127.0.0.1:1"]).0, Some(3));
}

#[test]
fn a_host_keeps_its_name_when_the_collector_is_killed_before_it_has_sealed() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "");
    assert_eq!(collector.send(&inventory(&id(1), &id(2), 1)).0, 200);
    assert_eq!(collector.send(&body(&id(1), &id(2), 2..=3)).0, 200);
    collector.kill();
    drop(collector);
    let collector = Collector::start(folder.path(), "");
    wait_for("the journal to be sealed", || {
        collector.get("/v1/status").1["journal_bytes"] == 0
    });
    let host = &collector.get("/v1/status").1["hosts"][0];
    assert_eq!(host["host_name"], "otter");
    assert_eq!(host["agent_version"], "0.1.0");
    assert_eq!(host["last_gap_cause"], "sleep");
}

fn ask(args: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(program())
        .arg("status")
        .args(args)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), said)
}
