//! Real-time priority while the agent waits, so that a busy host delays no word of the owner's return.
//!
//! Listeners take three seconds of silence for the owner's return. A memory server that gives memory back runs at SCHED_RR 1 and takes a
//! CPU whole; at that same priority the agent gets its turn within a time slice (sched(7): 100 ms). Samples, which take
//! milliseconds, are taken at normal priority.

use std::io;

/// Least of the real-time priorities.
const PRIORITY: i32 = 1;

/// Priority of the agent's one thread.
#[derive(Debug, Default)]
pub(crate) struct Priority {
    /// The kernel allows real time: root, CAP_SYS_NICE or RLIMIT_RTPRIO.
    is_allowed: bool,
}

impl Priority {
    /// Begins to wait at real-time priority, where that is allowed.
    pub(crate) fn raise() -> Self {
        Self {
            is_allowed: call::schedule(libc::SCHED_RR, PRIORITY).is_ok(),
        }
    }

    /// Does `work` at normal priority.
    pub(crate) fn lowered<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.is_allowed {
            let _ = call::schedule(libc::SCHED_OTHER, 0); // lowering is always allowed
        }
        let done = work();
        if self.is_allowed {
            let _ = call::schedule(libc::SCHED_RR, PRIORITY);
        }
        done
    }
}

#[allow(unsafe_code)]
mod call {
    use super::io;

    /// Sets the calling thread's policy; threads and processes that it starts have the normal one.
    pub(super) fn schedule(policy: i32, priority: i32) -> io::Result<()> {
        // SAFETY: the structure is plain numbers.
        let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
        parameters.sched_priority = priority;
        let policy = policy | libc::SCHED_RESET_ON_FORK;
        // SAFETY: 0 is the calling thread; the structure outlives the call.
        match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
