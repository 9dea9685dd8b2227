//! Forwards signals to the program.
//!
//! The terminal sends its signals to the whole foreground process group, so the program receives them itself, and
//! may ignore them (a shell ignores Ctrl-C). Only signals that another process sent to this process are forwarded.

use super::failure::LimitError;
use rustix::fd::OwnedFd;
use rustix::process::{Signal, pidfd_send_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithRawSiginfo;
use std::fs;

const FORWARDED: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];
const STATUS: &str = "/proc/self/status";

/// Signals received by this process, until they are forwarded.
pub(super) struct Signals(SignalsInfo<WithRawSiginfo>);

impl Signals {
    /// Begins to collect signals; they do not end this process any more.
    pub(super) fn collect() -> Result<Self, LimitError> {
        let ignored = ignored(&fs::read_to_string(STATUS).unwrap_or_default());
        // An ignored signal stays ignored, also in the program: nohup(1) relies on that.
        let wanted = FORWARDED
            .into_iter()
            .filter(|signal| ignored & 1 << (signal - 1) == 0);
        let signals = SignalsInfo::new(wanted).map_err(LimitError::Supervise)?;
        Ok(Self(signals))
    }

    /// Forwards the collected and all later signals to the program, in a thread of its own.
    pub(super) fn forward(mut self, program: OwnedFd) {
        std::thread::spawn(move || {
            for received in self.0.forever() {
                if is_from_process(received.si_code)
                    && let Some(signal) = Signal::from_named_raw(received.si_signo)
                {
                    // The program may have ended.
                    let _ = pidfd_send_signal(&program, signal);
                }
            }
        });
    }
}

/// Returns true if a process sent the signal, not the kernel (sigaction(2), `si_code`).
fn is_from_process(code: i32) -> bool {
    code <= 0
}

/// Bits of the ignored signals, the lowest for signal 1, from /proc/PID/status's text.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_and_those_of_the_kernel_are_recognised() {
        assert_eq!(
            ignored("SigBlk:\t0\nSigIgn:\t0000000000001001\n"),
            1 << 12 | 1
        );
        assert_eq!(ignored(""), 0);
        const SI_KERNEL: i32 = 0x80;
        let (user, queue, thread) = (0, -1, -6);
        assert!([user, queue, thread].into_iter().all(is_from_process));
        assert!(!is_from_process(SI_KERNEL));
    }
}
