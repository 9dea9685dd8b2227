//! A running device: one thread serves its clients and uses its servers, and waits for all of them together.
//!
//! Other threads do slow work and report the results: they connect ([`connect`]), use the disk, and send
//! requests to recruiters.

mod buffered;
mod client;
mod connect;
mod disk;
mod front;
mod server;
mod status;
mod turn;

pub use disk::DiskError;
pub use status::{DeviceStatus, ServerStatus};

use super::engine::{Device, Settings};
use crate::nbd::client::{ConnectError, Export, Source, Wire};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use turn::Turn;

/// Settings of the device, its disk and its socket.
#[derive(Clone, Debug)]
pub struct Options {
    /// Settings of the engine.
    pub device: Settings,
    /// Folder of the copy on disk; `None`: no copy.
    pub disk_folder: Option<PathBuf>,
    /// Unix socket for clients.
    pub socket: PathBuf,
    /// Time for which an abandoned server without a lease is not tried again (Dodo's refraction period).
    pub refraction_period: Duration,
}

/// Reason why a device could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The socket cannot be opened.
    #[error("listen at {path}: {source}")]
    Listen {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The copy on disk cannot be made.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The kernel refuses a resource.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Counts the answers of a server that has closed its half of the connection. For the fuzzer only.
#[doc(hidden)]
pub fn count_answers(wire: Wire) -> io::Result<u64> {
    let mut connection = server::Connection::new(wire)?;
    let mut count = 0;
    while connection.receive()? {
        while connection.next_reply()?.is_some() {
            count += 1;
        }
    }
    Ok(count)
}

/// News of leases for the program that requests them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseNews {
    /// The lease stores no page any more and can be ended.
    Released(String),
    /// The server of this lease could not be connected in time; the lease can be ended.
    Unreachable(String),
    /// The server of this lease reports that the lease has ended.
    Over(String),
    /// Numbers of used and free pages, sent at intervals.
    Demand(Demand),
}

/// Pages that the device has and needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Number of pages with content.
    pub stored: u64,
    /// Number of usable slots at connected servers.
    pub slots: u64,
    /// Number of free slots.
    pub free: u64,
    /// Number of leases being connected, whose slots are not counted yet.
    pub connecting: u64,
}

enum Message {
    Client(UnixStream),
    Join(Source),
    Leave(String),
    Over(String),
    Connected(u32, Result<(Wire, Export), ConnectError>),
    Ask(Sender<DeviceStatus>),
    End,
}

/// Sends messages to the device's thread.
#[derive(Clone)]
pub struct Handle {
    messages: Sender<Message>,
    bell: Arc<OwnedFd>,
}

impl Handle {
    fn tell(&self, message: Message) {
        // The thread has ended: there is no receiver.
        let _ = self.messages.send(message);
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    /// Has the device use a server.
    pub fn join(&self, source: Source) {
        self.tell(Message::Join(source));
    }

    /// Has the device stop using a lease that ends soon or is not needed. Its pages are moved, and
    /// [`LeaseNews::Released`] follows.
    pub fn leave(&self, lease: &str) {
        self.tell(Message::Leave(lease.to_owned()));
    }

    /// Reports to the device that the lease has ended.
    pub fn over(&self, lease: &str) {
        self.tell(Message::Over(lease.to_owned()));
    }

    /// State of the device; `None` when it has ended.
    #[must_use]
    pub fn status(&self) -> Option<DeviceStatus> {
        let (answer, answered) = channel();
        self.tell(Message::Ask(answer));
        answered.recv().ok()
    }

    /// Ends the device, and drops its contents.
    pub fn end(&self) {
        self.tell(Message::End);
    }
}

/// A running device.
pub struct RunningDevice {
    /// Sender of messages to the device.
    pub handle: Handle,
    thread: JoinHandle<()>,
}

impl RunningDevice {
    /// Starts the device. From then on clients can connect; until there are servers, their writes go to disk.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(
        options: &Options,
        key: &[u8; 32],
        told: Sender<LeaseNews>,
    ) -> Result<Self, StartError> {
        let disk = match &options.disk_folder {
            Some(folder) => Some(disk::Disk::open(folder, options.device.pages)?),
            None => None,
        };
        let settings = Settings {
            has_disk: disk.is_some(),
            ..options.device
        };
        let device = Device::new(settings, key)
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let bell = Arc::new(eventfd(0, EventfdFlags::NONBLOCK).map_err(io::Error::from)?);
        let (messages, inbox): (_, Receiver<Message>) = channel();
        let handle = Handle { messages, bell };
        front::listen(&options.socket, settings.pages, handle.clone())?;
        let turn = Turn::new(
            device,
            disk,
            handle.clone(),
            inbox,
            told,
            options.refraction_period,
        );
        let thread = thread::Builder::new()
            .name("device".to_owned())
            .spawn(move || turn.run())?;
        Ok(Self { handle, thread })
    }

    /// Waits until the device has ended.
    pub fn join(self) {
        let _ = self.thread.join();
    }
}
