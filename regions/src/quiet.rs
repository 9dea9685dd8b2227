//! Suppresses SIGPIPE. When a server disconnects, one call must fail, but the calling program must not end.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::ptr;

/// Blocks SIGPIPE in this thread while the value lives. Dropping the value discards signals that became
/// pending in the meantime. Threads that were started in the meantime keep SIGPIPE blocked.
pub(crate) struct SignalBlock {
    before: libc::sigset_t,
    pipe: libc::sigset_t,
    was_pending: bool,
}

impl SignalBlock {
    pub(crate) fn new() -> Self {
        let (mut pipe, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: sigemptyset initialises `pipe`, and pthread_sigmask initialises `before`. Neither call
        // fails with these arguments.
        let (pipe, before) = unsafe {
            libc::sigemptyset(pipe.as_mut_ptr());
            libc::sigaddset(pipe.as_mut_ptr(), libc::SIGPIPE);
            libc::pthread_sigmask(libc::SIG_BLOCK, pipe.as_ptr(), before.as_mut_ptr());
            (pipe.assume_init(), before.assume_init())
        };
        Self {
            before,
            pipe,
            was_pending: is_pending(),
        }
    }
}

impl Drop for SignalBlock {
    fn drop(&mut self) {
        let at_once = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // A SIGPIPE that was already pending before stays pending.
        while !self.was_pending && is_pending() {
            // SAFETY: set and time are initialised, and no information is requested.
            let taken = unsafe {
                libc::sigtimedwait(&raw const self.pipe, ptr::null_mut(), &raw const at_once)
            };
            if taken < 0 && errno() != libc::EINTR {
                break;
            }
        }
        // SAFETY: the mask is the one that pthread_sigmask returned.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut());
        }
    }
}

fn is_pending() -> bool {
    let mut pending = MaybeUninit::uninit();
    // SAFETY: sigpending initialises the set, which sigismember reads.
    unsafe {
        libc::sigpending(pending.as_mut_ptr()) == 0
            && libc::sigismember(pending.as_ptr(), libc::SIGPIPE) == 1
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    const AS: &str = "GLEANER_TEST_SIGPIPE";

    /// The test starts itself again in a separate process, in which SIGPIPE is fatal as in C programs.
    #[test]
    fn writing_to_nobody_is_an_error_and_not_the_end() {
        match std::env::var(AS).as_deref() {
            Ok("quiet") => {
                // SAFETY: this is the state when a C program starts.
                unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
                let quiet = SignalBlock::new();
                writes_to_nobody();
                assert!(is_pending());
                drop(quiet);
                assert!(!is_pending());
            }
            Ok(_) => {
                // SAFETY: as above.
                unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
                writes_to_nobody();
            }
            Err(_) => {
                for (how, signal) in [("quiet", None), ("loud", Some(libc::SIGPIPE))] {
                    let name = "quiet::tests::writing_to_nobody_is_an_error_and_not_the_end";
                    let mut again = Command::new(std::env::current_exe().unwrap());
                    let ended = again.args(["--exact", name]).env(AS, how).output().unwrap();
                    assert_eq!(ended.status.signal(), signal, "{how}: {ended:?}");
                    assert_eq!(ended.status.success(), signal.is_none(), "{how}: {ended:?}");
                }
            }
        }
    }

    fn writes_to_nobody() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        drop(reader);
        assert!(writer.write_all(b"x").is_err());
    }
}
