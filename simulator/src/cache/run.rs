//! State of one cache that replays a stream.

use super::{Capacity, Counts};
use gleaner_policy::eviction::{Eviction, Visitor};

/// A cache that processes batches of requests.
pub(super) trait BatchReplay {
    /// Processes the next requests, given as the numbers of their objects and their bytes. `objects` is the
    /// number of distinct objects so far.
    fn ask(&mut self, numbers: &[u32], bytes: &[u32], objects: u32);

    /// Counts over all requests so far.
    fn counts(&self) -> Counts;
}

/// Number of requests that are looked up in advance.
const AT_ONCE: usize = 64;

/// Makes a [`Run`] with the policy that it visits, and with this capacity.
pub(super) struct RunMaker(pub(super) Capacity);

impl Visitor for RunMaker {
    type Output = Box<dyn BatchReplay>;

    fn visit<E: Eviction + 'static>(self) -> Self::Output {
        Box::new(Run::<E>::of(self.0))
    }
}

/// A cache and its counts.
struct Run<E> {
    order: E,
    /// Share of the capacity that each object takes, by the object's number: 1, or its bytes.
    sizes: Vec<u32>,
    capacity: Capacity,
    held: u64,
    counts: Counts,
}

impl<E: Eviction> Run<E> {
    fn of(capacity: Capacity) -> Self {
        Self {
            order: E::of(0),
            sizes: Vec::new(),
            capacity,
            held: 0,
            counts: Counts::default(),
        }
    }

    /// Handles one request; returns true if the object was not in the cache.
    #[inline]
    fn misses(&mut self, object: u32, size: u32, most: u64) -> bool {
        if self.order.contains(object) {
            self.order.used(object);
            return false;
        }
        let needed = u64::from(size);
        if needed > most {
            return true;
        }
        while self.held + needed > most {
            let Some(victim) = self.order.evict(usize::MAX, |_| true) else {
                return true;
            };
            self.held -= u64::from(self.sizes[victim as usize]);
        }
        self.order.enter(object);
        self.sizes[object as usize] = size;
        self.held += needed;
        true
    }
}

impl<E: Eviction> BatchReplay for Run<E> {
    fn ask(&mut self, numbers: &[u32], bytes: &[u32], objects: u32) {
        if objects as usize > self.sizes.len() {
            // The tables grow in large steps, since each step copies all entries.
            let room = objects.saturating_add(objects / 2);
            self.order.grow(room);
            self.sizes.resize(room as usize, 0);
        }
        let (by_objects, most) = match self.capacity {
            Capacity::Objects(most) => (true, most),
            Capacity::Bytes(most) => (false, most),
        };
        let (mut misses, mut missed_bytes) = (0, 0_u64);
        for (numbers, bytes) in numbers.chunks(AT_ONCE).zip(bytes.chunks(AT_ONCE)) {
            // Looks up all requested objects in advance, so that the memory accesses overlap. These results
            // are discarded, since handling the requests may change them.
            let held = numbers
                .iter()
                .filter(|number| self.order.contains(**number));
            std::hint::black_box(held.count());
            for (&number, &asked_bytes) in numbers.iter().zip(bytes) {
                let size = if by_objects { 1 } else { asked_bytes };
                if self.misses(number, size, most) {
                    misses += 1;
                    missed_bytes += u64::from(asked_bytes);
                }
            }
        }
        let bytes = bytes.iter().copied().map(u64::from).sum();
        let counts = &mut self.counts;
        counts.requests += numbers.len() as u64;
        counts.misses += misses;
        counts.bytes = counts.bytes.saturating_add(bytes);
        counts.missed_bytes = counts.missed_bytes.saturating_add(missed_bytes);
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}
