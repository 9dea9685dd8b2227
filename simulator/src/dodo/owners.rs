//! Cost of lending to the owners: each reclaim, with the memory that must be paged in again.

use super::machine::transfer_ns;
use super::outcome::Owners;
use super::scenario::Scenario;
use crate::event::{DAY, SECOND};
use crate::hosts::{Return, Timeline};

/// Times for paging in from an owner's disk, piece by piece. Each piece has a mean seek, half a rotation and
/// its transfer. No piece is assumed to overlap another or to be sequential, so the estimate errs upwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageIn {
    piece_bytes: u64,
    piece_ns: u64,
}

impl PageIn {
    /// Page-in times for the scenario's disks, which the owners are assumed to have as well.
    pub(super) const fn of(scenario: &Scenario) -> Self {
        let disks = &scenario.client.disks;
        let piece_bytes = scenario.recruitment.page_in_bytes;
        let reads_ns = transfer_ns(piece_bytes, disks.media_bytes_per_s);
        let waits_ns = disks.seek_mean_ns.saturating_add(disks.rotation_ns / 2);
        Self {
            piece_bytes,
            piece_ns: waits_ns.saturating_add(reads_ns),
        }
    }

    /// Time to page in `bytes`.
    const fn ns(self, bytes: u64) -> u64 {
        let pieces = match self.piece_bytes {
            0 => 0, // a check has rejected this earlier
            piece_bytes => bytes.div_ceil(piece_bytes),
        };
        pieces.saturating_mul(self.piece_ns)
    }
}

/// Counts of returns and reclaims so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    returns: u64,
    reclaims: u64,
    guest_bytes: u64,
    memory_contexts: Vec<u64>,
    upper_bounds: Vec<u64>,
}

impl Tally {
    /// Counts a return of the owner or of the load to a recruited host with this guest memory.
    pub(super) fn add(&mut self, back: &Return, guest_bytes: u64) {
        self.returns += 1;
        if guest_bytes == 0 {
            return;
        }
        self.reclaims += 1;
        self.guest_bytes += guest_bytes;
        if let Some(wanted) = back.wanted {
            self.memory_contexts
                .push(wanted.memory_context_bytes(guest_bytes));
            self.upper_bounds.push(wanted.upper_bound_bytes);
        }
    }

    pub(super) fn outcome(mut self, hosts: &[Timeline], length_ns: u64, page_in: PageIn) -> Owners {
        self.memory_contexts.sort_unstable();
        let contexts = &self.memory_contexts;
        let host_days = hosts.len() as f64 * length_ns as f64 / DAY as f64;
        let mean = |values: &[u64]| {
            let sum: u128 = values.iter().map(|&v| u128::from(v)).sum();
            (!values.is_empty()).then(|| sum as f64 / values.len() as f64)
        };
        // If a quantile lies between two values, the lower value counts.
        let quantile = |share: f64| {
            let last = contexts.len().checked_sub(1)?;
            contexts.get((last as f64 * share) as usize).copied()
        };
        let delays: Vec<u64> = contexts.iter().map(|bytes| page_in.ns(*bytes)).collect();
        let mean_delay_ns = mean(&delays);
        // If there were reclaims but no known delay, the sum is unknown, not 0.
        let delay_ns = match mean_delay_ns {
            Some(mean_ns) => Some(mean_ns * delays.len() as f64),
            None => (self.reclaims == 0).then_some(0.0),
        };
        Owners {
            hosts: hosts.len() as u64,
            host_days,
            returns: self.returns,
            reclaims: self.reclaims,
            reclaims_per_host_day: self.reclaims as f64 / host_days,
            mean_guest_bytes: (self.reclaims > 0)
                .then(|| self.guest_bytes as f64 / self.reclaims as f64),
            memory_contexts: contexts.len() as u64,
            mean_memory_context_bytes: mean(contexts),
            median_memory_context_bytes: quantile(0.5),
            p99_memory_context_bytes: quantile(0.99),
            max_memory_context_bytes: contexts.last().copied(),
            reclaims_with_memory_context: contexts.iter().filter(|b| **b > 0).count() as u64,
            mean_upper_bound_bytes: mean(&self.upper_bounds),
            mean_owner_delay_ns: mean_delay_ns,
            // A larger memory context takes longer, so the 99th percentile of the size gives that of the
            // delay.
            p99_owner_delay_ns: quantile(0.99).map(|bytes| page_in.ns(bytes)),
            owner_delay_s_per_host_day: delay_ns.map(|ns| ns / SECOND as f64 / host_days),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::{Cause, ReturnMemory};
    use gleaner_policy::memory_context::Demand;

    const KIB: u64 = 1024;

    /// A return to a host at which the owner needs all memory, so that all lent memory must be paged in
    /// again.
    fn back(is_known: bool) -> Return {
        Return {
            at_ns: 0,
            cause: Cause::Owner,
            wanted: is_known.then_some(ReturnMemory {
                demand: Demand {
                    footprint_bytes: 1 << 30,
                    kernel_bytes: 0,
                    reserve_bytes: 0,
                    physical_bytes: 1 << 30,
                    guest_bytes: 0,
                },
                upper_bound_bytes: 1 << 30,
            }),
        }
    }

    fn of(tally: Tally) -> Owners {
        // Two hosts for half a day make one host-day.
        let hosts = [Timeline::always_idle("a", 1), Timeline::always_idle("b", 1)];
        tally.outcome(&hosts, DAY / 2, PageIn::of(&Scenario::default()))
    }

    #[test]
    fn a_context_comes_back_piece_by_piece() {
        // A piece takes a seek of 5.8 ms, half of a 6 ms rotation, and 32 KiB at 18 MB/s (1,820,444 ns).
        let page_in = PageIn::of(&Scenario::default());
        assert_eq!(page_in.piece_ns, 10_620_444);
        let pieces = |bytes| page_in.ns(bytes) / page_in.piece_ns;
        let sizes = [0, 1, 32 * KIB, 32 * KIB + 1, 320 * KIB];
        assert_eq!(sizes.map(pieces), [0, 1, 1, 2, 10]);
        let mut tally = Tally::default();
        // Four returns: one piece, three pieces, one reclaim of unknown size, and one without lent memory.
        for (guest_bytes, is_known) in [(KIB, true), (96 * KIB, true), (96 * KIB, false), (0, true)]
        {
            tally.add(&back(is_known), guest_bytes);
        }
        let owners = of(tally);
        assert_eq!((owners.reclaims, owners.memory_contexts), (3, 2));
        assert_eq!(owners.mean_owner_delay_ns, Some(2.0 * 10_620_444.0));
        // Of two delays the quantile is the lower one, as for the memory contexts.
        assert_eq!(owners.p99_owner_delay_ns, Some(10_620_444));
        let a_day = owners.owner_delay_s_per_host_day.unwrap();
        assert!((a_day - 4.0 * 0.010_620_444).abs() < 1e-12, "{a_day}");
    }

    #[test]
    fn no_reclaim_takes_no_time_and_an_unknown_one_an_unknown_time() {
        let none = of(Tally::default());
        assert_eq!(none.mean_owner_delay_ns, None);
        assert_eq!(none.owner_delay_s_per_host_day, Some(0.0));
        let mut tally = Tally::default();
        tally.add(&back(false), 1);
        let unknown = of(tally);
        assert_eq!(
            (unknown.reclaims, unknown.owner_delay_s_per_host_day),
            (1, None)
        );
    }
}
