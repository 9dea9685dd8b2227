//! Waits for the next sample, a look at MemAvailable between samples, a signal, a step of the clock, the next
//! sign of life, or the caller's descriptors.

use crate::clock::Moment;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use rustix::time::{timerfd_create, timerfd_settime};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Reason why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeReason {
    /// A sample is due.
    Sample,
    /// A look at MemAvailable is due, or there is news to read, and no sample is due.
    Look,
    /// SIGINT or SIGTERM came.
    Signal,
}

/// All reasons why one wait ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wakeup {
    /// Time at which the wait ended.
    pub(crate) now: Moment,
    /// SIGINT or SIGTERM, by name.
    pub(crate) signal: Option<&'static str>,
    /// Number of samples due: several after a sleep, or if the agent was late.
    pub(crate) samples: u64,
    /// True if a look at MemAvailable is due.
    pub(crate) look: bool,
    /// True if SIGHUP was received and has a handler.
    pub(crate) hangup: bool,
    /// True if a sign of life is due.
    pub(crate) beat: bool,
    /// True if the wall clock was set, or the host woke from sleep, before `now` or just after it.
    pub(crate) clock_set: bool,
    /// Readiness of the caller's descriptors, in their order.
    pub(crate) ready: Vec<bool>,
}

/// Wakes at each interval of CLOCK_BOOTTIME and at signals: nothing drifts, and a host that wakes from sleep
/// is sampled immediately.
pub(crate) struct Ticker {
    samples: OwnedFd,
    looks: OwnedFd,
    beats: OwnedFd,
    clock_set: Option<OwnedFd>,
    signals: [(&'static str, UnixStream); 2],
    /// Readable after a SIGHUP if [`Self::watch_hangups`] was called. Otherwise SIGHUP ends the process, as
    /// usual in a terminal.
    hangups: UnixStream,
    on_hangup: UnixStream,
}

impl Ticker {
    /// Makes a ticker. A `look_interval` of zero means no looks: the kernel's timer stays unarmed
    /// (timerfd_create(2)).
    pub(crate) fn new(interval: Duration, look_interval: Duration) -> std::io::Result<Self> {
        let (hangups, on_hangup) = UnixStream::pair()?;
        hangups.set_nonblocking(true)?;
        Ok(Self {
            samples: timer(TimerfdClockId::Boottime, interval)?,
            looks: timer(TimerfdClockId::Boottime, look_interval)?,
            beats: timer(TimerfdClockId::Boottime, Duration::ZERO)?,
            clock_set: clock_set_timer(),
            signals: [
                ("SIGTERM", signal_pipe(SIGTERM)?),
                ("SIGINT", signal_pipe(SIGINT)?),
            ],
            hangups,
            on_hangup,
        })
    }

    /// Replaces the intervals from now on.
    pub(crate) fn set(&self, interval: Duration, look_interval: Duration) -> std::io::Result<()> {
        set_timer(&self.samples, interval)?;
        set_timer(&self.looks, look_interval)
    }

    /// Sets the interval of signs of life.
    pub(crate) fn set_sign_of_life_interval(&self, interval: Duration) -> std::io::Result<()> {
        set_timer(&self.beats, interval)
    }

    /// Reports SIGHUP as a wakeup, so that it does not end the process.
    pub(crate) fn watch_hangups(&self) -> std::io::Result<()> {
        let sender = self.on_hangup.try_clone()?;
        signal_hook::low_level::pipe::register(SIGHUP, sender).map(drop)
    }

    /// Waits for the next task. A signal has precedence over a sample, and a sample over a look. A look is
    /// also due when `news` becomes readable; the caller reads it.
    pub(crate) fn wait_or(&mut self, news: Option<BorrowedFd<'_>>) -> std::io::Result<WakeReason> {
        let news: Vec<_> = news.into_iter().map(|fd| (fd, PollFlags::IN)).collect();
        loop {
            let due = self.wait_with(&news)?;
            if due.signal.is_some() {
                return Ok(WakeReason::Signal);
            } else if due.samples > 0 {
                return Ok(WakeReason::Sample);
            } else if due.look || due.ready.contains(&true) {
                return Ok(WakeReason::Look);
            }
        }
    }

    /// Waits for any event, including those of `others`.
    pub(crate) fn wait_with(
        &mut self,
        others: &[(BorrowedFd<'_>, PollFlags)],
    ) -> std::io::Result<Wakeup> {
        let [(_, terminate), (_, interrupt)] = &self.signals;
        let mut sources = vec![
            PollFd::new(&self.samples, PollFlags::IN),
            PollFd::new(&self.looks, PollFlags::IN),
            PollFd::new(terminate, PollFlags::IN),
            PollFd::new(interrupt, PollFlags::IN),
            PollFd::new(&self.hangups, PollFlags::IN),
            PollFd::new(&self.beats, PollFlags::IN),
        ];
        let own = sources.len();
        for &(fd, events) in others {
            sources.push(PollFd::from_borrowed_fd(fd, events));
        }
        if let Some(timer) = &self.clock_set {
            sources.push(PollFd::new(timer, PollFlags::IN));
        }
        while let Err(e) = poll(&mut sources, None) {
            if e != Errno::INTR {
                return Err(e.into());
            }
        }
        let has_come: Vec<bool> = sources.iter().map(|s| !s.revents().is_empty()).collect();
        let signal = self.signals.iter().zip(&has_come[2..4]);
        Ok(Wakeup {
            now: Moment::now(),
            signal: signal
                .filter(|(_, has_come)| **has_come)
                .map(|((name, _), _)| *name)
                .next(),
            samples: if has_come[0] {
                expirations(&self.samples)?
            } else {
                0
            },
            look: has_come[1] && expirations(&self.looks)? > 0,
            hangup: has_come[4] && (&self.hangups).read(&mut [0; 64]).is_ok(),
            beat: has_come[5] && expirations(&self.beats)? > 0,
            clock_set: self.clock_was_set(),
            ready: has_come[own..own + others.len()].to_vec(),
        })
    }

    /// Returns true if the wall clock was set. Asks the kernel after `now` was read, even if poll reported
    /// nothing: a step that `now` includes is then reported together with `now`.
    fn clock_was_set(&mut self) -> bool {
        let Some(timer) = &self.clock_set else {
            return false;
        };
        let was_set = rustix::io::read(timer, &mut [0u8; 8]) == Err(Errno::CANCELED);
        if was_set {
            self.clock_set = clock_set_timer();
        }
        was_set
    }
}

/// Number of expirations of a timer since the last call.
fn expirations(timer: &OwnedFd) -> std::io::Result<u64> {
    let mut count = [0u8; 8];
    match rustix::io::read(timer, &mut count) {
        Ok(_) => Ok(u64::from_ne_bytes(count)),
        Err(Errno::AGAIN) => Ok(0),
        Err(e) => Err(e.into()),
    }
}

/// Makes a timer that fires at each `interval`; an interval of zero leaves it unarmed.
pub(crate) fn timer(clock: TimerfdClockId, interval: Duration) -> std::io::Result<OwnedFd> {
    let timer = timerfd_create(clock, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
    set_timer(&timer, interval)?;
    Ok(timer)
}

/// Sets a timer to fire at each `interval` from now on; zero disarms it.
pub(crate) fn set_timer(timer: &OwnedFd, interval: Duration) -> std::io::Result<()> {
    let length = Timespec::try_from(interval).map_err(std::io::Error::other)?;
    let spec = Itimerspec {
        it_interval: length,
        it_value: length,
    };
    timerfd_settime(timer, TimerfdTimerFlags::empty(), &spec)?;
    Ok(())
}

/// Timer that never expires. The kernel cancels it when the wall clock is set, and also when the host wakes
/// from sleep (timerfd_create(2)). `None` if the kernel lacks such timers: a step is then noticed at the next
/// wakeup for another reason.
fn clock_set_timer() -> Option<OwnedFd> {
    const NEVER: Timespec = Timespec {
        tv_sec: 1 << 33, // the year 2242, within the kernel's 64 bits of nanoseconds
        tv_nsec: 0,
    };
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    let timer = timerfd_create(TimerfdClockId::Realtime, flags).ok()?;
    let spec = Itimerspec {
        it_interval: Timespec::default(),
        it_value: NEVER,
    };
    let cancelled = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
    timerfd_settime(&timer, cancelled, &spec).ok()?;
    Some(timer)
}

fn signal_pipe(signal: i32) -> std::io::Result<UnixStream> {
    let (receiver, sender) = UnixStream::pair()?;
    signal_hook::low_level::pipe::register(signal, sender)?;
    Ok(receiver)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd;

    const SOON: Duration = Duration::from_millis(1);
    const NEVER: Duration = Duration::from_secs(1 << 20);

    #[test]
    fn wakes_for_what_is_due_and_for_a_sample_before_a_look() {
        let first = |interval, look| Ticker::new(interval, look).unwrap().wait_or(None).unwrap();
        assert_eq!(first(SOON, NEVER), WakeReason::Sample);
        assert_eq!(first(NEVER, SOON), WakeReason::Look);
        let mut both = Ticker::new(SOON, SOON).unwrap();
        let mut looks = [PollFd::new(&both.looks, PollFlags::IN)];
        poll(&mut looks, None).unwrap();
        assert_eq!(both.wait_or(None).unwrap(), WakeReason::Sample);
    }

    #[test]
    fn wakes_for_news() {
        let (news, sender) = UnixStream::pair().unwrap();
        drop(sender);
        let mut ticker = Ticker::new(NEVER, NEVER).unwrap();
        assert_eq!(
            ticker.wait_or(Some(news.as_fd())).unwrap(),
            WakeReason::Look
        );
    }

    #[test]
    fn says_which_of_the_others_has_come_and_how_many_samples_were_missed() {
        let mut ticker = Ticker::new(NEVER, NEVER).unwrap();
        let (silent, _kept) = std::io::pipe().unwrap();
        let (ended, _) = std::io::pipe().unwrap();
        let others = [&silent, &ended].map(|pipe| (pipe.as_fd(), PollFlags::IN));
        let due = ticker.wait_with(&others).unwrap();
        assert_eq!(due.ready, [false, true]);
        assert_eq!((due.samples, due.look, due.signal), (0, false, None));

        let mut ticker = Ticker::new(SOON, Duration::ZERO).unwrap();
        let begun = Moment::now();
        while Moment::now().boottime_ms < begun.boottime_ms + 5 {}
        assert!(ticker.wait_with(&[]).unwrap().samples >= 4);
    }
}
