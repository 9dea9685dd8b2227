//! Real-time priority of the thread that watches for the owner, so that a busy host does not delay the
//! message of the owner's return.
//!
//! Listeners treat three seconds of silence as the owner's return. A memory server that gives memory back
//! runs at SCHED_RR 1 and takes a whole CPU; at the same priority the watcher runs within one time slice
//! (sched(7): 100 ms). The thread that samples has the normal priority, so that it delays nothing else.

use std::io;

/// Lowest real-time priority.
const PRIORITY: i32 = 1;

/// Runs the calling thread at real-time priority from now on, if the kernel allows it: as root, with
/// CAP_SYS_NICE or by RLIMIT_RTPRIO. Otherwise the normal priority stays.
pub(crate) fn raise() {
    let _ = call::schedule(libc::SCHED_RR, PRIORITY);
}

#[allow(unsafe_code)]
mod call {
    use super::io;

    /// Sets the calling thread's policy; threads and processes that it starts get the normal one.
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
