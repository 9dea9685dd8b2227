//! A lease of this host's own memory, and slots for blocks in it. The memory server serves the lease over a
//! Unix socket. A block that is read from a slot is hashed before it is used, so a lease that has ended costs
//! reads of the source and nothing else.

use crate::catalog::{BLOCK_BYTES, Hash};
use crate::store::{Block, checked};
use gleaner_paging::nbd::client::{Source, Wire, connect};
use gleaner_paging::nbd::wire::{Command, Fault, Request, SimpleReply};
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Timeout of one request. The memory server is on this machine.
const PATIENCE: Duration = Duration::from_secs(2);
/// Most connections of one lease. A memory server limits those of one client, and a refused one ends its lease.
const MOST_WIRES: usize = 2;

/// A granted lease.
pub(super) struct BlockLease {
    source: Source,
    slots: u32,
    free: Mutex<Vec<u32>>,
    wires: Mutex<Wires>,
    /// Signals that a connection is idle, or was closed.
    has_wire: Condvar,
    is_over: AtomicBool,
}

/// Connections of a lease.
#[derive(Default)]
struct Wires {
    idle: Vec<Wire>,
    /// Number of connections, idle and in use.
    count: usize,
}

impl BlockLease {
    /// Lease of `bytes` bytes at `source`, with all slots free.
    pub(super) fn new(source: Source, bytes: u64) -> Self {
        let slots = u32::try_from(bytes / BLOCK_BYTES).unwrap_or(u32::MAX);
        Self {
            source,
            slots,
            free: Mutex::new((0..slots).rev().collect()),
            wires: Mutex::default(),
            has_wire: Condvar::new(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Number of blocks that fit.
    pub(super) const fn slots(&self) -> u32 {
        self.slots
    }

    /// Number of slots without a block.
    pub(super) fn free_slots(&self) -> u32 {
        u32::try_from(lock(&self.free).len()).unwrap_or(u32::MAX)
    }

    /// Returns true if the lease has ended, or is about to be released.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Marks the lease as ended: none of its blocks is read any more.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Asks the memory server for the first bytes, which fails if the lease has ended.
    pub(super) fn probe(&self) {
        let _ = self.transfer(Command::Read, 0, &mut [0; 512]); // a failure ends the lease
    }

    fn take(&self) -> Option<u32> {
        let mut free = lock(&self.free);
        if self.is_over() { None } else { free.pop() }
    }

    /// Reads or writes `data` at `offset`. Any failure ends the lease.
    fn transfer(&self, command: Command, offset: u64, data: &mut [u8]) -> io::Result<()> {
        if self.is_over() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let done = self.try_transfer(command, offset, data);
        if done.is_err() {
            self.end();
        }
        done
    }

    fn try_transfer(&self, command: Command, offset: u64, data: &mut [u8]) -> io::Result<()> {
        let idle = self.wire();
        let work = || -> io::Result<Wire> {
            let mut wire = match idle {
                Some(wire) => wire,
                None => self.connect()?,
            };
            exchange(&mut wire, command, offset, data)?;
            Ok(wire)
        };
        let done = work();
        let mut wires = lock(&self.wires);
        let result = match done {
            Ok(wire) => {
                wires.idle.push(wire);
                Ok(())
            }
            Err(error) => {
                wires.count -= 1;
                Err(error)
            }
        };
        drop(wires);
        self.has_wire.notify_one();
        result
    }

    /// Waits for an idle connection; `None`: the caller makes one.
    fn wire(&self) -> Option<Wire> {
        let mut wires = lock(&self.wires);
        loop {
            if let Some(wire) = wires.idle.pop() {
                return Some(wire);
            }
            if wires.count < MOST_WIRES {
                wires.count += 1;
                return None;
            }
            let woken = self.has_wire.wait(wires);
            wires = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn connect(&self) -> io::Result<Wire> {
        let Source {
            server,
            export,
            tls,
            ..
        } = &self.source;
        let connected = connect(server, export, tls.as_ref(), PATIENCE);
        let (wire, export) = connected.map_err(io::Error::other)?;
        if export.bytes < u64::from(self.slots) * BLOCK_BYTES {
            return Err(io::Error::other("the lease is smaller than granted"));
        }
        wire.set_patience(Some(PATIENCE))?;
        Ok(wire)
    }
}

fn exchange(wire: &mut Wire, command: Command, offset: u64, data: &mut [u8]) -> io::Result<()> {
    let request = Request {
        flags: 0,
        command,
        cookie: offset,
        offset,
        bytes: u32::try_from(data.len()).map_err(io::Error::other)?,
    };
    wire.write_all(&request.encode())?;
    if command == Command::Write {
        wire.write_all(data)?;
    }
    wire.flush()?;
    let mut bytes = [0; SimpleReply::BYTES];
    wire.read_exact(&mut bytes)?;
    let reply = SimpleReply::decode(&bytes).filter(|reply| reply.cookie == request.cookie);
    let reply = reply.ok_or_else(|| io::Error::other("no reply to the request"))?;
    if reply.error != 0 {
        return Err(io::Error::other(Fault::from_number(reply.error)));
    }
    if command == Command::Read {
        wire.read_exact(data)?;
    }
    Ok(())
}

/// Place of one block in a lease. The slot is free again when the value is dropped.
pub struct Slot {
    lease: Arc<BlockLease>,
    index: u32,
    length: usize,
    /// Block until it is written to the lease.
    unwritten: Mutex<Option<Block>>,
}

impl Slot {
    /// Takes a slot of the lease for a block; `None`: no slot is free. The block is written later.
    pub(super) fn take(lease: &Arc<BlockLease>, block: Block) -> Option<Self> {
        let index = lease.take()?;
        Some(Self {
            lease: Arc::clone(lease),
            index,
            length: block.len(),
            unwritten: Mutex::new(Some(block)),
        })
    }

    /// Bytes of the block.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.length as u64
    }

    /// Returns true if the block is lost, because its lease has ended.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lease.is_over()
    }

    /// Reads the block; `None` if it is lost.
    #[must_use]
    pub fn read(&self, hash: &Hash) -> Option<Block> {
        if self.is_lost() {
            return None;
        }
        let unwritten = lock(&self.unwritten).clone();
        if unwritten.is_some() {
            return unwritten;
        }
        let mut bytes = vec![0; self.length];
        let read = self
            .lease
            .transfer(Command::Read, self.offset(), &mut bytes);
        let block = read.ok().and_then(|()| checked(hash, bytes));
        if block.is_none() {
            self.lease.end(); // memory with other bytes than were written holds no block
        }
        block
    }

    /// Writes the block to the lease, after which this program no longer holds its bytes.
    pub(super) fn write(&self) {
        let block = lock(&self.unwritten).clone();
        if let Some(block) = block {
            let mut bytes = Vec::clone(&block);
            let written = self
                .lease
                .transfer(Command::Write, self.offset(), &mut bytes);
            if written.is_ok() {
                lock(&self.unwritten).take();
            }
        }
    }

    fn offset(&self) -> u64 {
        u64::from(self.index) * BLOCK_BYTES
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        lock(&self.lease.free).push(self.index);
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
