//! Tests `/metrics` with a real Prometheus: Debian's, which tests/setup unpacks.

use crate::made::{body, id, inventory};
use crate::running::{Collector, agent, try_get, wait_for};
use serde_json::Value;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn program(name: &str) -> PathBuf {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    checkout.join("target/prometheus/usr/bin").join(name)
}

/// A Prometheus started by the test; killed when dropped.
struct Prometheus {
    child: Child,
    url: String,
    log: PathBuf,
}

impl Prometheus {
    fn start(folder: &Path, scraped: &str) -> Self {
        let config = folder.join("prometheus.yml");
        let target = scraped.strip_prefix("http://").unwrap();
        std::fs::write(
            &config,
            format!(
                "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n\
                 scrape_configs: [{{job_name: gleaner, static_configs: [{{targets: ['{target}']}}]}}]\n"
            ),
        )
        .unwrap();
        let address = unused_address();
        let log = folder.join("prometheus.log");
        let child = Command::new(program("prometheus"))
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.join("tsdb").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=debug")
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .expect("prometheus is missing: tests/setup unpacks it");
        Self {
            child,
            url: format!("http://{address}"),
            log,
        }
    }

    /// Value of a query; `None` if the query has no value.
    fn query(&self, query: &str) -> Option<f64> {
        let query = query
            .replace('"', "%22")
            .replace('{', "%7B")
            .replace('}', "%7D");
        let address = format!("{}/api/v1/query?query={query}", self.url);
        let (_, answer) = try_get(&agent(), &address).ok()?; // Prometheus may not listen yet
        let result = answer["data"]["result"].as_array()?.first()?.clone();
        result["value"][1].as_str()?.parse().ok()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address that was free just now. Port 0 cannot be used, since Prometheus reports the configured port
/// instead of the actual one.
fn unused_address() -> String {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().to_string()
}

#[test]
fn a_real_prometheus_scrapes_the_rows_that_were_sent() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "");
    let prometheus = Prometheus::start(folder.path(), &collector.url);
    // Prometheus scrapes from before the first host sends until after the last. One host has a name that
    // needs escaping.
    wait_for("a first scrape", || prometheus.query("up") == Some(1.0));
    let mut rows: u64 = 0;
    for number in 1..=20 {
        let (status, answer) = collector.send(&body(&id(number), &id(2), 1..=5));
        assert_eq!(status, 200, "{answer}");
        rows += answer["rows_count"].as_u64().unwrap();
    }
    let (status, answer) = collector.send(&inventory(&id(1), &id(2), 6));
    assert_eq!(status, 200, "{answer}");
    rows += answer["rows_count"].as_u64().unwrap();
    collector.seal();
    let rows = rows as f64;
    wait_for("the rows to be scraped", || {
        prometheus.query("gleaner_collector_rows_total") == Some(rows)
            && prometheus.query("gleaner_collector_dataset_rows") == Some(rows)
    });
    for (query, value) in [
        ("up", 1.0),
        ("sum(gleaner_collector_hosts)", 20.0),
        ("gleaner_collector_batches_total", 21.0),
        ("count(gleaner_host_last_received_timestamp_seconds)", 20.0),
        (
            "count(gleaner_host_info{host_name=\"otter\",agent_version=\"0.1.0\"})",
            1.0,
        ),
        ("count(gleaner_collector_problem{severity=\"fault\"})", 10.0),
    ] {
        assert_eq!(prometheus.query(query), Some(value), "{query}");
    }
    let log = std::fs::read_to_string(&prometheus.log).unwrap();
    let complaints: Vec<&str> = log
        .lines()
        .filter(|line| {
            line.contains("level=warn")
                || line.contains("level=error")
                || line.contains("scrape failed")
        })
        .collect();
    assert_eq!(complaints, Vec::<&str>::new());
    let targets = try_get(&agent(), &format!("{}/api/v1/targets", prometheus.url))
        .unwrap()
        .1;
    assert_eq!(
        targets["data"]["activeTargets"][0]["lastError"],
        Value::from("")
    );
}

/// Starts a collector that has all metrics, since it has published its dataset, also as Iceberg tables.
fn publishing(folder: &Path) -> Collector {
    let mirror = folder.join("mirror");
    std::fs::create_dir(&mirror).unwrap();
    let config = format!(
        "disk_reserve = \"1MiB\"\npublish = \"file://{}\"\n[tables]\nfolder = {:?}\nevery = \"1s\"",
        mirror.display(),
        folder.join("tables")
    );
    let collector = Collector::start(folder, &config);
    assert_eq!(collector.send(&body(&id(1), &id(2), 1..=2)).0, 200);
    collector.seal();
    wait_for("the dataset to be published", || {
        let status = collector.get("/v1/status").1;
        let is_published = |copy: &str| status[copy]["last_published_time_ms"].is_i64();
        is_published("publish") && is_published("tables")
    });
    collector
}

#[test]
fn the_documentation_has_every_metric_and_alerts_that_are_rules() {
    let folder = tempfile::tempdir().unwrap();
    let collector = publishing(folder.path());
    assert_eq!(collector.send(&inventory(&id(1), &id(2), 1)).0, 200);
    let text = collector.get("/metrics").1;
    let documented = include_str!("../../../docs/collector.md");
    let families = text.as_str().unwrap().lines();
    for family in families.filter_map(|line| line.strip_prefix("# TYPE ")) {
        let name = family.split(' ').next().unwrap();
        let short = name.trim_start_matches("gleaner_collector");
        assert!(
            documented.contains(&format!("`{name}")) || documented.contains(&format!("`{short}`")),
            "{name}"
        );
    }
    let rules = folder.path().join("rules.yml");
    let (_, block) = documented.split_once("```yaml\ngroups:").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    std::fs::write(&rules, format!("groups:{block}")).unwrap();
    let checked = Command::new(program("promtool"))
        .args(["check", "rules"])
        .arg(&rules)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{said}");
    assert!(said.contains("5 rules found"), "{said}");
}

#[test]
fn promtool_finds_nothing_to_say_about_the_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let collector = publishing(folder.path());
    assert_eq!(collector.send(&inventory(&id(1), &id(2), 1)).0, 200);
    assert_eq!(collector.send(b"no batch").0, 400);
    let text = collector.get("/metrics").1;
    let text = older(text.as_str().unwrap());
    let mut promtool = Command::new(program("promtool"))
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is missing: tests/setup unpacks it");
    promtool
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}\n{text}");
}

/// Converts to the older text format, the only one that promtool reads. In that format, a counter's family
/// has the same name as its samples.
fn older(openmetrics: &str) -> String {
    let counters: Vec<&str> = openmetrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .collect();
    let infos = openmetrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" info"));
    let infos: Vec<&str> = infos.collect();
    let renamed = |line: &str| -> String {
        let mut words: Vec<String> = line.splitn(4, ' ').map(str::to_owned).collect();
        if words[0] == "#" && words.len() == 4 {
            if counters.contains(&words[2].as_str()) {
                words[2].push_str("_total");
            } else if infos.contains(&words[2].as_str()) {
                words[2].push_str("_info");
                words[3] = words[3].replace("info", "gauge");
            }
        }
        words.join(" ")
    };
    let lines = openmetrics
        .lines()
        .filter(|line| !line.starts_with("# EOF"));
    lines.map(|line| renamed(line) + "\n").collect()
}
