//! Waits for all inputs together.

use super::Core;
use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::io::Errno;

/// Interval between checks of available memory while memory is lent.
pub(super) const LOOK_EVERY_MS: i64 = 1000;

/// Inputs that are ready.
#[derive(Debug, Default)]
pub(super) struct WaitResult {
    pub(super) agent: bool,
    pub(super) end: bool,
    pub(super) pressure: bool,
    pub(super) newcomer: bool,
    pub(super) told: bool,
    /// Connections of the owner with commands to read or replies to send.
    pub(super) owners: Vec<u64>,
}

impl Core {
    /// Waits for the first input, or the next due time.
    pub(super) fn wait(&self, now_ms: i64) -> anyhow::Result<WaitResult> {
        let due_ms = self.due_ms(now_ms).saturating_sub(now_ms).max(0);
        let timeout = Timespec {
            tv_sec: due_ms / 1000,
            tv_nsec: due_ms % 1000 * 1_000_000,
        };
        let wake = self.links.wait_on();
        let mut fds = vec![
            PollFd::new(&self.end, PollFlags::IN),
            PollFd::new(&wake, PollFlags::IN),
            PollFd::new(self.control.listener(), PollFlags::IN),
        ];
        let agent = self.agent.stream().map(|stream| {
            fds.push(PollFd::new(stream, PollFlags::IN));
            fds.len() - 1
        });
        let pressure = self.pressure.as_ref().map(|pressure| {
            fds.push(PollFd::from_borrowed_fd(pressure.as_fd(), PollFlags::PRI));
            fds.len() - 1
        });
        let first_owner = fds.len();
        let mut owners = Vec::new();
        for (connection, stream, has_waiting) in self.control.streams() {
            let mut flags = PollFlags::IN;
            flags.set(PollFlags::OUT, has_waiting);
            fds.push(PollFd::new(stream, flags));
            owners.push(connection);
        }
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(WaitResult::default()),
            Err(e) => return Err(e).context("wait for events"),
        }
        let has = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        let is_owner = |(at, connection): (usize, u64)| has(first_owner + at).then_some(connection);
        Ok(WaitResult {
            end: has(0),
            told: has(1),
            newcomer: has(2),
            agent: agent.is_some_and(has),
            pressure: pressure.is_some_and(has),
            owners: owners
                .into_iter()
                .enumerate()
                .filter_map(is_owner)
                .collect(),
        })
    }

    /// Returns the time at which work is due even without any input.
    fn due_ms(&self, now_ms: i64) -> i64 {
        let look_ms = self
            .lent
            .since_time_ms
            .map(|_| self.looked_ms.saturating_add(LOOK_EVERY_MS));
        let all = [
            Some(self.agent.due_ms()),
            Some(self.announced_ms.saturating_add(self.announce_every_ms)),
            self.lender.next_tick_ms(),
            self.alive_due_ms(),
            look_ms,
        ];
        all.into_iter().flatten().min().unwrap_or(now_ms)
    }
}
