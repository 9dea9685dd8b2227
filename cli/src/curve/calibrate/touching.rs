//! Touches pages in random order, and times the accesses that wait for a device.

use super::pages::{MappedPages, next_random};
use anyhow::bail;
use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Number of rounds, whose means give the range.
const ROUNDS: u32 = 10;
/// Most faults of a round, so that the times need little memory.
const MOST_FAULTS: usize = 100_000;
/// Seed of the random order.
const SEED: u64 = 88_172_645_463_325_252;

/// Times of one access, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FaultTime {
    /// Duration of the access.
    pub(super) wall_ns: u64,
    /// CPU time of the access.
    pub(super) cpu_ns: u64,
}

/// Mean times of the faults of one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct FaultRound {
    /// Number of all accesses.
    pub(super) accesses: u64,
    /// Number of accesses that waited for a device.
    pub(super) faults: u64,
    /// Mean CPU time of a fault.
    pub(super) software_us: f64,
    /// Mean time of a fault without CPU time.
    pub(super) latency_us: f64,
    /// Median duration of a fault.
    pub(super) p50_us: f64,
    /// Duration that 99 % of the faults do not exceed.
    pub(super) p99_us: f64,
}

impl FaultRound {
    /// Sums up a round; `None` without faults.
    pub(super) fn of(accesses: u64, mut times: Vec<FaultTime>) -> Option<Self> {
        times.sort_by_key(|time| time.wall_ns);
        let faults = times.len();
        let at = |percent: usize| {
            let time = times.get((faults * percent / 100).min(faults.checked_sub(1)?))?;
            Some(time.wall_ns as f64 / 1e3)
        };
        // Reading the clocks takes CPU time that is not the access's.
        let software_ns: u64 = times.iter().map(|time| time.cpu_ns.min(time.wall_ns)).sum();
        let wall_ns: u64 = times.iter().map(|time| time.wall_ns).sum();
        let mean_us = |ns: u64| ns as f64 / 1e3 / faults as f64;
        Some(Self {
            accesses,
            faults: faults as u64,
            software_us: mean_us(software_ns),
            latency_us: mean_us(wall_ns - software_ns),
            p50_us: at(50)?,
            p99_us: at(99)?,
        })
    }
}

/// Touches pages for this time. Rounds without faults are left out.
pub(super) fn rounds(mut pages: MappedPages, time: Duration) -> anyhow::Result<Vec<FaultRound>> {
    let mut state = SEED;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        let (mut accesses, mut times) = (0, Vec::new());
        while begin.elapsed() < time / ROUNDS && times.len() < MOST_FAULTS {
            state = next_random(state);
            let page = (state >> 11) as usize % pages.count();
            let faults_before = call::major_faults()?;
            let (cpu_begin, wall_begin) = (cpu_ns(), Instant::now());
            let word = pages.first_word(page);
            let wall = wall_begin.elapsed();
            let cpu_ns = cpu_ns().saturating_sub(cpu_begin);
            accesses += 1;
            if call::major_faults()? > faults_before {
                let wall_ns = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX);
                times.push(FaultTime { wall_ns, cpu_ns });
            }
            if word != MappedPages::mark(page) {
                bail!("page {page} has other contents than were written: swap or disk is damaged");
            }
            pages.release(page)?;
        }
        rounds.extend(FaultRound::of(accesses, times));
    }
    Ok(rounds)
}

/// CPU time of this thread.
fn cpu_ns() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(tv_sec).unwrap_or(0);
    let ns = u64::try_from(tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(ns)
}

#[allow(unsafe_code)] // rustix has no getrusage
mod call {
    use std::io;

    /// Page faults of this thread that waited for a device.
    pub(super) fn major_faults() -> io::Result<u64> {
        // SAFETY: rusage consists of integers, for which zero is a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a live variable of the type that getrusage fills.
        if unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(u64::try_from(usage.ru_majflt).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_has_the_means_and_percentiles_of_its_faults() {
        let time = |wall_ns, cpu_ns| FaultTime { wall_ns, cpu_ns };
        assert_eq!(FaultRound::of(5, vec![]), None);
        // The third fault's CPU time has the clocks' in it, and counts as its duration.
        let times = vec![time(10_000, 2_000), time(40_000, 4_000), time(3_000, 3_500)];
        let expected = FaultRound {
            accesses: 5,
            faults: 3,
            software_us: 3.0,
            latency_us: 44.0 / 3.0,
            p50_us: 10.0,
            p99_us: 40.0,
        };
        assert_eq!(FaultRound::of(5, times), Some(expected));
    }

    #[test]
    fn memory_without_a_limit_does_not_fault() {
        let pages = MappedPages::anonymous(1 << 20).unwrap();
        let rounds = rounds(pages, Duration::from_millis(20)).unwrap();
        let faults: u64 = rounds.iter().map(|round| round.faults).sum();
        assert_eq!(faults, 0, "{rounds:?}");
        assert!(cpu_ns() > 0);
    }
}
