//! The running agent as a service: a new configuration by SIGHUP, without a gap in the trace.

use crate::agent;
use crate::running::{Running, column, query, wait_for};
use rustix::process::Signal;
use std::path::Path;
use std::time::Duration;

/// An agent with a configuration that the test may replace.
struct Service {
    dir: tempfile::TempDir,
}

impl Service {
    fn new(text: &str) -> Self {
        let service = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        service.configure(text);
        service
    }

    fn configure(&self, text: &str) {
        let path = self.dir.path().join("trace.db");
        let text = format!("database = {path:?}\n{text}");
        std::fs::write(self.dir.path().join("agent.toml"), text).unwrap();
    }

    fn start(&self) -> Running {
        let mut command = agent();
        command
            .arg("--config")
            .arg(self.dir.path().join("agent.toml"));
        Running::start(command.arg("run"))
    }
}

fn samples(database: &Path) -> i64 {
    query(database, "SELECT count(*) FROM samples")
}

#[test]
fn sighup_changes_what_is_sampled_without_a_gap_and_a_broken_file_does_not() {
    // One sample per hour: any sample here is caused by SIGHUP.
    let service = Service::new("sample_interval = \"1h\"\n");
    let database = service.dir.path().join("trace.db");
    let running = service.start();
    running.hear("sampling every 1h");

    service.configure("intervall = \"100ms\"\n");
    running.signal(Signal::HUP);
    let said = running.hear("continues with its present settings");
    assert!(
        said.contains("line 2") && said.contains("intervall"),
        "{said}"
    );

    service.configure("sample_interval = \"2h\"\n");
    running.signal(Signal::HUP);
    wait_for("a sample for the interval that ends", || {
        samples(&database) == 1
    });
    let first_ms: i64 = query(&database, "SELECT time_ms FROM samples");
    // This pause is far longer than two of the intervals configured below.
    std::thread::sleep(Duration::from_millis(800));

    service.configure(
        "sample_interval = \"150ms\"\nprivacy = \"plain\"\nheadroom_share = 0.25\nsocket = \"/x/s\"\n",
    );
    running.signal(Signal::HUP);
    running.hear("the configuration was reloaded");
    // The command line names a socket too, which still overrides the file.
    wait_for("samples at the new interval", || samples(&database) >= 5);
    let hosts = "SELECT privacy || ' ' || sample_interval_ms || ' ' || headroom_share FROM hosts ORDER BY sequence";
    wait_for("the host as it is now", || {
        let told: Vec<String> = column(&database, hosts);
        told.last().is_some_and(|host| host == "plain 150 0.25")
    });
    let paths = "SELECT count(*) FROM files WHERE path IS NOT NULL";
    wait_for("paths", || query::<i64>(&database, paths) > 0);

    service.configure("sample_interval = \"1h\"\nprivacy = \"hashed\"\n");
    running.signal(Signal::HUP);
    running.hear("the configuration was reloaded");
    let (code, _) = running.end();
    assert_eq!(code, Some(0));
    let hosts: Vec<String> = column(&database, hosts);
    assert_eq!(hosts[0], "hashed 3600000 0.15");
    // The time between the last sample at one interval and the first at the next is no gap. A busy machine
    // may cause other gaps.
    let gaps: Vec<i64> = column(&database, "SELECT from_time_ms FROM gaps");
    assert!(!gaps.contains(&first_ms), "{first_ms}: {gaps:?}");
}
