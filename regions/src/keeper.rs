//! The thread that renews leases.

use crate::lock;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Handle of the keeper's thread, which ends when the handle is dropped.
pub(crate) struct Keeper {
    is_ending: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts a thread that calls `round` at intervals of `every` until `round` returns false.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(crate) fn start(
        round: impl Fn() -> bool + Send + 'static,
        every: Duration,
    ) -> io::Result<Self> {
        let is_ending = Arc::new((Mutex::new(false), Condvar::new()));
        let told = Arc::clone(&is_ending);
        let run = move || {
            while !wait_for_end_request(&told, every) && round() {}
        };
        let builder = thread::Builder::new().name("regions".to_owned());
        Ok(Self {
            is_ending,
            thread: Some(builder.spawn(run)?),
        })
    }
}

fn wait_for_end_request((is_ending, changed): &(Mutex<bool>, Condvar), within: Duration) -> bool {
    let waiting = changed.wait_timeout_while(lock(is_ending), within, |is_ending| !*is_ending);
    *waiting.unwrap_or_else(PoisonError::into_inner).0
}

impl Drop for Keeper {
    fn drop(&mut self) {
        *lock(&self.is_ending.0) = true;
        self.is_ending.1.notify_all();
        // The keeper's thread itself may drop the last reference to the regions, in the middle of its round.
        // A thread cannot wait for its own end.
        let thread = self.thread.take();
        if let Some(thread) = thread.filter(|of| of.thread().id() != thread::current().id()) {
            let _ = thread.join();
        }
    }
}
