//! systemd-logind: its sessions, at seats and remote, and their idle hints.
//!
//! The files under `/run/systemd/sessions` have no idle hint (and other users may not read them), so this
//! module asks over the system bus.

use crate::missing_values::{AbsentValue, Reason};
use crate::read::dbus::{Bus, Values};
use std::io;
use std::path::Path;

/// Maximum number of sessions that are asked about.
const MOST_SESSIONS: usize = 256;

/// Summary of all sessions' idle hints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sessions {
    /// Newest activity on the wall clock; `None` if no session has one.
    pub newest_ms: Option<i64>,
    /// Number of sessions with a hint.
    pub count: usize,
}

/// Asks logind at `now_ms`.
///
/// # Errors
/// Unsupported without a system bus or logind, denied if the bus rejects this user, malformed if the answers
/// do not have the documented form, vanished if the bus hangs.
pub fn read(run_root: &Path, now_ms: i64) -> Result<Sessions, AbsentValue> {
    let socket = run_root.join("dbus/system_bus_socket");
    let mut bus = Bus::connect(&socket, "org.freedesktop.login1").map_err(absent)?;
    let body = bus
        .call(
            "/org/freedesktop/login1",
            "org.freedesktop.login1.Manager",
            "ListSessions",
            &[],
        )
        .map_err(absent)?;
    let paths = paths(&body).ok_or_else(malformed)?;
    let mut sessions = Sessions::default();
    for path in paths.into_iter().take(MOST_SESSIONS) {
        let session = match Session::read(&mut bus, path) {
            Ok(session) => session,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue, // the session has ended
            Err(e) => return Err(absent(e)),
        };
        if let Some(active_ms) = session.active_ms(now_ms) {
            sessions.newest_ms = sessions.newest_ms.max(Some(active_ms));
            sessions.count += 1;
        }
    }
    Ok(sessions)
}

fn absent(error: io::Error) -> AbsentValue {
    let reason = match error.kind() {
        io::ErrorKind::PermissionDenied => Reason::Denied,
        io::ErrorKind::InvalidData => Reason::Malformed,
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Reason::Vanished,
        _ => Reason::Unsupported,
    };
    AbsentValue::new(reason, format!("logind: {error}"))
}

fn malformed() -> AbsentValue {
    absent(io::ErrorKind::InvalidData.into())
}

/// Parses object paths in an answer to `ListSessions`: `a(susso)`.
fn paths(body: &[u8]) -> Option<Vec<&str>> {
    let mut values = Values::new(body);
    values.word()?;
    let mut paths = Vec::new();
    values.align(8);
    while !values.is_empty() {
        let (_id, _uid, _user, _seat) = (
            values.text()?,
            values.word()?,
            values.text()?,
            values.text()?,
        );
        paths.push(values.text()?);
        values.align(8);
    }
    Some(paths)
}

/// Properties of one session.
#[derive(Clone, Copy, Debug)]
struct Session {
    is_user: bool,
    is_graphical: bool,
    idle_hint: bool,
    idle_since_us: u64,
}

impl Session {
    fn read(bus: &mut Bus, path: &str) -> io::Result<Self> {
        let mut get = |property| {
            const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
            bus.call(
                path,
                PROPERTIES,
                "Get",
                &["org.freedesktop.login1.Session", property],
            )
        };
        let (class, kind) = (get("Class")?, get("Type")?);
        let (hint, since) = (get("IdleHint")?, get("IdleSinceHint")?);
        Self::parse(&class, &kind, &hint, &since).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn parse(class: &[u8], kind: &[u8], hint: &[u8], since: &[u8]) -> Option<Self> {
        let [mut class, mut kind] = [class, kind].map(Values::new);
        let [mut hint, mut since] = [hint, since].map(Values::new);
        class.variant("s")?;
        kind.variant("s")?;
        hint.variant("b")?;
        since.variant("t")?;
        Some(Self {
            is_user: class.text()?.starts_with("user"),
            is_graphical: matches!(kind.text()?, "x11" | "wayland" | "mir"),
            idle_hint: hint.word()? != 0,
            idle_since_us: since.long()?,
        })
    }

    /// Time of the session's last activity. For a terminal, the hint's time is the terminal's access time,
    /// whether the hint is set or not. For a desktop, it is the time when the hint was set; while the hint is
    /// cleared, the session may be in use, and the result is `now_ms`. `None` for a desktop that never set
    /// its hint.
    fn active_ms(&self, now_ms: i64) -> Option<i64> {
        if !self.is_user || self.idle_since_us == 0 {
            return None;
        }
        if self.is_graphical && !self.idle_hint {
            return Some(now_ms);
        }
        i64::try_from(self.idle_since_us / 1000).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_hint_tells() {
        let active_ms = |is_user, is_graphical, idle_hint, idle_since_us| {
            let session = Session {
                is_user,
                is_graphical,
                idle_hint,
                idle_since_us,
            };
            session.active_ms(9000)
        };
        assert_eq!(active_ms(true, true, true, 5_000_000), Some(5000));
        assert_eq!(active_ms(true, true, false, 5_000_000), Some(9000));
        assert_eq!(active_ms(true, true, false, 0), None); // a desktop without hints
        assert_eq!(active_ms(true, false, false, 5_000_000), Some(5000));
        assert_eq!(active_ms(true, false, true, 5_000_000), Some(5000));
        assert_eq!(active_ms(false, true, false, 5_000_000), None); // the greeter is no user's session
    }

    #[test]
    fn a_bus_that_hangs_is_not_waited_for() {
        let run = tempfile::tempdir().unwrap();
        std::fs::create_dir(run.path().join("dbus")).unwrap();
        let socket = run.path().join("dbus/system_bus_socket");
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let reason = || read(run.path(), 0).map_err(|absent| absent.reason);
        assert_eq!(reason(), Err(Reason::Vanished)); // queued, but never accepted
        drop(listener);
        assert_eq!(reason(), Err(Reason::Unsupported));
    }

    #[test]
    fn torn_answers_are_none() {
        assert_eq!(paths(&[]), None);
        assert_eq!(paths(&[0, 0, 0, 0]), Some(vec![]));
        assert_eq!(paths(&[8, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0]), None);
    }
}
