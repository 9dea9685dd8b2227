//! Messages to the service manager (sd_notify(3)): readiness, state and signs of life.
//!
//! Messages use one socket that never blocks: a hung service manager must not delay the return of memory to its
//! owner.

use rustix::time::{ClockId, clock_gettime};
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::thread::sleep;
use std::time::Duration;

/// Maximum number of attempts to report readiness: without this message, a service would never count as
/// started.
const TRIES: u32 = 100;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// Connection to the service manager; empty if the process is not a service.
#[derive(Debug, Default)]
pub struct ServiceManager {
    to: Option<(UnixDatagram, SocketAddr)>,
    sign_of_life_interval: Option<Duration>,
}

impl ServiceManager {
    /// Finds the service manager that started this process, by the environment (`NOTIFY_SOCKET`,
    /// `WATCHDOG_USEC`, `WATCHDOG_PID`). If it cannot be reached, the process does not count as a service.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self::of(|name| std::env::var_os(name))
    }

    fn of(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let to = variable("NOTIFY_SOCKET").and_then(|name| socket(&name).ok());
        let number = |name| variable(name)?.to_str()?.parse::<u64>().ok();
        let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog_us = number("WATCHDOG_USEC").filter(|us| *us > 0 && is_ours);
        Self {
            sign_of_life_interval: watchdog_us
                .filter(|_| to.is_some())
                .map(|us| Duration::from_micros(us / 3)),
            to,
        }
    }

    /// Interval at which to call [`Self::alive`]: a third of the service manager's timeout, so that one
    /// message may be lost or late. `None` if there is no timeout.
    #[must_use]
    pub const fn sign_of_life_interval(&self) -> Option<Duration> {
        self.sign_of_life_interval
    }

    /// Reports that the daemon is ready, after its start or after [`Self::reloading`]. This may take up to
    /// two seconds.
    pub fn ready(&self, status: &str) {
        let words = format!("READY=1\n{}", status_line(status));
        for _ in 0..TRIES {
            match self.send(&words) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => sleep(BETWEEN_TRIES),
                _ => return, // sent, or there is no service manager
            }
        }
    }

    /// Reports the daemon's state as a short text.
    pub fn status(&self, status: &str) {
        self.send_if_possible(&status_line(status));
    }

    /// Sends a sign of life. Call this from the loop that could hang.
    pub fn alive(&self) {
        self.send_if_possible("WATCHDOG=1\n");
    }

    /// Reports that the daemon reloads its configuration; [`Self::ready`] must follow.
    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let now_us = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
        self.send_if_possible(&format!("RELOADING=1\nMONOTONIC_USEC={now_us}\n"));
    }

    /// Reports that the daemon ends.
    pub fn stopping(&self, status: &str) {
        self.send_if_possible(&format!("STOPPING=1\n{}", status_line(status)));
    }

    fn send_if_possible(&self, words: &str) {
        // If a status is lost, `systemctl status` only shows an old line; signs of life are repeated.
        let _ = self.send(words);
    }

    fn send(&self, words: &str) -> io::Result<()> {
        let Some((socket, address)) = &self.to else {
            return Ok(());
        };
        socket.send_to_addr(words.as_bytes(), address).map(drop)
    }
}

/// Status line; line breaks in the text are replaced.
fn status_line(status: &str) -> String {
    format!("STATUS={}\n", status.replace('\n', " "))
}

fn socket(name: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(name)?,
        _ => return Err(ErrorKind::Unsupported.into()),
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manager(socket: &OsStr, variables: &[(&str, &str)]) -> ServiceManager {
        ServiceManager::of(|name| match name {
            "NOTIFY_SOCKET" => Some(socket.to_owned()),
            _ => {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            }
        })
    }

    fn heard(receiver: &UnixDatagram) -> String {
        let mut buffer = [0; 4096];
        receiver
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let length = receiver.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    #[test]
    fn each_word_as_the_protocol_has_it_by_path_and_by_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("gleaner-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        for (receiver, named) in [
            (UnixDatagram::bind(&path).unwrap(), path.clone().into()),
            (
                UnixDatagram::bind_addr(&address).unwrap(),
                OsString::from(format!("@{name}")),
            ),
        ] {
            let manager = manager(&named, &[]);
            manager.ready("serves\nall");
            assert_eq!(heard(&receiver), "READY=1\nSTATUS=serves all\n");
            manager.status("waits");
            assert_eq!(heard(&receiver), "STATUS=waits\n");
            manager.alive();
            assert_eq!(heard(&receiver), "WATCHDOG=1\n");
            manager.reloading();
            let said = heard(&receiver);
            let now_us = said.strip_prefix("RELOADING=1\nMONOTONIC_USEC=");
            assert!(now_us.unwrap().trim_end().parse::<u64>().unwrap() > 0);
            manager.stopping("ends");
            assert_eq!(heard(&receiver), "STOPPING=1\nSTATUS=ends\n");
        }
    }

    #[test]
    fn a_watchdog_for_this_process_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let _receiver = UnixDatagram::bind(&path).unwrap();
        let pid = std::process::id().to_string();
        let every = |variables: &[(&str, &str)]| {
            manager(path.as_os_str(), variables).sign_of_life_interval()
        };
        let third = Some(Duration::from_secs(1));
        assert_eq!(every(&[("WATCHDOG_USEC", "3000000")]), third);
        let ours = [("WATCHDOG_USEC", "3000000"), ("WATCHDOG_PID", &pid)];
        assert_eq!(every(&ours), third);
        for (usec, pid) in [("3000000", "1"), ("0", &pid), ("soon", &pid)] {
            assert_eq!(
                every(&[("WATCHDOG_USEC", usec), ("WATCHDOG_PID", pid)]),
                None
            );
        }
        assert_eq!(every(&[]), None);
    }

    #[test]
    fn nobody_and_who_is_stuck_keep_nothing_waiting() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["", "relative", "vsock:2:1"] {
            manager(OsStr::new(name), &[("WATCHDOG_USEC", "1")]).alive();
        }
        let gone = manager(folder.path().join("gone").as_os_str(), &[]);
        gone.ready("serves");
        let path = folder.path().join("notify");
        let _stuck = UnixDatagram::bind(&path).unwrap();
        let manager = manager(path.as_os_str(), &[]);
        // These messages are more than any queue holds: a blocking socket would hang here.
        (0..100_000).for_each(|_| manager.alive());
        assert_eq!(manager.send("x").unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}
