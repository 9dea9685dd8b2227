//! Leased memory: one entry per lease, with slots of one page each.

use super::table::Place;
use gleaner_policy::choice::{Choice, Chooser, PageServer};
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
/// halves when answers take several times as long, since requests then wait in a queue somewhere, and when one
/// answer takes as long as TCP waits for a lost segment: a queue in the network is full. A fixed limit does
/// neither.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    size: u32,
    is_fixed: bool,
    fastest_us: u64,
    answered: u32,
    slow: u32,
    is_lossy: bool,
}

impl Window {
    const LEAST: u32 = 8;
    const MOST: u32 = 1024;
    /// Shortest wait for a lost segment, Linux's TCP_RTO_MIN.
    const LOST_US: u64 = 200_000;

    /// Window of this size, which never changes; 0: an adaptive window, at its first size.
    pub(super) fn new(fixed_size: u32) -> Self {
        Self {
            size: match fixed_size {
                0 => Self::LEAST, // a larger one would fill queues before the fastest answer is known
                size => size,
            },
            is_fixed: fixed_size > 0,
            fastest_us: u64::MAX / 16,
            answered: 0,
            slow: 0,
            is_lossy: false,
        }
    }

    pub(super) fn size(&self) -> u32 {
        self.size
    }

    /// Counts an answer that took `took_us`.
    pub(super) fn answered(&mut self, took_us: u64) {
        if self.is_fixed {
            return;
        }
        self.fastest_us = self.fastest_us.min(took_us.max(1));
        self.answered += 1;
        // A request waits for those before it, so answers take longer in a large window even without a fault.
        let expected_us = self.fastest_us * 8 + u64::from(self.size) * 20;
        self.slow += u32::from(took_us > expected_us);
        let is_lost = took_us >= Self::LOST_US.max(self.fastest_us * 8);
        self.is_lossy |= is_lost;
        if self.answered < self.size {
            return;
        }
        self.size = if self.is_lossy || self.slow * 2 > self.answered {
            (self.size / 2).max(Self::LEAST)
        } else {
            (self.size + self.size / 4 + 1).min(Self::MOST)
        };
        (self.answered, self.slow, self.is_lossy) = (0, 0, false);
    }
}

/// All leases by server number; a number is reused once nothing refers to it.
#[derive(Debug, Default)]
pub(super) struct Servers {
    all: Vec<Option<Server>>,
    chooser: Chooser,
    /// Fixed size of every server's window; 0: adaptive.
    fixed_window: u32,
}

impl Servers {
    /// No leases yet; new pages are placed by `choice`, and windows have this size (0: adaptive).
    pub(super) fn new(choice: Choice, fixed_window: u32) -> Self {
        Self {
            all: Vec::new(),
            chooser: Chooser::new(choice),
            fixed_window,
        }
    }

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
            window: Window::new(self.fixed_window),
            heard_us: 0,
            answered_sent_us: 0,
            is_leaving: false,
            up_since_us: 0,
            down_since_ms: now_ms,
            stranded: Vec::new(),
        };
        let vacant = self.all.iter().position(Option::is_none);
        let number = vacant.unwrap_or(self.all.len());
        if number >= Place::SERVERS {
            return None;
        }
        match vacant {
            Some(number) => self.all[number] = Some(server),
            None => self.all.push(Some(server)),
        }
        u8::try_from(number).ok()
    }

    pub(super) fn get(&self, number: u8) -> Option<&Server> {
        self.all.get(usize::from(number))?.as_ref()
    }

    pub(super) fn get_mut(&mut self, number: u8) -> Option<&mut Server> {
        self.all.get_mut(usize::from(number))?.as_mut()
    }

    pub(super) fn remove(&mut self, number: u8) {
        if let Some(there) = self.all.get_mut(usize::from(number)) {
            *there = None;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u8, &Server)> {
        self.all
            .iter()
            .enumerate()
            .filter_map(move |(number, server)| Some((number as u8, server.as_ref()?)))
    }

    pub(super) fn state(&self, place: Place) -> LeaseState {
        let server = place.at().and_then(|(number, _)| self.get(number));
        server.map_or(LeaseState::Gone, |server| server.state)
    }

    /// Counts an answer, and gives the server's window its new size.
    pub(super) fn answered(&mut self, number: u8, took_us: u64, is_error: bool, now_us: i64) {
        if !is_error {
            self.chooser.answered(number.into(), took_us, now_us);
        }
        if let Some(server) = self.get_mut(number) {
            server.window.answered(took_us);
        }
    }

    /// Restarts the window of a server that is not connected any more, and discards its answer times.
    pub(super) fn disconnected(&mut self, number: u8) {
        self.chooser.forget(number.into());
        let window = Window::new(self.fixed_window);
        if let Some(server) = self.get_mut(number) {
            server.window = window;
        }
    }

    /// Number of changes of the preferred server: see [`Chooser::changes_count`].
    pub(super) fn changes_count(&self) -> u64 {
        self.chooser.changes_count()
    }

    /// Returns true if a host other than those of `not_at` has a free slot.
    pub(super) fn has_free(&self, not_at: &[Place]) -> bool {
        page_servers(&self.all, not_at).any(|server| server.free_pages > 0 && !server.has_copy)
    }

    /// Takes a free slot on none of the hosts of `not_at`, at the server that the configured choice prefers.
    pub(super) fn take(&mut self, not_at: &[Place], now_us: i64) -> Option<Place> {
        let servers = page_servers(&self.all, not_at);
        let number = u8::try_from(self.chooser.choose(servers, now_us)?).ok()?;
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
        for server in self.all.iter_mut().flatten() {
            if server.state == LeaseState::Up && server.up_since_us + LATE_US <= now_us {
                server.free.append(&mut server.abandoned);
            }
        }
    }
}

