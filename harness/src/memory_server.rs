//! A memory server without agent and recruiter.
#![allow(clippy::expect_used)]

use crate::{Running, program};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

/// A running `gleaner-memoryd serve`, which lends all of its memory to everybody.
#[derive(Debug)]
pub struct MemoryServer {
    /// The program; killed with the value.
    pub running: Running,
    /// Address of its pages, as NBD clients take it.
    pub url: String,
}

impl MemoryServer {
    /// Starts one of this size, like `64MiB`, that listens at HOST:PORT or at the path of a socket.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    #[track_caller]
    pub fn start(size: &str, listen: &str) -> Self {
        let mut command = Command::new(program("gleaner-memoryd").expect("a built workspace"));
        command.args(["serve", "--standalone", size, "--listen", listen]);
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
