//! What a running clerk says of its device, to root and its own user.

use serde::Deserialize;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// As far as lab and doctor care.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Device {
    pub(crate) size_bytes: u64,
    pub(crate) stored_bytes: u64,
    pub(crate) has_disk: bool,
    pub(crate) pages: Pages,
    pub(crate) servers: Vec<Server>,
}

/// Pages, as counted since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Pages {
    pub(crate) lost: u64,
    pub(crate) disk_failed: u64,
}

/// Where they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Server {
    /// `up`, `down`, `draining` or `gone`.
    pub(crate) standing: String,
    pub(crate) size_bytes: u64,
    pub(crate) used_bytes: u64,
}

impl Device {
    /// Those that take and give pages.
    pub(crate) fn up(&self) -> impl Iterator<Item = &Server> {
        self.servers.iter().filter(|server| server.standing == "up")
    }
}

/// Asks the clerk whose status socket this is: what it says, as read here and whole.
///
/// # Errors
/// There is none, it does not answer in time, or says what is no status.
pub(crate) fn ask(socket: &Path, patience: Duration) -> io::Result<(Device, serde_json::Value)> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(patience))?;
    let mut said = String::new();
    stream.read_to_string(&mut said)?;
    let value: serde_json::Value = serde_json::from_str(&said)?;
    Ok((Device::deserialize(&value)?, value))
}
