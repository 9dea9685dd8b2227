//! Sources of the owner's activity as they are: an X server with a synthetic pointer, a pseudo-terminal.

use crate::{agent, fail, sample, sample_command, value};
use serde_json::Value as Json;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::MOTION_NOTIFY_EVENT;
use x11rb::protocol::xtest::ConnectionExt;

/// Ends the process with the test.
pub(crate) struct Ended(pub(crate) Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap().as_millis() as i64
}

/// An X server without a screen to see, and its display's name.
fn x_server() -> (Ended, String) {
    let mut server = Command::new("Xvfb")
        .args(["-displayfd", "1", "-nolisten", "tcp"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("Xvfb is missing: run tests/setup");
    let mut number = String::new();
    let stdout = server.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut number).unwrap();
    (Ended(server), format!(":{}", number.trim()))
}

fn move_pointer(display: &str) {
    let (connection, screen) = x11rb::connect(Some(display)).unwrap();
    let root = connection.setup().roots[screen].root;
    for x in [10, 20] {
        let moved = connection.xtest_fake_input(MOTION_NOTIFY_EVENT, 0, 0, root, x, 5, 0);
        moved.unwrap().check().unwrap();
    }
}

fn reporter(display: &str, runtime_folder: &Path) -> Command {
    let mut command = agent();
    command
        .args(["session", "--every", "100ms"])
        .env("DISPLAY", display)
        .env("XDG_RUNTIME_DIR", runtime_folder);
    command
}

/// What a sample says of one source.
fn source(name: &str, command: &mut Command) -> Json {
    let document = sample(command.args(["--settle", "1ms"]));
    let mut sources = document["activity"].as_array().unwrap().iter();
    let source = sources.find(|s| s["source"]["value"] == name);
    source.unwrap().clone()
}

/// Samples until the session's state is `state` and its idle time as wanted.
fn wait_for_session(run: &Path, state: &str, wanted: impl Fn(Option<i64>) -> bool) -> Option<i64> {
    loop {
        let session = source("session", sample_command().arg("--run-root").arg(run));
        let idle_ms = value(&session, "idle_ms", Some("ms"));
        if session["state"]["value"] == state && wanted(idle_ms) {
            return idle_ms;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_moved_pointer_is_seen_through_the_x_server() {
    let run = tempfile::tempdir().unwrap();
    let run = run.path();
    let runtime_folder = run.join("user/1000");
    std::fs::create_dir_all(&runtime_folder).unwrap();
    let (server, display) = x_server();
    wait_for_session(run, "unsupported", |idle_ms| idle_ms.is_none());

    let mut first = Ended(reporter(&display, &runtime_folder).spawn().unwrap());
    let longer = |than_ms: i64| move |idle_ms: Option<i64>| idle_ms > Some(than_ms);
    let before_ms = wait_for_session(run, "ok", longer(1000));
    let moved_ms = now_ms();
    move_pointer(&display);
    wait_for_session(run, "ok", |idle_ms| idle_ms < before_ms);
    // Backdated to the movement, not to when it was asked about; 10 ms for two clocks' rounding.
    let said = std::fs::metadata(runtime_folder.join("gleaner-session")).unwrap();
    let said = said.modified().unwrap();
    let said_ms = said
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_millis() as i64;
    assert!(said_ms >= moved_ms - 10, "{said_ms} {moved_ms}");
    wait_for_session(run, "ok", longer(1000)); // left alone, it grows again

    let pid = rustix::process::Pid::from_child(&first.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(first.0.wait().unwrap().success());
    wait_for_session(run, "unsupported", |idle_ms| idle_ms.is_none());

    let mut second = Ended(reporter(&display, &runtime_folder).spawn().unwrap());
    wait_for_session(run, "ok", |idle_ms| idle_ms.is_some());
    drop(server);
    assert_eq!(second.0.wait().unwrap().code(), Some(1));
    wait_for_session(run, "unsupported", |idle_ms| idle_ms.is_none());
}

#[test]
fn a_reporter_without_a_display_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    for (command, what) in [
        (
            reporter(":0", folder.path()).env_remove("DISPLAY"),
            "no X display",
        ),
        (
            reporter(":0", folder.path()).env_remove("XDG_RUNTIME_DIR"),
            "XDG_RUNTIME_DIR is not set",
        ),
    ] {
        let (code, message) = fail(command);
        assert_eq!(code, 1);
        let says = message.contains(what) && message.contains("inside the desktop session");
        assert!(says, "{message}");
    }
    let nothing = std::fs::read_dir(folder.path()).unwrap().next();
    assert!(nothing.is_none());
}

/// What sshd and a terminal window do: a pseudo-terminal that controls the processes on it.
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
    let _remote = Ended(remote);
    let mut line = String::new();
    screen.read_line(&mut line).unwrap();
    let terminal = Path::new(line.trim());
    // Other terminals of this host have no node here, and so are not looked at.
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
    assert!(idle_ms <= now_ms() - typed_ms + 8000, "{idle_ms}"); // the kernel's steps
}
