//! Waiting for the next sample, or for a signal.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use rustix::time::{timerfd_create, timerfd_settime};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Wakes at each interval of CLOCK_BOOTTIME, so that nothing drifts and a host that wakes from sleep
/// is sampled at once, and at a signal.
pub(crate) struct Ticker {
    timer: OwnedFd,
    signals: UnixStream,
}

impl Ticker {
    pub(crate) fn new(interval: Duration) -> std::io::Result<Self> {
        let (signals, sender) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM] {
            signal_hook::low_level::pipe::register(signal, sender.try_clone()?)?;
        }
        let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC)?;
        let length = Timespec::try_from(interval).map_err(std::io::Error::other)?;
        let spec = Itimerspec {
            it_interval: length,
            it_value: length,
        };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &spec)?;
        Ok(Self { timer, signals })
    }

    /// Waits for the next interval; false when a signal came.
    pub(crate) fn wait(&mut self) -> std::io::Result<bool> {
        let mut sources = [
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&self.timer, PollFlags::IN),
        ];
        loop {
            match poll(&mut sources, None) {
                Ok(_) if !sources[0].revents().is_empty() => return Ok(false),
                Ok(_) => {
                    let mut expirations = [0u8; 8];
                    rustix::io::read(&self.timer, &mut expirations)?; // several at once after a sleep
                    return Ok(true);
                }
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}
