//! Messages to the service manager (sd_notify(3)): that the daemon serves, its state, that it is well.
//!
//! By one socket that never blocks: a service manager that is stuck must not keep memory from going back to its owner.

use rustix::time::{ClockId, clock_gettime};
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::thread::sleep;
use std::time::Duration;

/// Without the first word a service would never count as started: it is said again for so long while nobody takes it in.
const TRIES: u32 = 100;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// The service manager; empty if the process is no service.
#[derive(Debug, Default)]
pub struct ServiceManager {
    to: Option<(UnixDatagram, SocketAddr)>,
    alive_every: Option<Duration>,
}

impl ServiceManager {
    /// The process that started this one, by its environment (`NOTIFY_SOCKET`, `WATCHDOG_USEC`, `WATCHDOG_PID`). One
    /// that cannot be reached is nobody.
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
            alive_every: watchdog_us
                .filter(|_| to.is_some())
                .map(|us| Duration::from_micros(us / 3)),
            to,
        }
    }

    /// Interval at which [`Self::alive`] is to be said: a third of the time after which the service manager ends the
    /// process, so that a word may be lost, or late. `None`: it does not care.
    #[must_use]
    pub const fn alive_every(&self) -> Option<Duration> {
        self.alive_every
    }

    /// Reports that the daemon serves, from the start on or again after [`Self::reloading`]. May wait, for
    /// two seconds at most.
    pub fn ready(&self, status: &str) {
        let words = format!("READY=1\n{}", status_line(status));
        for _ in 0..TRIES {
            match self.say(&words) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => sleep(BETWEEN_TRIES),
                _ => return, // said; or there is nobody, now or ever
            }
        }
    }

    /// Reports the daemon's state, in a few words.
    pub fn status(&self, status: &str) {
        self.try_to_say(&status_line(status));
    }

    /// Reports that the daemon is well. To be called by the loop that could get stuck.
    pub fn alive(&self) {
        self.try_to_say("WATCHDOG=1\n");
    }

    /// Reports that it reads its configuration again; [`Self::ready`] follows.
    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let now_us = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
        self.try_to_say(&format!("RELOADING=1\nMONOTONIC_USEC={now_us}\n"));
    }

    /// Reports that it ends.
    pub fn stopping(&self, status: &str) {
        self.try_to_say(&format!("STOPPING=1\n{}", status_line(status)));
    }

    fn try_to_say(&self, words: &str) {
        // A lost message costs a line of `systemctl status`; signs of life are repeated in time.
        let _ = self.say(words);
    }

    fn say(&self, words: &str) -> io::Result<()> {
        let Some((socket, address)) = &self.to else {
            return Ok(());
        };
        socket.send_to_addr(words.as_bytes(), address).map(drop)
    }
}

/// A line of its own whatever the words are.
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
        let every = |variables: &[(&str, &str)]| manager(path.as_os_str(), variables).alive_every();
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
        // More than any queue takes: it would wait here for ever.
        (0..100_000).for_each(|_| manager.alive());
        assert_eq!(manager.say("x").unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}
