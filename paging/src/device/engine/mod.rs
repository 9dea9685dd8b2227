//! The device's state machine, without sockets, files or clock. Requests, answers and losses are its input,
//! and [`Action`]s are its output.
//!
//! The caller performs the actions and reports their results. That way a test can try every order of events,
//! and one thread serves all connections without waiting for any.

mod complete;
mod fetch;
mod jobs;
mod lose;
mod store;
mod sweep;

use crate::device::purpose::Purpose;
pub use jobs::Answer;

use super::frames::{Frames, PageBytes};
use super::seal::{Seal, TagBytes};
use super::servers::{LeaseState, ServerCounters, Servers};
use super::table::{COPIES, Place, Table};
use gleaner_policy::choice::Choice;
use gleaner_policy::eviction::{Order, Policy};
use gleaner_policy::shutdown::Revocation;
use jobs::Jobs;
use slab::Slab;
use std::collections::VecDeque;
use std::sync::Arc;

/// Settings of the device.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Size of the device, in pages.
    pub pages: u32,
    /// Number of copies of a page, at servers on different hosts: 1 or 2.
    pub copies: usize,
    /// True for a further copy on disk.
    pub has_disk: bool,
    /// Maximum number of pages being written at one time.
    pub frames: u32,
    /// Order in which pages leave servers that have no room for another.
    pub eviction: Policy,
    /// Treatment of the pages at a host that reclaims its memory.
    pub on_revocation: Revocation,
    /// Choice of the server for a new page.
    pub choice: Choice,
    /// Limit of requests in progress to each server, 1 to 1024; 0: adapted to the server's speed.
    pub window_requests: u32,
    /// Timeout of an answer, after which the server is disconnected.
    pub answer_timeout_ms: i64,
    /// Timeout of a read that only an unreachable server could answer.
    pub request_timeout_ms: i64,
}

/// Reason for closing the connection to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distrust {
    /// A request was not answered in time.
    Silent,
    /// An answer matches no request of this connection.
    Unasked,
}

/// Next step for the caller.
#[derive(Debug)]
pub enum Action {
    /// Ask a server for a page: answered by [`Device::server_read`] or [`Device::server_failed`].
    Read {
        /// Number of the server.
        server: u8,
        /// Number of the slot in the lease.
        slot: u32,
        /// Identifies the request in its answer.
        op: u64,
    },
    /// Send a page to a server: answered by [`Device::server_wrote`] or [`Device::server_failed`].
    Write {
        /// Number of the server.
        server: u8,
        /// Number of the slot in the lease.
        slot: u32,
        /// Identifies the request in its answer.
        op: u64,
        /// Bytes of the page.
        bytes: Arc<PageBytes>,
    },
    /// Read a page from disk into `bytes`: answered by [`Device::disk_read`].
    DiskRead {
        /// Number of the page on disk.
        page: u32,
        /// Identifies the request in its answer.
        op: u64,
        /// Buffer for the bytes.
        bytes: Arc<PageBytes>,
    },
    /// Write a page to disk: answered by [`Device::disk_wrote`].
    DiskWrite {
        /// Number of the page on disk.
        page: u32,
        /// Identifies the request in its answer.
        op: u64,
        /// Bytes of the page.
        bytes: Arc<PageBytes>,
    },
    /// Answer a client.
    Answer(Answer),
    /// Close the connection to this server.
    Disconnect(u8, Distrust),
    /// End the lease: its server stores no page any more.
    Release(u8),
    /// Log this line.
    Note(String),
}

/// Request in progress, to a server or to the disk.
#[derive(Clone, Copy, Debug)]
enum Op {
    Read {
        purpose: Purpose,
        page: u32,
        version: u64,
        tag: TagBytes,
        /// Places tried without success: one bit for each copy, and one for the disk.
        tried: u8,
        /// Place to read from; `None`: the disk.
        from: Option<Place>,
    },
    Write {
        frame: u32,
        /// Number of the copy; `None`: the copy on disk.
        copy: Option<usize>,
        place: Place,
    },
}

/// A request with its target and its time.
#[derive(Clone, Copy, Debug)]
struct TimedRequest {
    op: Op,
    /// Number of the server; `None`: the disk.
    server: Option<u8>,
    /// Distinguishes this request from earlier ones of the same key.
    generation: u32,
    /// Time of sending; `None`: the request waits, and no byte of it was sent.
    sent_us: Option<i64>,
}

/// Counters of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct DeviceCounters {
    /// Reads of a page or a part of it.
    pub reads_count: u64,
    /// Writes of a page or a part of it.
    pub writes_count: u64,
    /// Reads answered by a server.
    pub server_reads_count: u64,
    /// Reads answered by the disk.
    pub disk_reads_count: u64,
    /// Reads answered from frames being written.
    pub buffer_reads_count: u64,
    /// Reads of empty pages.
    pub zero_reads_count: u64,
    /// Pages dropped from servers to make room for others.
    pub evicted_pages_count: u64,
    /// Pages that were copied or moved.
    pub moved_pages_count: u64,
    /// Pages that came back altered.
    pub corrupt_pages_count: u64,
    /// Requests tried again at another place.
    pub retried_requests_count: u64,
    /// Requests answered with an error.
    pub failed_requests_count: u64,
    /// Pages whose contents are lost.
    pub lost_pages_count: u64,
    /// Writes to disk that failed.
    pub failed_disk_writes_count: u64,
    /// Connections to servers that ended.
    pub disconnects_count: u64,
    /// Changes to a server with better answer times, with the choice `stick`.
    pub server_changes_count: u64,
}

