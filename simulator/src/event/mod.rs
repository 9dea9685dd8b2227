//! The event core: a queue of scheduled events, with times in integer nanoseconds.
//!
//! The order is deterministic: events of the same time come in the order in which they were scheduled. The
//! queue knows nothing of hosts, requests or a wall clock, so that every model can use it.

use std::collections::BTreeMap;

/// Nanoseconds in a millisecond.
pub const MS: u64 = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000 * MS;
/// Nanoseconds in an hour.
pub const HOUR: u64 = 3_600 * SECOND;
/// Nanoseconds in a day.
pub const DAY: u64 = 24 * HOUR;

/// Scheduled events, in order of time.
#[derive(Clone, Debug)]
pub struct Queue<E> {
    waiting: BTreeMap<Ticket, E>,
    now_ns: u64,
    put_in: u64,
}

/// Identifies one event of a queue, to cancel it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    at_ns: u64,
    order: u64,
}

impl Ticket {
    /// Time of the event, unless it is cancelled.
    #[must_use]
    pub const fn at_ns(self) -> u64 {
        self.at_ns
    }
}

impl<E> Default for Queue<E> {
    /// An empty queue at time 0.
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            now_ns: 0,
            put_in: 0,
        }
    }
}

impl<E> Queue<E> {
    /// Time of the last event taken; 0 before the first.
    #[must_use]
    pub const fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Number of scheduled events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns true if no events are scheduled.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Schedules `event` for `at_ns`; an event in the past happens now.
    pub fn put(&mut self, at_ns: u64, event: E) -> Ticket {
        let ticket = Ticket {
            at_ns: at_ns.max(self.now_ns),
            order: self.put_in,
        };
        self.put_in += 1;
        self.waiting.insert(ticket, event);
        ticket
    }

    /// Cancels an event; `None` if it has happened or was cancelled before.
    pub fn cancel(&mut self, ticket: Ticket) -> Option<E> {
        self.waiting.remove(&ticket)
    }

    /// Time of the next event; `None` if there is none.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        self.waiting.first_key_value().map(|(t, _)| t.at_ns)
    }

    /// Takes the next event with its time. The queue's present time becomes this time.
    pub fn pop(&mut self) -> Option<(u64, E)> {
        let (ticket, event) = self.waiting.pop_first()?;
        self.now_ns = ticket.at_ns;
        Some((ticket.at_ns, event))
    }

    /// Takes the next event, if it happens at or before `until_ns`.
    pub fn pop_until(&mut self, until_ns: u64) -> Option<(u64, E)> {
        self.next_ns()
            .filter(|at_ns| *at_ns <= until_ns)
            .and_then(|_| self.pop())
    }
}

#[cfg(test)]
mod tests;
