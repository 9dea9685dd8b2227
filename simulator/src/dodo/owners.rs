//! What lending cost the owners: each reclaim, and what it left to be paged in again.

use super::outcome::Owners;
use crate::event::DAY;
use crate::hosts::{Return, Timeline};

/// Reclaims as they happen.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    returns: u64,
    reclaims: u64,
    guest_bytes: u64,
    memory_contexts: Vec<u64>,
    upper_bounds: Vec<u64>,
}

impl Tally {
    /// Owner or load is back on a host that was recruited and lent so much.
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

    pub(super) fn outcome(mut self, hosts: &[Timeline], length_ns: u64) -> Owners {
        self.memory_contexts.sort_unstable();
        let contexts = &self.memory_contexts;
        let host_days = hosts.len() as f64 * length_ns as f64 / DAY as f64;
        let mean = |values: &[u64]| {
            let sum: u128 = values.iter().map(|&v| u128::from(v)).sum();
            (!values.is_empty()).then(|| sum as f64 / values.len() as f64)
        };
        // The lower of the two in the middle.
        let quantile = |share: f64| {
            let last = contexts.len().checked_sub(1)?;
            contexts.get((last as f64 * share) as usize).copied()
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
        }
    }
}
