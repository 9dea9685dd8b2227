//! Keeps a group at its limit while its program runs.

use super::decision::{Limiter, Order, STEP_BYTES};
use super::failure::LimitError;
use super::group::{Group, Version};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Time between looks at a group that has its limit.
const EVERY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};
/// Time between looks while the limit is raised, or if the kernel does not report shortages.
const SOON: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 10_000_000,
};

/// Figures of keeping the limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LimitRecord {
    /// Time in which programs waited for memory at the limit; control groups of version 1.
    pub(super) shortage: Duration,
    /// Number of steps by which the limit was raised; control groups of version 1.
    pub(super) raises: u64,
    /// Largest number of bytes in swap at any look.
    pub(super) peak_swap_bytes: Option<u64>,
    /// True if memory and swap were full, so that the kernel could end the program.
    pub(super) is_full: bool,
}

/// Keeps the limit until the program has ended. `program` is its pidfd.
pub(super) fn keep(
    group: &Group,
    program: &OwnedFd,
    local_bytes: u64,
) -> Result<LimitRecord, LimitError> {
    let shortages = shortages(group);
    let mut limiter = Limiter::new(local_bytes);
    let mut kept = LimitRecord::default();
    let mut short_since: Option<Instant> = None;
    while !has_ended(program, shortages.as_ref(), limiter.is_raised())? {
        kept.peak_swap_bytes = kept.peak_swap_bytes.max(group.swap_bytes());
        let look = group.look(local_bytes)?;
        let order = match group.version() {
            Version::Limit => {
                short_since = match (look.is_short, short_since) {
                    (true, since) => since.or_else(|| Some(Instant::now())),
                    (false, since) => {
                        kept.shortage += since.map_or(Duration::ZERO, |since| since.elapsed());
                        None
                    }
                };
                limiter.next(look)
            }
            // The kernel keeps this limit by itself, and ends no program there, even if it can free no memory.
            Version::High => {
                let is_full = look.is_short && look.free_swap_bytes < STEP_BYTES;
                (is_full && !kept.is_full).then_some(Order::AllowKills)
            }
        };
        match order {
            Some(Order::Raise { limit_bytes }) => {
                group.set_limit(limit_bytes)?;
                lower(group, &mut limiter);
            }
            Some(Order::Lower { .. }) => lower(group, &mut limiter),
            Some(Order::AllowKills) => {
                group.allow_kills(local_bytes)?;
                kept.is_full = true;
            }
            None => {}
        }
    }
    kept.shortage += short_since.map_or(Duration::ZERO, |since| since.elapsed());
    kept.raises = limiter.raises();
    Ok(kept)
}

/// Lowers a raised limit. If the kernel cannot free enough memory, the next look tries again.
fn lower(group: &Group, limiter: &mut Limiter) {
    if let Some(Order::Lower { limit_bytes }) = limiter.lower()
        && group.set_limit(limit_bytes).is_ok()
    {
        limiter.lowered();
    }
}

/// Waits for a shortage, the program's end or the next look; returns true if the program has ended.
fn has_ended(
    program: &OwnedFd,
    shortages: Option<&File>,
    is_raised: bool,
) -> Result<bool, LimitError> {
    let mut watched = vec![PollFd::new(program, PollFlags::IN)];
    watched.extend(shortages.map(|shortages| PollFd::new(shortages, PollFlags::IN)));
    let timeout = if is_raised || shortages.is_none() {
        SOON
    } else {
        EVERY
    };
    match poll(&mut watched, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(e) => return Err(LimitError::Supervise(e.into())),
    }
    let mut ready = watched
        .iter()
        .map(|fd| fd.revents().contains(PollFlags::IN));
    let has_ended = ready.next().unwrap_or(false);
    let is_short = ready.next().unwrap_or(false);
    if is_short && let Some(mut shortages) = shortages {
        let _ = shortages.read(&mut [0; 8]); // takes the report, so that the next wait waits
    }
    Ok(has_ended)
}

/// Reports of shortages, of control groups of version 1; `None` if the kernel has none.
fn shortages(group: &Group) -> Option<File> {
    let control = File::open(group.path().join("memory.oom_control")).ok()?;
    let reports = File::from(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?);
    let order = format!("{} {}", reports.as_raw_fd(), control.as_raw_fd());
    fs::write(group.path().join("cgroup.event_control"), order).ok()?;
    Some(reports)
}
