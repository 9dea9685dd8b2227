//! A memory server without an agent and a recruiter.
#![allow(clippy::expect_used)]

use crate::{Running, program};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

/// A running `gleaner-memoryd standalone`, which lends all of its memory to every client.
#[derive(Debug)]
pub struct MemoryServer {
    /// The program; killed when this is dropped.
    pub running: Running,
    /// URL of its pages, for NBD clients.
    pub url: String,
}

impl MemoryServer {
    /// Starts a memory server of this size, like `64MiB`, that listens at HOST:PORT or at a
    /// socket's path.
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
