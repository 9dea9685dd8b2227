//! Leased memory: one entry per lease, with slots of one page each.

use super::table::Place;
use std::collections::VecDeque;

/// Time after a new connection before abandoned slots are used again, so that late bytes of the old
/// connection do not overwrite new contents. When the old connection closes, this host's kernel drops its
/// unsent bytes (`SO_LINGER` of 0). In this time, the server handles the bytes that had already arrived. If
/// bytes arrived even later, the page would not match its tag, and this copy would count as lost.
pub(super) const LATE_US: i64 = 30_000_000;

/// State of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// Not connected at present; the contents may become reachable again.
    Down,
    /// Connected: pages are read and written.
    Up,
    /// Ending soon: pages are read, and moved elsewhere.
    Draining,
    /// Ended: the contents are lost.
    Gone,
}

/// Counters since the lease was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounters {
    /// Pages read from this server.
    pub reads_count: u64,
    /// Pages written to this server.
    pub writes_count: u64,
    /// Requests that this server answered with an error.
    pub failed_requests_count: u64,
    /// Pages that came back altered.
    pub corrupt_pages_count: u64,
    /// Number of times that the connection ended.
    pub disconnects_count: u64,
    /// Sum of the times from requests to their answers.
    pub total_latency_us: u64,
}

/// A lease of the device.
#[derive(Debug)]
pub(super) struct Server {
    /// Id of the host; a page's copies are on different hosts.
    pub(super) host: String,
    pub(super) state: LeaseState,
    slots: u32,
    /// First slot that was never used; all later slots were not used either.
    unused_from: u32,
    free: Vec<u32>,
    /// Slots that must not be used for now: see [`Servers::abandon`].
    abandoned: Vec<u32>,
    pub(super) used: u32,
    pub(super) counters: ServerCounters,
    /// Number of unanswered requests that were sent.
    pub(super) in_flight: u32,
    /// Queued requests, since only [`Self::window`] may be in progress.
    pub(super) backlog: VecDeque<u64>,
    pub(super) window: Window,
    /// Time of the server's last answer.
    pub(super) heard_us: i64,
    /// Time at which the latest answered request was sent.
    pub(super) answered_sent_us: i64,
    /// True if the lease ends soon: then a connected server is [`LeaseState::Draining`].
    pub(super) is_leaving: bool,
    /// Time at which the server was connected, if it is connected now.
    pub(super) up_since_us: i64,
    /// Time at which the server became [`LeaseState::Down`].
    pub(super) down_since_ms: i64,
    /// Reads that wait for this server, since no other server has their pages.
    pub(super) stranded: Vec<super::purpose::Purpose>,
}

impl Server {
    fn take(&mut self) -> Option<u32> {
        if self.state != LeaseState::Up {
            return None;
        }
        let fresh = (self.unused_from < self.slots).then_some(self.unused_from);
        let slot = self.free.pop().or(fresh)?;
        if Some(slot) == fresh {
            self.unused_from += 1;
        }
        self.used += 1;
        Some(slot)
    }

    pub(super) fn free_slots(&self) -> u32 {
        match self.state {
            LeaseState::Up => self.slots - self.unused_from + self.free.len() as u32,
            _ => 0,
        }
    }

    /// Returns true if new requests to this server have to wait.
    fn is_busy(&self) -> bool {
        self.in_flight >= self.window.size()
    }

    /// Marks the server as full, as the server reported: no more pages are stored there.
    pub(super) fn is_full(&mut self) {
        self.slots = self.unused_from;
        self.free.clear();
        self.abandoned.clear();
    }

    pub(super) fn slots(&self) -> u32 {
        self.slots
    }
}

/// Limit of requests in progress. The limit grows while answers are about as fast as the fastest so far. It
/// halves when answers take several times as long, since requests then wait in a queue somewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    size: u32,
    fastest_us: u64,
    answered: u32,
    slow: u32,
}

impl Window {
    const LEAST: u32 = 8;
    const MOST: u32 = 1024;

    pub(super) fn size(&self) -> u32 {
        self.size
    }

    /// Counts an answer that took `took_us`.
    pub(super) fn answered(&mut self, took_us: u64) {
        self.fastest_us = self.fastest_us.min(took_us.max(1));
        self.answered += 1;
        // A request waits for those before it, so answers take longer in a large window even without a fault.
        let expected_us = self.fastest_us * 8 + u64::from(self.size) * 20;
        self.slow += u32::from(took_us > expected_us);
        if self.answered < self.size {
            return;
        }
        self.size = if self.slow * 2 > self.answered {
            (self.size / 2).max(Self::LEAST)
        } else {
            (self.size + self.size / 4 + 1).min(Self::MOST)
        };
        (self.answered, self.slow) = (0, 0);
    }
}

impl Default for Window {
    fn default() -> Self {
        Self {
            size: 64,
            fastest_us: u64::MAX / 16,
            answered: 0,
            slow: 0,
        }
    }
}

