//! `gleaner-agent session` on real desktops (an X server, sway, XWayland) and on desktops made by the tests
//! (a Wayland compositor, GNOME's idle monitor).

mod compositor;
mod mutter;
mod sway;
mod wayland;
mod x11;

use crate::activity::{ChildGuard, now_ms};
use crate::agent;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Timeout, longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Idle time after which a desktop reports itself idle, less 10 ms for the rounding of two clocks.
const IDLE_AFTER_MS: i64 = 990;

/// Interval between looks. It is so long that a report can be written before the second look: then the look
/// did not cause the report. The limit in ms is a second less, since the first look takes place some time
/// after counting begins.
const SECOND_LOOK: &str = "20s";
const SECOND_LOOK_MS: i64 = 19_000;

/// Command of a reporter that finds no desktop except those that the test adds.
fn reporter(runtime_folder: &Path, every: &str) -> Command {
    let mut command = agent();
    command
        .args(["session", "--every", every])
        .env("XDG_RUNTIME_DIR", runtime_folder)
        .stderr(Stdio::piped());
    for variable in [
        "DBUS_SESSION_BUS_ADDRESS",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "WAYLAND_SOCKET",
        "XDG_SESSION_TYPE",
    ] {
        command.env_remove(variable);
    }
    command
}

fn start(command: &mut Command) -> ChildGuard {
    ChildGuard(command.spawn().unwrap())
}

/// Waits for the end of the reporter; returns its exit code and output.
fn outcome(mut reporter: ChildGuard) -> (Option<i32>, String) {
    let mut said = String::new();
    let mut stderr = reporter.0.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    (reporter.0.wait().unwrap().code(), said)
}

/// Contents of a report.
#[derive(Clone, Copy, Debug)]
struct Word {
    /// Time of the last activity.
    active_ms: i64,
    /// Time of the report.
    said_ms: i64,
}

impl Word {
    fn read(runtime_folder: &Path) -> Option<Self> {
        let file = std::fs::metadata(runtime_folder.join("gleaner-session")).ok()?;
        Some(Self {
            active_ms: file.mtime() * 1000 + file.mtime_nsec() / 1_000_000,
            said_ms: file.ctime() * 1000 + file.ctime_nsec() / 1_000_000,
        })
    }

    fn is_idle(&self) -> bool {
        self.said_ms - self.active_ms >= IDLE_AFTER_MS
    }

    /// Returns true if somebody was active at `since_ms` or later, allowing 10 ms for the rounding of two
    /// clocks.
    fn is_active_since(&self, since_ms: i64) -> bool {
        self.active_ms >= since_ms - 10
    }
}

/// Calls `meanwhile` until the report is as `wanted`.
fn wait_for_word_while(
    runtime_folder: &Path,
    wanted: impl Fn(&Word) -> bool,
    mut meanwhile: impl FnMut(),
) -> Word {
    let until = Instant::now() + PATIENCE;
    loop {
        let word = Word::read(runtime_folder);
        match word {
            Some(word) if wanted(&word) => return word,
            _ => assert!(Instant::now() < until, "{word:?} at {}", now_ms()),
        }
        meanwhile();
    }
}

fn wait_for_word(runtime_folder: &Path, wanted: impl Fn(&Word) -> bool) -> Word {
    let pause = || std::thread::sleep(Duration::from_millis(10));
    wait_for_word_while(runtime_folder, wanted, pause)
}

#[test]
fn a_reporter_without_a_desktop_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let desktop = |variable: &str, value: &str| {
        let mut command = reporter(folder.path(), "5s");
        command.env(variable, value);
        command
    };
    let mut no_folder = reporter(folder.path(), "5s");
    no_folder.env_remove("XDG_RUNTIME_DIR");
    for (mut command, words) in [
        (no_folder, "XDG_RUNTIME_DIR is not set"),
        (
            reporter(folder.path(), "5s"),
            "WAYLAND_DISPLAY is not set; GNOME: no session bus at ; X11: no X display",
        ),
        (desktop("WAYLAND_DISPLAY", "gone"), "WAYLAND_DISPLAY=gone"),
        (
            desktop("DBUS_SESSION_BUS_ADDRESS", "tcp:host=localhost"),
            "DBUS_SESSION_BUS_ADDRESS=tcp:host=localhost names no socket",
        ),
        (
            desktop("XDG_SESSION_TYPE", "wayland"),
            "X11: not asked, for XWayland observes only the input to X programs",
        ),
    ] {
        let (code, message) = crate::fail(&mut command);
        assert_eq!(code, 1);
        let message = message.replace(
            &format!(
                "{}: No such file or directory (os error 2)",
                folder.path().join("bus").display()
            ),
            "",
        );
        let says = message.contains(words) && message.contains("inside the desktop session");
        assert!(says, "{message}");
    }
    let nothing = std::fs::read_dir(folder.path()).unwrap().next();
    assert!(nothing.is_none());
}
