//! Thread that keeps the leases for blocks.

use crate::global::GlobalMemory;
use crate::hold::LeaseKeeper;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Interval of checks of the leases.
const TURN_EVERY: Duration = Duration::from_millis(200);

/// Thread that works on the leases until it is ended.
pub(super) struct Leasing {
    thread: Mutex<Option<(SyncSender<()>, JoinHandle<()>)>>,
}

impl Leasing {
    pub(super) fn start(mut keeper: LeaseKeeper, memory: Arc<GlobalMemory>) -> io::Result<Self> {
        let (end, ended) = sync_channel(0);
        let work = move || {
            // The sender is dropped at the end.
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(TURN_EVERY) {
                let quota_bytes = memory.quota_bytes();
                if keeper.turn(quota_bytes) {
                    memory.follow_leases();
                }
                memory.set_reachable_frames(keeper.announce(quota_bytes));
            }
        };
        let thread = thread::Builder::new().name("leases".to_owned());
        Ok(Self {
            thread: Mutex::new(Some((end, thread.spawn(work)?))),
        })
    }

    /// Ends the thread, which returns the leases.
    pub(super) fn end(&self) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((end, thread)) = thread.take() {
            drop(end);
            let _ = thread.join(); // a panic was printed by the thread
        }
    }
}
