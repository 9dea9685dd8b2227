//! The event core: a queue of scheduled events, with times in integer nanoseconds.
//!
//! The order is deterministic: events of the same time come in the order in which they were scheduled. The
//! queue knows nothing of hosts, requests or a wall clock, so that every model can use it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Nanoseconds in a millisecond.
pub const MS: u64 = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000 * MS;
/// Nanoseconds in an hour.
pub const HOUR: u64 = 3_600 * SECOND;
/// Nanoseconds in a day.
pub const DAY: u64 = 24 * HOUR;

/// Fewest entries of a heap from which cancelled events are removed before their time.
const FEWEST_ENTRIES: usize = 64;

/// Scheduled events, in order of time.
///
/// A heap has the events' times, and an array the events, which never move. A cancelled event leaves the array at once,
/// and the heap when its time comes.
#[derive(Clone, Debug)]
pub struct Queue<E> {
    /// The first ticket is of an event that is scheduled; others may be of cancelled events.
    tickets: BinaryHeap<Reverse<Ticket>>,
    places: Vec<EventPlace<E>>,
    /// Places without a ticket in the heap.
    unused: Vec<u32>,
    /// Number of events that are scheduled.
    count: usize,
    now_ns: u64,
    put_in: u64,
}

/// Place of an event from its scheduling until its ticket leaves the heap.
#[derive(Clone, Debug)]
struct EventPlace<E> {
    order: u64,
    event: Option<E>,
}

/// Identifies one event of a queue, to cancel it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    at_ns: u64,
    order: u64,
    place: u32,
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
            tickets: BinaryHeap::new(),
            places: Vec::new(),
            unused: Vec::new(),
            count: 0,
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
        self.count
    }

    /// Returns true if no events are scheduled.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Schedules `event` for `at_ns`; an event in the past happens now. At most 2³² events are scheduled at a time.
    pub fn put(&mut self, at_ns: u64, event: E) -> Ticket {
        let order = self.put_in;
        let event = EventPlace {
            order,
            event: Some(event),
        };
        let place = match self.unused.pop() {
            Some(place) => {
                self.places[place as usize] = event;
                place
            }
            None => {
                self.places.push(event);
                (self.places.len() - 1) as u32
            }
        };
        let ticket = Ticket {
            at_ns: at_ns.max(self.now_ns),
            order,
            place,
        };
        self.put_in += 1;
        self.count += 1;
        self.tickets.push(Reverse(ticket));
        ticket
    }

    /// Cancels an event; `None` if it has happened or was cancelled before.
    pub fn cancel(&mut self, ticket: Ticket) -> Option<E> {
        let place = self.places.get_mut(ticket.place as usize)?;
        if place.order != ticket.order {
            return None;
        }
        let event = place.event.take()?;
        self.count -= 1;
        self.remove_cancelled();
        Some(event)
    }

    /// Time of the next event; `None` if there is none.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        self.tickets.peek().map(|Reverse(ticket)| ticket.at_ns)
    }

    /// The next event, then the two events of which one follows it. Cancelled ones are left out.
    pub fn peek_several(&self) -> impl Iterator<Item = &E> {
        let first = self.tickets.as_slice().iter().take(3);
        first.filter_map(|Reverse(ticket)| self.places[ticket.place as usize].event.as_ref())
    }

    /// Takes the next event with its time. The queue's present time becomes this time.
    pub fn pop(&mut self) -> Option<(u64, E)> {
        let Reverse(ticket) = self.tickets.pop()?;
        let event = self.places[ticket.place as usize].event.take()?;
        self.unused.push(ticket.place);
        self.count -= 1;
        self.remove_cancelled();
        self.now_ns = ticket.at_ns;
        Some((ticket.at_ns, event))
    }

    /// Takes the next event, if it happens at or before `until_ns`.
    pub fn pop_until(&mut self, until_ns: u64) -> Option<(u64, E)> {
        self.next_ns()
            .filter(|at_ns| *at_ns <= until_ns)
            .and_then(|_| self.pop())
    }

    /// Removes the tickets of cancelled events from the front, and all of them if they are the most.
    fn remove_cancelled(&mut self) {
        let Self {
            tickets,
            places,
            unused,
            ..
        } = self;
        let mut is_scheduled = |ticket: &Ticket| {
            let is_scheduled = places[ticket.place as usize].event.is_some();
            if !is_scheduled {
                unused.push(ticket.place);
            }
            is_scheduled
        };
        if tickets.len() >= FEWEST_ENTRIES && tickets.len() / 2 > self.count {
            tickets.retain(|Reverse(ticket)| is_scheduled(ticket));
        }
        while tickets
            .peek()
            .is_some_and(|Reverse(ticket)| !is_scheduled(ticket))
        {
            tickets.pop();
        }
    }
}

#[cfg(test)]
mod tests;