/// State of one lease.
#[derive(Clone, Debug)]
pub struct ServerState {
    /// Number of the server in the device.
    pub number: u8,
    /// Address or name of the host.
    pub host: String,
    /// State of the connection and the lease.
    pub state: LeaseState,
    /// Number of pages that fit.
    pub slots: u32,
    /// Number of pages in use.
    pub used: u32,
    /// Number of free slots; slots abandoned with an unanswered request are neither free nor in use.
    pub free: u32,
    /// Present limit of requests in progress, adapted to the server's speed unless it is fixed.
    pub window_requests: u32,
    /// Counters since the lease was added.
    pub counters: ServerCounters,
}

/// A block device whose pages are in the memory of other hosts.
pub struct Device {
    settings: Settings,
    seal: Seal,
    table: Table,
    /// Pages that servers hold, in the order of their eviction.
    order: Order,
    servers: Servers,
    frames: Frames,
    ops: Slab<TimedRequest>,
    /// Generation of the newest request in `ops`.
    generation: u32,
    jobs: Jobs,
    /// Last version assigned.
    version: u64,
    stored_pages: u32,
    now_us: i64,
    sweep: sweep::Sweep,
    /// Reads of pages whose newest contents are not complete yet.
    waiting: VecDeque<Purpose>,
    /// Frames at the head of their page's queue that were not sent yet.
    starting: VecDeque<u32>,
    /// Frames without a place, as long as one may become free.
    parked: Vec<u32>,
    /// Buffers for reads from disk.
    spare: Vec<Arc<PageBytes>>,
    actions: VecDeque<Action>,
    counters: DeviceCounters,
}

impl Device {
    /// Makes an empty device. `key` must be random, and never used before.
    #[must_use]
    pub fn new(settings: Settings, key: &[u8; 32]) -> Option<Self> {
        Some(Self {
            settings: Settings {
                copies: settings.copies.clamp(1, COPIES),
                ..settings
            },
            seal: Seal::new(key)?,
            table: Table::new(settings.pages),
            order: Order::new(settings.eviction, settings.pages),
            servers: Servers::new(settings.choice, settings.window_requests),
            frames: Frames::new(settings.frames),
            ops: Slab::with_capacity(settings.frames as usize * 4),
            generation: 0,
            jobs: Jobs::default(),
            version: 0,
            stored_pages: 0,
            now_us: 0,
            sweep: sweep::Sweep::default(),
            waiting: VecDeque::new(),
            starting: VecDeque::new(),
            parked: Vec::new(),
            spare: Vec::new(),
            actions: VecDeque::new(),
            counters: DeviceCounters::default(),
        })
    }

    /// Size of the device, in pages.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.table.pages()
    }

    /// Number of pages that are not empty.
    #[must_use]
    pub fn stored_pages(&self) -> u32 {
        self.stored_pages
    }

    /// Counters of the device.
    #[must_use]
    pub fn counters(&self) -> DeviceCounters {
        DeviceCounters {
            server_changes_count: self.servers.changes_count(),
            ..self.counters
        }
    }

    /// Settings of the device.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// State of every lease.
    #[must_use]
    pub fn servers(&self) -> Vec<ServerState> {
        let state = |(number, server): (u8, &super::servers::Server)| ServerState {
            number,
            host: server.host.clone(),
            state: server.state,
            slots: server.slots(),
            used: server.used,
            free: server.free_slots(),
            window_requests: server.window.size(),
            counters: server.counters,
        };
        self.servers.iter().map(state).collect()
    }

    /// Next step for the caller, if any.
    pub fn next_action(&mut self) -> Option<Action> {
        while let Some(frame) = self.starting.pop_front() {
            self.start(frame);
        }
        self.actions.pop_front()
    }

    /// Sets the present time, on a clock that never goes back.
    pub fn now(&mut self, us: i64) {
        self.now_us = us;
    }

    fn now_ms(&self) -> i64 {
        self.now_us / 1000
    }

    /// Number of frames that writes may still take; some frames are reserved for reads.
    #[must_use]
    pub fn room(&self) -> usize {
        let kept = self.settings.frames as usize / 8;
        self.frames.free_count().saturating_sub(kept)
    }

    /// Returns true if nothing is in progress.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.ops.is_empty() && self.jobs.is_empty() && self.actions.is_empty()
    }

    fn note(&mut self, words: String) {
        self.actions.push_back(Action::Note(words));
    }

    /// Sends a request to its server, or queues it there.
    fn send(&mut self, server: u8, op: Op) {
        let key = self.insert(op, Some(server), None);
        let Some(at) = self.servers.get_mut(server) else {
            return;
        };
        if at.in_flight >= at.window.size() {
            at.backlog.push_back(key as u64);
        } else {
            at.in_flight += 1;
            self.dispatch(key);
        }
    }

    fn dispatch(&mut self, key: usize) {
        let Some(timed) = self.ops.get_mut(key) else {
            return;
        };
        timed.sent_us = Some(self.now_us);
        let number = complete::number(key, timed.generation);
        let action = match timed.op {
            Op::Read { from, .. } => from.and_then(Place::at).map(|(server, slot)| Action::Read {
                server,
                slot,
                op: number,
            }),
            Op::Write { frame, place, .. } => {
                let bytes = self.frames.get(frame).bytes.clone();
                bytes
                    .zip(place.at())
                    .map(|(bytes, (server, slot))| Action::Write {
                        server,
                        slot,
                        op: number,
                        bytes,
                    })
            }
        };
        self.actions.extend(action);
    }
}
