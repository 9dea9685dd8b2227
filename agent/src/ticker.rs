//! Waiting for the next sample, for a look in between, or for a signal.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use rustix::time::{timerfd_create, timerfd_settime};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Why the waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// A sample is due.
    Sample,
    /// A look at MemAvailable is due, or there is something to read, and no sample is due.
    Look,
    /// SIGINT or SIGTERM came.
    Signal,
}

/// Wakes at each interval of CLOCK_BOOTTIME, so that nothing drifts and a host that wakes from sleep
/// is sampled at once, and at a signal.
pub(crate) struct Ticker {
    samples: OwnedFd,
    looks: OwnedFd,
    signals: UnixStream,
}

impl Ticker {
    /// A `look_interval` of zero means no looks: it leaves the kernel's timer unarmed (timerfd_create(2)).
    pub(crate) fn new(interval: Duration, look_interval: Duration) -> std::io::Result<Self> {
        let (signals, sender) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM] {
            signal_hook::low_level::pipe::register(signal, sender.try_clone()?)?;
        }
        Ok(Self {
            samples: timer(interval)?,
            looks: timer(look_interval)?,
            signals,
        })
    }

    /// Waits for what comes first; of what has come meanwhile a signal goes before a sample, and that
    /// before a look.
    pub(crate) fn wait(&mut self) -> std::io::Result<Wake> {
        self.wait_or(None)
    }

    /// As [`Self::wait`], and a look is due also when `news` can be read, which is the caller's to do.
    pub(crate) fn wait_or(&mut self, news: Option<BorrowedFd<'_>>) -> std::io::Result<Wake> {
        let mut sources = vec![
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&self.samples, PollFlags::IN),
            PollFd::new(&self.looks, PollFlags::IN),
        ];
        sources.extend(news.map(|news| PollFd::from_borrowed_fd(news, PollFlags::IN)));
        while let Err(e) = poll(&mut sources, None) {
            if e != Errno::INTR {
                return Err(e.into());
            }
        }
        let has_come = |source: &PollFd<'_>| !source.revents().is_empty();
        let (timer, wake) = if has_come(&sources[0]) {
            return Ok(Wake::Signal);
        } else if has_come(&sources[1]) {
            (&self.samples, Wake::Sample)
        } else if has_come(&sources[2]) {
            (&self.looks, Wake::Look)
        } else {
            return Ok(Wake::Look);
        };
        let mut expirations = [0u8; 8];
        rustix::io::read(timer, &mut expirations)?; // several at once after a sleep
        Ok(wake)
    }
}

fn timer(interval: Duration) -> std::io::Result<OwnedFd> {
    let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC)?;
    let length = Timespec::try_from(interval).map_err(std::io::Error::other)?;
    let spec = Itimerspec {
        it_interval: length,
        it_value: length,
    };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &spec)?;
    Ok(timer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd;

    #[test]
    fn wakes_for_what_is_due_and_for_a_sample_before_a_look() {
        const SOON: Duration = Duration::from_millis(1);
        const NEVER: Duration = Duration::from_secs(1 << 20);
        let first = |interval, look| Ticker::new(interval, look).unwrap().wait().unwrap();
        assert_eq!(first(SOON, NEVER), Wake::Sample);
        assert_eq!(first(NEVER, SOON), Wake::Look);
        let mut both = Ticker::new(SOON, SOON).unwrap();
        let mut looks = [PollFd::new(&both.looks, PollFlags::IN)];
        poll(&mut looks, None).unwrap();
        assert_eq!(both.wait().unwrap(), Wake::Sample);
    }

    #[test]
    fn wakes_for_news() {
        const NEVER: Duration = Duration::ZERO;
        let (news, sender) = UnixStream::pair().unwrap();
        drop(sender);
        let mut ticker = Ticker::new(NEVER, NEVER).unwrap();
        assert_eq!(ticker.wait_or(Some(news.as_fd())).unwrap(), Wake::Look);
    }
}
