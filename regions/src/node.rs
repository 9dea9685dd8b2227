//! Remote memory of one lease, or of one server that the program names: the connection, and the parts in use.

use crate::lock;
use crate::room::Room;
use crate::transfer::{self, NodeFailure};
use gleaner_paging::nbd::client::{Export, Wire};
use gleaner_paging::nbd::wire::transmission;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Remote memory of one lease or of one server.
pub(crate) struct Node {
    /// Id of the host, or URL of the server; all regions on it fail together.
    pub(crate) host: String,
    /// Id of the lease at the recruiter; `None` for a server that the program names, which needs no lease.
    pub(crate) lease_id: Option<String>,
    pub(crate) room: Mutex<Room>,
    /// True if no region used this memory at the keeper's last round.
    pub(crate) was_unused: AtomicBool,
    can_trim: bool,
    wire: Mutex<Option<Wire>>,
    is_gone: AtomicBool,
    patience: Duration,
}

impl Node {
    /// # Errors
    /// The kernel refuses to set the timeout of the connection.
    pub(crate) fn new(
        host: String,
        lease_id: Option<String>,
        (wire, export): (Wire, Export),
        patience: Duration,
    ) -> std::io::Result<Self> {
        wire.set_patience(Some(patience))?;
        Ok(Self {
            host,
            lease_id,
            room: Mutex::new(Room::new(export.bytes)),
            was_unused: AtomicBool::new(false),
            can_trim: export.flags & transmission::SEND_TRIM != 0,
            wire: Mutex::new(Some(wire)),
            is_gone: AtomicBool::new(false),
            patience,
        })
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }

    /// Abandons the node. Returns true at the first call. A request that is waiting for the node soon gets an
    /// error.
    pub(crate) fn abandon(&self) -> bool {
        let is_new = !self.is_gone.swap(true, Ordering::AcqRel);
        if let Ok(mut wire) = self.wire.try_lock() {
            *wire = None;
        }
        is_new
    }

    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), NodeFailure> {
        self.with(|wire, until| transfer::read(wire, offset, into, until))
    }

    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), NodeFailure> {
        self.with(|wire, until| transfer::write(wire, offset, bytes, until))
    }

    /// Tells the server to discard these bytes, which no region uses any more.
    pub(crate) fn trim(&self, offset: u64, bytes: u64) -> Result<(), NodeFailure> {
        if !self.can_trim {
            return Ok(());
        }
        self.with(|wire, until| transfer::trim(wire, offset, bytes, until))
    }

    /// Calls `done` with the connection. After an error the connection is closed, since it may be in the
    /// middle of a message.
    fn with(
        &self,
        done: impl FnOnce(&mut Wire, Instant) -> Result<(), NodeFailure>,
    ) -> Result<(), NodeFailure> {
        let mut held = lock(&self.wire);
        let wire = held.as_mut().filter(|_| !self.is_gone());
        let result = done(
            wire.ok_or(NodeFailure::Before)?,
            Instant::now() + self.patience,
        );
        if result.is_err() {
            *held = None;
        }
        result
    }
}
