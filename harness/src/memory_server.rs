//! A memory server without an agent and a recruiter.
#![allow(clippy::expect_used)]

use crate::{Running, program};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

/// A running `gleaner-memoryd standalone`, which lends all of its memory to every client.
#[derive(Debug)]
pub struct MemoryServer {
    /// The running program; killed when this value is dropped.
    pub running: Running,
    /// URL at which NBD clients reach the lent memory.
    pub url: String,
}

impl MemoryServer {
    /// Starts a memory server of size `size`, such as `64MiB`. It listens at `listen`: HOST:PORT, or the path
    /// of a Unix socket.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    #[track_caller]
    pub fn start(size: &str, listen: &str) -> Self {
        let mut command = Command::new(program("gleaner-memoryd").expect("a built workspace"));
        command.args(["standalone", size, "--listen", listen]);
        let running = Running::start(command.stdout(Stdio::piped()));
        let url = running.printed();
        Self { running, url }
    }

    /// Address of the server; `None` for a Unix socket.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        let address = self.url.strip_prefix("nbd://")?;
        address.trim_end_matches('/').parse().ok()
    }
}
