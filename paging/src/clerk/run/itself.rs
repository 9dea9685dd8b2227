//! Settings of the clerk's own process. It is locked in memory, since other programs' pages pass through it,
//! and its memory is never written to a core dump.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// Applies the settings; returns messages about those that failed.
pub(super) fn apply_process_settings() -> Vec<String> {
    let mut notes = Vec::new();
    if let Err(e) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        notes.push(format!("a crash may leave a dump, with the key: {e}"));
    }
    if let Err(e) = call::lock() {
        notes.push(format!(
            "not locked in memory: {e}; swap on it is safe only with CAP_IPC_LOCK, or LimitMEMLOCK=infinity"
        ));
    }
    // A failure of this call is reported by `attach --swap`; file systems do not need the call.
    let _ = call::set_io_flusher();
    notes
}

#[allow(unsafe_code)]
mod call {
    use std::io;

    /// Locks all present and future pages in memory, before they are used.
    pub(super) fn lock() -> io::Result<()> {
        // SAFETY: locking changes nothing that is in memory.
        let failed = unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) };
        if failed != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Keeps the kernel from swapping when this process needs memory: the swapping would need this process
    /// (prctl(2), PR_SET_IO_FLUSHER).
    pub(super) fn set_io_flusher() -> io::Result<()> {
        const PR_SET_IO_FLUSHER: libc::c_int = 57; // include/uapi/linux/prctl.h; libc has no name for it
        let (on, none): (libc::c_ulong, libc::c_ulong) = (1, 0);
        // SAFETY: the call takes five numbers, and writes nothing through them.
        let failed = unsafe { libc::prctl(PR_SET_IO_FLUSHER, on, none, none, none) };
        if failed != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}
