//! GNOME's idle time: Mutter offers Wayland clients no idle protocol, but a service on the session bus.

use super::IdleSource;
use crate::read::dbus::{Bus, Values};
use rustix::fd::BorrowedFd;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

const SERVICE: &str = "org.gnome.Mutter.IdleMonitor";
const PATH: &str = "/org/gnome/Mutter/IdleMonitor/Core";

/// Mutter's idle monitor.
pub(super) struct Mutter {
    socket: PathBuf,
    bus: Option<Bus>,
}

impl Mutter {
    /// Connects, and asks for the first time.
    pub(super) fn open(runtime_folder: &Path) -> Result<Self, String> {
        let socket = match std::env::var("DBUS_SESSION_BUS_ADDRESS") {
            Ok(address) if !address.is_empty() => socket(&address).ok_or_else(|| {
                format!("DBUS_SESSION_BUS_ADDRESS={address} names no socket by its path")
            })?,
            _ => runtime_folder.join("bus"),
        };
        let bus = Bus::connect(&socket, SERVICE)
            .map_err(|e| format!("no session bus at {}: {e}", socket.display()))?;
        let mut mutter = Self {
            socket,
            bus: Some(bus),
        };
        // A timeout also means that Mutter is there: without Mutter the bus replies immediately.
        mutter.idle_ms()?;
        Ok(mutter)
    }

    fn ask(&mut self) -> io::Result<i64> {
        // The connection is dropped on failure: a late answer could be taken for the answer to the next
        // question.
        let mut bus = match self.bus.take() {
            Some(bus) => bus,
            None => Bus::connect(&self.socket, SERVICE)?,
        };
        bus.restart_timeout();
        let body = bus.call(PATH, SERVICE, "GetIdletime", &[])?;
        let idle_ms = Values::new(&body).long();
        let idle_ms = idle_ms.and_then(|ms| i64::try_from(ms).ok());
        let idle_ms = idle_ms.ok_or(io::ErrorKind::InvalidData)?;
        self.bus = Some(bus);
        Ok(idle_ms)
    }
}

impl IdleSource for Mutter {
    fn idle_ms(&mut self) -> Result<Option<i64>, String> {
        match self.ask() {
            Ok(idle_ms) => Ok(Some(idle_ms)),
            Err(e) => match e.kind() {
                io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Ok(None),
                io::ErrorKind::NotFound => Err(format!("no {SERVICE} on the session bus")),
                _ => Err(format!("{SERVICE} on the session bus: {e}")),
            },
        }
    }

    fn news(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn name(&self) -> &'static str {
        SERVICE
    }
}

/// First local socket of a bus address (D-Bus specification, "Server Addresses").
fn socket(address: &str) -> Option<PathBuf> {
    let mut local = address.split(';').filter_map(|a| a.strip_prefix("unix:"));
    let path = local.find_map(|a| a.split(',').find_map(|pair| pair.strip_prefix("path=")))?;
    let mut bytes = Vec::new();
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            (digit()? * 16 + digit()?) as u8
        } else {
            byte
        });
    }
    Some(OsString::from_vec(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_found_in_a_bus_address() {
        let plain = Some(PathBuf::from("/run/user/1000/bus"));
        assert_eq!(socket("unix:path=/run/user/1000/bus"), plain);
        let several = "tcp:host=localhost;unix:guid=0a,path=/run/user/1000/bus;unix:path=/b";
        assert_eq!(socket(several), plain);
        assert_eq!(socket("unix:path=/a%20%C3%a9"), Some("/a é".into()));
        for unusable in [
            "",
            "unix:abstract=/tmp/dbus-1",
            "unix:path=/a%4",
            "unix:path=/%zz",
        ] {
            assert_eq!(socket(unusable), None, "{unusable}");
        }
    }
}