/// Servers as the choice sees them; those that are not connected have no free pages.
fn page_servers<'a>(
    all: &'a [Option<Server>],
    not_at: &'a [Place],
) -> impl Iterator<Item = PageServer> + Clone + 'a {
    let host = move |place: &Place| {
        let (number, _) = place.at()?;
        let server = all.get(usize::from(number))?.as_ref()?;
        Some(server.host.as_str())
    };
    all.iter().enumerate().filter_map(move |(number, server)| {
        let server = server.as_ref()?;
        let own_host = Some(server.host.as_str());
        Some(PageServer {
            number,
            free_pages: server.free_slots(),
            is_busy: server.is_busy(),
            has_copy: not_at.iter().any(|place| host(place) == own_host),
        })
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pages_go_where_most_is_free_and_not_where_they_would_wait() {
        let mut servers = Servers::default();
        for slots in [10, 20] {
            let number = servers.add(format!("host{slots}"), slots, 0).unwrap();
            servers.get_mut(number).unwrap().state = LeaseState::Up;
        }
        let server = |servers: &mut Servers| servers.take(&[], 0).and_then(Place::at).unwrap().0;
        assert_eq!(server(&mut servers), 1);
        let slow = servers.get_mut(1).unwrap();
        slow.in_flight = slow.window.size();
        assert_eq!(server(&mut servers), 0);
        // When the other server is full, a page goes to the busy one.
        servers.get_mut(0).unwrap().is_full();
        assert_eq!(server(&mut servers), 1);
    }

    #[test]
    fn a_client_that_sticks_stays_with_a_busy_server_until_it_is_full() {
        let mut servers = Servers::new(Choice::Stick, 2);
        for slots in [2, 3] {
            let number = servers.add(format!("host{slots}"), slots, 0).unwrap();
            servers.get_mut(number).unwrap().state = LeaseState::Up;
        }
        servers.get_mut(1).unwrap().in_flight = 9;
        let mut server = |now_us| servers.take(&[], now_us).and_then(Place::at).unwrap().0;
        let order: Vec<u8> = (0..5).map(&mut server).collect();
        assert_eq!(order, [1, 1, 1, 0, 0]);
        assert_eq!(servers.take(&[], 6), None);
    }

    /// Sizes after rounds of answers; a round has as many answers as the window allows requests.
    fn sizes(window: &mut Window, rounds: u32, took_us: u64) -> Vec<u32> {
        let mut round = |_| {
            for _ in 0..window.size() {
                window.answered(took_us);
            }
            window.size()
        };
        (0..rounds).map(&mut round).collect()
    }

    #[test]
    fn the_window_grows_by_a_quarter_and_halves() {
        let mut window = Window::new(0);
        assert_eq!(window.size(), 8);
        assert_eq!(sizes(&mut window, 3, 100), [11, 14, 18]);
        // 8 times the fastest answer and 20 us for each request of the window are not slow yet.
        assert_eq!(sizes(&mut window, 1, 800 + 18 * 20), [23]);
        assert_eq!(sizes(&mut window, 1, 800 + 23 * 20 + 1), [11]);
        assert_eq!(sizes(&mut window, 2, 100_000), [8, 8]);
        assert_eq!(sizes(&mut window, 30, 100).last(), Some(&1024));
    }

    #[test]
    fn half_of_the_answers_may_be_slow_and_none_as_slow_as_a_lost_segment() {
        for (slow, took_us, size) in [(5, 100_000, 14), (6, 100_000, 8), (1, 200_000, 8)] {
            let mut window = Window::new(0);
            sizes(&mut window, 1, 100);
            for answer in 0..11 {
                window.answered(if answer < slow { took_us } else { 100 });
            }
            assert_eq!(window.size(), size, "{slow} of 11 took {took_us} us");
        }
    }

    proptest! {
        #[test]
        fn windows_stay_in_their_range(
            answers_us in prop::collection::vec(0..10_000_000_u64, 0..3_000),
            fixed in 1..=1024_u32,
        ) {
            let [mut adaptive, mut same] = [Window::new(0), Window::new(fixed)];
            for took_us in answers_us {
                adaptive.answered(took_us);
                same.answered(took_us);
                prop_assert!((8..=1024).contains(&adaptive.size()));
                prop_assert_eq!(same.size(), fixed);
            }
        }
    }
}
