//! `inspect`: texts for people about the trace.

use crate::{agent, fail, succeed};
use serde_json::Value as Json;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn inspect(database: &Path, args: &[&str]) -> String {
    let mut command = agent();
    succeed(
        command
            .arg("--database")
            .arg(database)
            .arg("inspect")
            .args(args),
    )
}

#[test]
fn it_tells_programs_activity_and_who_can_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("trace.db");
    let run = ["run", "--sample-interval", "1s", "--samples", "3"];
    // Keeps this test's process active, in case the machine is idle. On a busy machine, it gets some time in
    // a second, but not in each tenth of one.
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let traced = agent().arg("--database").arg(&database).args(run).output();
        is_over.store(true, Ordering::Relaxed);
        assert!(traced.unwrap().status.success());
    });
    let text = inspect(&database, &[]);
    for words in [
        "3 samples of this host",
        "Kept for 60d at most, and 512.0 MiB",
        "When you were at the computer",
        "Which programs ran",
        "numbers that only this host's key could lead back to paths",
        "mode 0640",
        "trace.db-key",
    ] {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
    let json: Json = serde_json::from_str(&inspect(&database, &["--json"])).unwrap();
    assert_eq!(json["samples_count"], 3);
    assert_eq!(json["mode"], "0640");
    assert_eq!(json["paths"], serde_json::json!([]));
    assert!(json["files_count"].as_i64() > Some(0), "{json}");
    let programs = json["programs"].as_array().unwrap();
    assert!(programs.iter().any(|p| p["samples_count"] == 3), "{json}");

    let nothing = inspect(&database, &["--last", "0s"]);
    assert!(nothing.contains("holds nothing of that time"), "{nothing}");
    let (code, message) = fail(agent().args(["--database", "/nowhere/trace.db", "inspect"]));
    assert_eq!(code, 1);
    assert!(message.contains("/nowhere/trace.db"), "{message}");
}
