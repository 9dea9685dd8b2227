//! `gleaner owner`, while `gleaner-memoryd` runs and while it does not.

use gleaner_harness::{Running, wait_for};
use gleaner_tests::program;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn owner(socket: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(program("gleaner").unwrap());
    command.args(["owner", "--socket"]).arg(socket).args(args);
    command.env("TZ", "UTC").output().unwrap()
}

/// Output of a command that must succeed.
#[track_caller]
fn said(socket: &Path, args: &[&str]) -> String {
    let output = owner(socket, args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_owner_says_and_sees_what_is_lent() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let socket = path("memoryd.sock");

    let output = owner(&socket, &["status"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("no gleaner-memoryd at") && error.contains("gleaner-memoryd run"),
        "{error}"
    );
    assert_eq!(owner(&socket, &["cap", "much"]).status.code(), Some(2));

    std::fs::write(path("memoryd.toml"), "").unwrap();
    let mut command = Command::new(program("gleaner-memoryd").unwrap());
    for (option, name) in [
        ("--config", "memoryd.toml"),
        ("--agent-socket", "agent.sock"),
        ("--socket", "memoryd.sock"),
        ("--state-folder", "state"),
    ] {
        command.arg(option).arg(path(name));
    }
    let _daemon = Running::start(command.arg("run"));
    wait_for("an answer", || owner(&socket, &["status"]).status.success());

    let text = said(&socket, &["status"]);
    for line in [
        "lent             0 B of 0 B that may be lent: the owner, or memory, cannot be seen\n",
        "agent            not heard: nothing is lent without it\n",
        "paused           no\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
    assert_eq!(
        said(&socket, &["pause"]),
        "paused until `gleaner owner resume`\n"
    );
    assert!(said(&socket, &["pause", "--for", "2h"]).starts_with("paused until 20"));
    assert_eq!(
        said(&socket, &["resume"]),
        "lending, without a cap of yours\n"
    );
    assert_eq!(
        said(&socket, &["cap", "4GiB"]),
        "lending, 4.0 GiB at most\n"
    );
    let status: Value = serde_json::from_str(&said(&socket, &["status", "--json"])).unwrap();
    assert_eq!(status["cap_bytes"], 4_u64 << 30);
    assert_eq!(status["quota"]["lent_bytes"], 0);
    assert_eq!(
        said(&socket, &["cap", "none"]),
        "lending, without a cap of yours\n"
    );
    assert_eq!(said(&socket, &["log"]), "nothing has been lent yet\n");
    assert_eq!(said(&socket, &["log", "--json"]), "[]\n");
}
