//! Real sources of the owner's activity: a pseudo-terminal.

use crate::{sample, sample_command, value};
pub(crate) use gleaner_harness::now_ms;
use serde_json::Value as Json;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

/// Ends a process when dropped.
pub(crate) struct ChildGuard(pub(crate) Child);

impl Drop for ChildGuard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Row of one source in a sample.
pub(crate) fn source(name: &str, command: &mut Command) -> Json {
    let document = sample(command.args(["--settle", "1ms"]));
    let mut sources = document["activity"].as_array().unwrap().iter();
    let source = sources.find(|s| s["source"]["value"] == name);
    source.unwrap().clone()
}

/// Typing must be seen on a pseudo-terminal that controls processes, such as those of sshd and of terminal
/// windows.
#[test]
fn typing_on_a_remote_terminal_is_seen() {
    const LONG_AGO: Duration = Duration::from_secs(3600);
    let mut remote = Command::new("script")
        .args(["-qfc", "tty; exec cat", "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keyboard = remote.stdin.take().unwrap();
    let mut screen = BufReader::new(remote.stdout.take().unwrap());
    let _remote = ChildGuard(remote);
    let mut line = String::new();
    screen.read_line(&mut line).unwrap();
    let terminal = Path::new(line.trim());
    // This folder has no node of the host's other terminals, so they are not examined.
    let dev = tempfile::tempdir().unwrap();
    std::fs::create_dir(dev.path().join("pts")).unwrap();
    let node = dev.path().join("pts").join(terminal.file_name().unwrap());
    std::os::unix::fs::symlink(terminal, node).unwrap();
    let idle_ms = || {
        let source = source(
            "terminal",
            sample_command().arg("--dev-root").arg(dev.path()),
        );
        assert_eq!(source["devices_count"]["value"], 1);
        value(&source, "idle_ms", Some("ms")).unwrap()
    };

    let accessed = std::fs::FileTimes::new().set_accessed(SystemTime::now() - LONG_AGO);
    let node = std::fs::File::options().write(true).open(terminal).unwrap();
    node.set_times(accessed).unwrap();
    drop(node);
    let long_ago_ms = LONG_AGO.as_millis() as i64;
    assert!(idle_ms() >= long_ago_ms);
    let typed_ms = now_ms();
    keyboard.write_all(b"typed\n").unwrap();
    for _ in ["the terminal's echo", "what cat read"] {
        line.clear();
        screen.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "typed");
    }
    let idle_ms = idle_ms();
    assert!(idle_ms <= now_ms() - typed_ms + 8000, "{idle_ms}"); // the kernel's steps of 8 s
}
