//! A logind made by the test on a private bus: the agent's evaluation of idle hints of sessions.

use crate::activity::ChildGuard;
use crate::{sample, sample_command, value};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;
use zbus::OwnedObjectPath;

const SESSION: &str = "/org/freedesktop/login1/session/_32";

/// Values of `IdleHint` and `IdleSinceHint`.
type Hint = Arc<Mutex<(bool, u64)>>;

struct Manager;

#[zbus::interface(name = "org.freedesktop.login1.Manager")]
impl Manager {
    fn list_sessions(&self) -> Vec<(String, u32, String, String, OwnedObjectPath)> {
        ["/org/freedesktop/login1/session/ended", SESSION]
            .map(|path| {
                let path = OwnedObjectPath::try_from(path).unwrap();
                ("2".into(), 1000, "owner".into(), "seat0".into(), path)
            })
            .into()
    }
}

struct Session(Hint);

#[zbus::interface(name = "org.freedesktop.login1.Session")]
impl Session {
    #[zbus(property)]
    fn class(&self) -> String {
        "user".into()
    }

    #[zbus(property, name = "Type")]
    fn kind(&self) -> String {
        "wayland".into()
    }

    #[zbus(property)]
    fn idle_hint(&self) -> bool {
        self.0.lock().unwrap().0
    }

    #[zbus(property)]
    fn idle_since_hint(&self) -> u64 {
        self.0.lock().unwrap().1
    }
}

/// Starts a private bus; returns it with its address.
pub(crate) fn bus(socket: &Path) -> (ChildGuard, String) {
    std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
    let address = format!("unix:path={}", socket.display());
    let mut bus = Command::new("dbus-daemon")
        .args(["--session", "--nofork", "--print-address=1"])
        .arg(format!("--address={address}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("dbus-daemon is missing: run tests/setup");
    let mut line = String::new();
    let stdout = bus.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    assert!(line.starts_with("unix:"), "{line}");
    (ChildGuard(bus), address)
}

/// Returns state, idle time and number of sessions with hints, as a sample has them for the source logind.
fn logind(run: &Path) -> (String, Option<i64>, Option<i64>) {
    let document = sample(
        sample_command()
            .args(["--settle", "1ms"])
            .arg("--run-root")
            .arg(run),
    );
    let mut sources = document["activity"].as_array().unwrap().iter();
    let source = sources.find(|s| s["source"]["value"] == "logind").unwrap();
    (
        source["state"]["value"].as_str().unwrap().to_owned(),
        value(source, "idle_ms", Some("ms")),
        value(source, "devices_count", Some("count")),
    )
}

#[test]
fn idle_hints_of_logind_are_seen() {
    let unsupported = ("unsupported".to_owned(), None, Some(0));
    let run = tempfile::tempdir().unwrap();
    assert_eq!(logind(run.path()), unsupported); // no bus
    let (daemon, address) = bus(&run.path().join("dbus/system_bus_socket"));
    assert_eq!(logind(run.path()), unsupported); // no logind

    let hint = Hint::default();
    let session = Session(Arc::clone(&hint));
    let service = zbus::block_on(async {
        zbus::connection::Builder::address(address.as_str())
            .serve_at("/org/freedesktop/login1", Manager)
            .serve_at(SESSION, session)
            .name("org.freedesktop.login1")
            .build()
            .await
    })
    .unwrap();
    assert_eq!(logind(run.path()), unsupported); // a desktop that never set its hint

    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let hour_ago_us = (now.unwrap().as_micros() as u64) - 3_600_000_000;
    *hint.lock().unwrap() = (true, hour_ago_us);
    let (state, idle_ms, count) = logind(run.path());
    assert_eq!((state.as_str(), count), ("ok", Some(1)));
    assert!(idle_ms >= Some(3_600_000), "{idle_ms:?}");
    *hint.lock().unwrap() = (false, hour_ago_us);
    assert_eq!(logind(run.path()), ("ok".to_owned(), Some(0), Some(1)));

    drop(service);
    drop(daemon);
    assert_eq!(logind(run.path()), unsupported);
}
