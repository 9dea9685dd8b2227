//! X11, with a synthetic pointer.

use super::{PATIENCE, SECOND_LOOK, SECOND_LOOK_MS, Word, outcome, reporter, start, wait_for_word};
use crate::activity::{ChildGuard, now_ms, source};
use crate::{sample_command, value};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::MOTION_NOTIFY_EVENT;
use x11rb::protocol::xtest::ConnectionExt;

/// Starts an X server; returns its display's name.
pub(super) fn x_server(command: &mut Command) -> (ChildGuard, String) {
    let mut server = command
        .args(["-displayfd", "1", "-nolisten", "tcp", "-noreset"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("an X server is missing: run tests/setup");
    let mut number = String::new();
    let stdout = server.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut number).unwrap();
    (ChildGuard(server), format!(":{}", number.trim()))
}

/// Starts an X server without a screen.
pub(super) fn xvfb() -> (ChildGuard, String) {
    x_server(&mut Command::new("Xvfb"))
}

fn move_pointer(display: &str) {
    let (connection, screen) = x11rb::connect(Some(display)).unwrap();
    let root = connection.setup().roots[screen].root;
    for x in [10, 20] {
        let moved = connection.xtest_fake_input(MOTION_NOTIFY_EVENT, 0, 0, root, x, 5, 0);
        moved.unwrap().check().unwrap();
    }
}

/// Takes samples until the session's state is `state` and its idle time is as `wanted`.
fn wait_for_session(run: &Path, state: &str, wanted: impl Fn(Option<i64>) -> bool) -> Option<i64> {
    let until = Instant::now() + PATIENCE;
    loop {
        let session = source("session", sample_command().arg("--run-root").arg(run));
        let idle_ms = value(&session, "idle_ms", Some("ms"));
        if session["state"]["value"] == state && wanted(idle_ms) {
            return idle_ms;
        }
        assert!(Instant::now() < until, "{session}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_moved_pointer_is_seen_through_the_x_server() {
    let run = tempfile::tempdir().unwrap();
    let run = run.path();
    let runtime_folder = run.join("user/1000");
    std::fs::create_dir_all(&runtime_folder).unwrap();
    let (server, display) = xvfb();
    let reporter = || start(reporter(&runtime_folder, "100ms").env("DISPLAY", &display));
    wait_for_session(run, "unsupported", |idle_ms| idle_ms.is_none());

    let mut first = reporter();
    let longer = |than_ms: i64| move |idle_ms: Option<i64>| idle_ms > Some(than_ms);
    let before_ms = wait_for_session(run, "ok", longer(1000));
    let moved_ms = now_ms();
    move_pointer(&display);
    wait_for_session(run, "ok", |idle_ms| idle_ms < before_ms);
    // The report has the time of the movement, not of the look.
    let word = Word::read(&runtime_folder).unwrap();
    assert!(word.is_active_since(moved_ms), "{word:?} {moved_ms}");
    wait_for_session(run, "ok", longer(1000)); // without input, the idle time grows again

    let pid = rustix::process::Pid::from_child(&first.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(first.0.wait().unwrap().success());
    wait_for_session(run, "unsupported", |idle_ms| idle_ms.is_none());

    let second = reporter();
    wait_for_session(run, "ok", |idle_ms| idle_ms.is_some());
    drop(server);
    let (code, message) = outcome(second);
    assert_eq!(code, Some(1));
    assert!(message.contains("the X server"), "{message}");
    wait_for_session(run, "unsupported", |idle_ms| idle_ms.is_none());
}

#[test]
fn who_comes_back_to_the_x_server_is_seen_before_the_next_look() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, display) = xvfb();
    let _reporter = start(reporter(folder.path(), SECOND_LOOK).env("DISPLAY", &display));
    let first = wait_for_word(folder.path(), |_| true);
    wait_until_idle(&display);
    let moved_ms = now_ms();
    move_pointer(&display);
    let word = wait_for_word(folder.path(), |word| word.is_active_since(moved_ms));
    let waited_ms = word.said_ms - first.said_ms;
    assert!(waited_ms < SECOND_LOOK_MS, "{waited_ms} ms");
}

/// Waits until the server has been idle for the time of the reporter's alarm.
fn wait_until_idle(display: &str) {
    use x11rb::protocol::screensaver::ConnectionExt;
    let (connection, screen) = x11rb::connect(Some(display)).unwrap();
    let root = connection.setup().roots[screen].root;
    let idle_ms = || {
        let info = connection.screensaver_query_info(root).unwrap().reply();
        info.unwrap().ms_since_user_input
    };
    while idle_ms() <= 1000 {
        std::thread::sleep(Duration::from_millis(20));
    }
}