/// All leases by server number; a number is reused once nothing refers to it.
#[derive(Debug, Default)]
pub(super) struct Servers(Vec<Option<Server>>);

impl Servers {
    /// Adds a lease of `slots` pages at `host`, not connected yet; `None` if there are too many.
    pub(super) fn add(&mut self, host: String, slots: u32, now_ms: i64) -> Option<u8> {
        let server = Server {
            host,
            state: LeaseState::Down,
            slots: slots.min(Place::SLOTS),
            unused_from: 0,
            free: Vec::new(),
            abandoned: Vec::new(),
            used: 0,
            counters: ServerCounters::default(),
            in_flight: 0,
            backlog: VecDeque::new(),
            window: Window::default(),
            heard_us: 0,
            answered_sent_us: 0,
            is_leaving: false,
            up_since_us: 0,
            down_since_ms: now_ms,
            stranded: Vec::new(),
        };
        let vacant = self.0.iter().position(Option::is_none);
        let number = vacant.unwrap_or(self.0.len());
        if number >= Place::SERVERS {
            return None;
        }
        match vacant {
            Some(number) => self.0[number] = Some(server),
            None => self.0.push(Some(server)),
        }
        u8::try_from(number).ok()
    }

    pub(super) fn get(&self, number: u8) -> Option<&Server> {
        self.0.get(usize::from(number))?.as_ref()
    }

    pub(super) fn get_mut(&mut self, number: u8) -> Option<&mut Server> {
        self.0.get_mut(usize::from(number))?.as_mut()
    }

    pub(super) fn remove(&mut self, number: u8) {
        if let Some(there) = self.0.get_mut(usize::from(number)) {
            *there = None;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u8, &Server)> {
        self.0
            .iter()
            .enumerate()
            .filter_map(move |(number, server)| Some((number as u8, server.as_ref()?)))
    }

    pub(super) fn state(&self, place: Place) -> LeaseState {
        let server = place.at().and_then(|(number, _)| self.get(number));
        server.map_or(LeaseState::Gone, |server| server.state)
    }

    /// Returns the server with the most free slots that is on none of the hosts of `not_at`. Servers that can
    /// be sent a request immediately are preferred.
    fn server_with_most_room(&self, not_at: &[Place]) -> Option<u8> {
        let host = |place: &Place| Some(&*self.get(place.at()?.0)?.host);
        let is_elsewhere = |server: &Server| {
            not_at
                .iter()
                .all(|place| host(place) != Some(&*server.host))
        };
        self.iter()
            .filter(|(_, server)| server.free_slots() > 0 && is_elsewhere(server))
            .max_by_key(|(_, server)| (!server.is_busy(), server.free_slots()))
            .map(|(number, _)| number)
    }

    /// Returns true if a host other than those of `not_at` has a free slot.
    pub(super) fn has_free(&self, not_at: &[Place]) -> bool {
        self.server_with_most_room(not_at).is_some()
    }

    /// Takes a free slot of the server that [`Self::server_with_most_room`] chooses.
    pub(super) fn take(&mut self, not_at: &[Place]) -> Option<Place> {
        let number = self.server_with_most_room(not_at)?;
        let slot = self.get_mut(number)?.take()?;
        Some(Place::new(number, slot))
    }

    /// Frees a slot. No request for the slot may be unanswered: requests of a lost connection
    /// [abandon](Self::abandon) their slots.
    pub(super) fn free(&mut self, place: Place) {
        if let Some((number, slot)) = place.at()
            && let Some(server) = self.get_mut(number)
        {
            server.used = server.used.saturating_sub(1);
            server.free.push(slot);
        }
    }

    /// Excludes a slot from use for now: bytes that were sent earlier may still be written there.
    pub(super) fn abandon(&mut self, place: Place) {
        if let Some((number, slot)) = place.at()
            && let Some(server) = self.get_mut(number)
        {
            server.used = server.used.saturating_sub(1);
            server.abandoned.push(slot);
        }
    }

    /// Frees abandoned slots once the connection has lasted [`LATE_US`].
    pub(super) fn reclaim(&mut self, now_us: i64) {
        for server in self.0.iter_mut().flatten() {
            if server.state == LeaseState::Up && server.up_since_us + LATE_US <= now_us {
                server.free.append(&mut server.abandoned);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn pages_go_where_most_is_free_and_not_where_they_would_wait() {
        let mut servers = Servers::default();
        for slots in [10, 20] {
            let number = servers.add(format!("host{slots}"), slots, 0).unwrap();
            servers.get_mut(number).unwrap().state = LeaseState::Up;
        }
        let server = |servers: &mut Servers| servers.take(&[]).and_then(Place::at).unwrap().0;
        assert_eq!(server(&mut servers), 1);
        let slow = servers.get_mut(1).unwrap();
        slow.in_flight = slow.window.size();
        assert_eq!(server(&mut servers), 0);
        // When the other server is full, a page goes to the busy one.
        servers.get_mut(0).unwrap().is_full();
        assert_eq!(server(&mut servers), 1);
    }
}
