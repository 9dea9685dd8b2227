//! Fetches that wait or are under way, at most one per block, with the requests that wait for them.

use super::{BlockPlace, BlockReceiver};
use crate::catalog::Hash;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// A request that waits for a block.
pub(super) struct Waiter {
    pub(super) place: BlockPlace,
    pub(super) receiver: Arc<dyn BlockReceiver>,
    /// Index of the request, for the receiver.
    pub(super) index: usize,
    /// Bytes of the block that the reader uses.
    pub(super) used_bytes: u64,
    /// Time at which the request fails.
    pub(super) deadline: Instant,
}

/// All fetches that wait or are under way.
#[derive(Default)]
pub(super) struct Flights {
    flights: HashMap<Hash, Flight>,
    /// Blocks that readers wait for, in the order of the requests. A block may have landed since.
    wanted: VecDeque<Hash>,
    /// Blocks that nobody waited for when they were queued.
    ahead: VecDeque<Hash>,
    /// Number of fetches under way that nobody waited for when they began.
    ahead_under_way: usize,
}

/// A fetch of a block.
struct Flight {
    place: BlockPlace,
    waiters: Vec<Waiter>,
    /// True once a thread fetches the block.
    is_under_way: bool,
    /// True if nobody waited for the block when its fetch began.
    is_ahead: bool,
}

impl Flights {
    /// Adds a request to the fetch of its block; returns true if a thread must now fetch the block for it.
    pub(super) fn join(&mut self, waiter: Waiter) -> bool {
        let hash = waiter.place.hash;
        let flight = self.flights.entry(hash).or_insert_with(|| Flight {
            place: waiter.place,
            waiters: Vec::new(),
            is_under_way: false,
            is_ahead: false,
        });
        let is_new = flight.waiters.is_empty() && !flight.is_under_way;
        flight.waiters.push(waiter);
        if is_new {
            self.wanted.push_back(hash);
        }
        is_new
    }

    /// Queues a fetch that nobody waits for; returns false if the block is being fetched already.
    pub(super) fn launch_ahead(&mut self, place: BlockPlace) -> bool {
        if self.flights.contains_key(&place.hash) {
            return false;
        }
        let flight = Flight {
            place,
            waiters: Vec::new(),
            is_under_way: false,
            is_ahead: false,
        };
        self.flights.insert(place.hash, flight);
        self.ahead.push_back(place.hash);
        true
    }

    /// Number of queued fetches that nobody waited for.
    pub(super) fn ahead_count(&self) -> usize {
        self.ahead.len()
    }

    /// Begins the next fetch: its block, and the latest time at which a reader still waits for it. At most
    /// `most_ahead` fetches that nobody waits for are under way at one time.
    pub(super) fn take_off(&mut self, most_ahead: usize) -> Option<(BlockPlace, Option<Instant>)> {
        loop {
            let hash = match self.wanted.pop_front() {
                Some(hash) => hash,
                None if self.ahead_under_way < most_ahead => self.ahead.pop_front()?,
                None => return None,
            };
            // A block that was queued ahead and then requested is in both queues.
            let waiting = self.flights.get_mut(&hash);
            if let Some(flight) = waiting.filter(|flight| !flight.is_under_way) {
                flight.is_under_way = true;
                flight.is_ahead = flight.waiters.is_empty();
                self.ahead_under_way += usize::from(flight.is_ahead);
                let deadlines = flight.waiters.iter().map(|waiter| waiter.deadline);
                return Some((flight.place, deadlines.max()));
            }
        }
    }

    /// Ends the fetch of a block; returns the requests that wait for it.
    pub(super) fn land(&mut self, hash: &Hash) -> Vec<Waiter> {
        let Some(flight) = self.flights.remove(hash) else {
            return Vec::new();
        };
        self.ahead_under_way -= usize::from(flight.is_ahead);
        flight.waiters
    }

    /// Returns true if a request waits.
    pub(super) fn has_waiters(&self) -> bool {
        self.flights
            .values()
            .any(|flight| !flight.waiters.is_empty())
    }

    /// Removes and returns the requests whose deadline is `now` or earlier. A fetch that is under way goes
    /// on, for later requests; one that is not is dropped.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<Waiter> {
        let mut expired = Vec::new();
        self.flights.retain(|_, flight| {
            let before = expired.len();
            expired.extend(
                flight
                    .waiters
                    .extract_if(.., |waiter| waiter.deadline <= now),
            );
            let is_abandoned = expired.len() > before && flight.waiters.is_empty();
            flight.is_under_way || !is_abandoned
        });
        expired
    }
}
