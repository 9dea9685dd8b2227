//! The simulated clients and servers: requests, messages between them, and owners who return.
//!
//! A client computes, and waits for page-ins; page-outs go to servers behind it. A request waits for the
//! server's CPU. A page occupies the links of sender and receiver; other messages only have a latency.

mod copies;
mod requests;
mod shutdowns;

use super::PAGE_BYTES;
use super::error::ServersError;
use super::laws::BrokenLaw;
use super::machine::{Machine, transfer};
use super::outcome::{Outcome, OwnerReturn, PageIns};
use super::pages::{Home, Pages};
use super::scenario::Scenario;
use crate::event::{MS, Queue, SECOND};
use copies::Copies;
use gleaner_policy::choice::{Chooser, PageServer};
use gleaner_policy::shutdown::{Preparation, Shutdown};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeSet, VecDeque};

/// Bytes of a request, as in NBD.
const REQUEST_BYTES: u64 = 28;
/// Bytes of an answer's head, as in NBD.
const ANSWER_BYTES: u64 = 16;
/// Time after an owner's return that counts as the shutdown.
const SHUTDOWN_NS: u64 = 10 * SECOND;

/// Page-in or page-out under way.
#[derive(Clone, Copy, Debug)]
struct Request {
    client: usize,
    page: usize,
    server: usize,
    is_write: bool,
    /// Begin of the operation, which may ask several servers.
    begun_ns: u64,
    /// Time at which this server was asked.
    sent_ns: u64,
}

#[derive(Clone, Copy, Debug)]
enum Scheduled {
    /// A client has computed, and makes its next request.
    Next(usize),
    Asked(Request),
    Served(Request),
    /// The server's disk has read a page for a client.
    ReadForClient(Request),
    /// An answer reaches the client: page, or acknowledgement.
    Answered(Request),
    /// The server does not have the page: the client learns the place.
    Refused(Request),
    /// The client's own disk has read the page.
    ReadFromDisk(Request),
    /// A server looks for an idle moment to send its second copies.
    CopyTurn(usize),
    /// A second copy reaches its server.
    Copied,
    /// A small message without further effect arrives.
    Noticed,
    /// The client learns a page's new place.
    Called(usize),
    /// The client learns that a server is dormant.
    Closed(usize, usize),
    /// A page of a dormant server has reached its new place.
    Moved {
        page: usize,
        from: usize,
        to: Home,
        is_sent: bool,
    },
    /// Memory of one page is the owner's.
    Freed(usize),
    /// Change of a server's room, by its index in the scenario.
    Owner(usize),
}

impl Scheduled {
    /// Bytes that the network carries until this event.
    const fn bytes(&self) -> u64 {
        match self {
            Self::Asked(request) if request.is_write => REQUEST_BYTES + PAGE_BYTES,
            Self::Asked(_) | Self::Noticed | Self::Called(_) | Self::Closed(..) => REQUEST_BYTES,
            Self::Answered(request) if request.is_write => ANSWER_BYTES,
            Self::Answered(_) => ANSWER_BYTES + PAGE_BYTES,
            Self::Refused(_) => ANSWER_BYTES,
            Self::Copied | Self::Moved { is_sent: true, .. } => REQUEST_BYTES + PAGE_BYTES,
            Self::Next(_)
            | Self::Served(_)
            | Self::ReadForClient(_)
            | Self::ReadFromDisk(_)
            | Self::CopyTurn(_)
            | Self::Moved { is_sent: false, .. }
            | Self::Freed(_)
            | Self::Owner(_) => 0,
        }
    }
}

/// State of a server's shutdown.
#[derive(Clone, Debug, Default)]
struct Leaving {
    queue: VecDeque<usize>,
    in_flight: u32,
    /// Index of the owner's return, and pages that are the owner's since then.
    owner: Option<(usize, u64)>,
    /// Time until which pages are being dropped.
    dropping_ns: u64,
}

pub(super) struct Model<'a> {
    scenario: &'a Scenario,
    pages: Pages,
    choosers: Vec<Chooser>,
    /// Stations of the clients, then of the servers.
    machines: Vec<Machine>,
    queue: Queue<Scheduled>,
    dice: ChaCha8Rng,
    leaving: Vec<Leaving>,
    copies: Vec<Copies>,
    sent_bytes: u64,
    received_bytes: u64,
    begun: u64,
    /// Begin and length of every page-in that waited.
    page_ins: Vec<(u64, u64)>,
    outcome: Outcome,
}

impl<'a> Model<'a> {
    /// Clients and servers of a checked scenario. All pages have been stored by the configured choice.
    pub(super) fn new(scenario: &'a Scenario, seed: u64) -> Self {
        let pages = Pages::new(scenario);
        let (clients, servers) = (scenario.clients as usize, scenario.servers as usize);
        let mut model = Self {
            scenario,
            pages,
            choosers: vec![Chooser::new(scenario.choice); clients],
            machines: vec![Machine::default(); clients + servers],
            queue: Queue::default(),
            dice: ChaCha8Rng::seed_from_u64(seed),
            leaving: vec![Leaving::default(); servers],
            copies: vec![Copies::default(); servers],
            sent_bytes: 0,
            received_bytes: 0,
            begun: 0,
            page_ins: Vec::new(),
            outcome: Outcome {
                server_requests: vec![0; servers],
                clients: u64::from(scenario.clients),
                length_ns: u64::from(scenario.length_ms) * MS,
                ..Outcome::default()
            },
        };
        // Pages are stored in the room that the servers have at the begin.
        for change in scenario.owners.iter().filter(|change| change.at_ms == 0) {
            model.pages.set_room(change.server as usize, change.pages);
        }
        model.store_all();
        model
    }

    /// Stores a page of each client in a random order, then the next, without any time. Clients in turn would each
    /// find the same few servers freest.
    fn store_all(&mut self) {
        let mut left: Vec<_> = (0..self.scenario.clients as usize)
            .map(|client| self.pages.of_client(client))
            .collect();
        while !left.is_empty() {
            let mut round: Vec<_> = left.iter_mut().filter_map(Iterator::next).collect();
            left.retain(|pages| !pages.is_empty());
            while !round.is_empty() {
                let at = (self.draw() * round.len() as f64) as usize;
                let page = round.swap_remove(at);
                if self.place(page, 0).is_none() {
                    self.pages.leave(page, Home::ClientDisk);
                } else if self.scenario.shutdown.preparation() != Preparation::Nothing {
                    self.occupy_second(page);
                }
                self.pages.learn(page);
            }
        }
        let is_replicated = self.is_replicated();
        let mut sole = vec![0_u64; self.pages.servers()];
        let mut distinct = 0_u64;
        for (_, page) in self.pages.iter() {
            if let Home::Server(server) = page.home {
                distinct += 1;
                let has_copy = page.is_on_disk || is_replicated && page.has_second_copy();
                sole[server] += u64::from(!has_copy);
            }
        }
        let used = (0..self.pages.servers()).map(|server| u64::from(self.pages.used(server)));
        self.outcome.distinct_share = distinct as f64 / used.sum::<u64>().max(1) as f64;
        self.outcome.lost_with_one_pages = sole.into_iter().max().unwrap_or(0);
    }

    /// Runs until the clients stop and all that is under way has arrived; checks the laws.
    pub(super) fn run(mut self) -> Result<Outcome, ServersError> {
        for client in 0..self.scenario.clients as usize {
            let pause_ns = self.pause_ns();
            self.queue.put(pause_ns, Scheduled::Next(client));
        }
        for (at, change) in self.scenario.owners.iter().enumerate() {
            if change.at_ms > 0 {
                self.queue.put(change.at_ms * MS, Scheduled::Owner(at));
            }
        }
        while let Some((now_ns, event)) = self.queue.pop() {
            self.received_bytes += event.bytes();
            self.happen(event, now_ns);
        }
        self.check()?;
        Ok(self.finish())
    }

    fn check(&self) -> Result<(), BrokenLaw> {
        self.pages.check()?;
        if self.sent_bytes != self.received_bytes {
            return Err(BrokenLaw::Bytes {
                sent_bytes: self.sent_bytes,
                received_bytes: self.received_bytes,
            });
        }
        let ended = self.page_ins.len() as u64;
        if self.begun != ended {
            return Err(BrokenLaw::PageIns {
                begun: self.begun,
                ended,
            });
        }
        let may_lose = self.scenario.shutdown == Shutdown::AtOnce && !self.scenario.has_disk_copy;
        match (self.pages.lost, may_lose) {
            (1.., false) => Err(BrokenLaw::Lost {
                pages: self.pages.lost,
            }),
            _ => Ok(()),
        }
    }

    fn finish(mut self) -> Outcome {
        let first_ns = self.outcome.returns.first().map(|owner| owner.at_ns);
        for (begun_ns, took_ns) in self.page_ins {
            let part: &mut PageIns = match first_ns {
                Some(first_ns) if begun_ns >= first_ns + SHUTDOWN_NS => &mut self.outcome.after,
                Some(first_ns) if begun_ns >= first_ns => &mut self.outcome.during,
                _ => &mut self.outcome.before,
            };
            part.times_ns.push(took_ns);
        }
        let mut outcome = self.outcome;
        for part in [&mut outcome.before, &mut outcome.during, &mut outcome.after] {
            part.times_ns.sort_unstable();
        }
        for client in 0..self.choosers.len() {
            let homes =
                self.pages
                    .of_client(client)
                    .filter_map(|page| match self.pages.get(page).home {
                        Home::Server(server) => Some(server),
                        _ => None,
                    });
            outcome.servers_of_clients += homes.collect::<BTreeSet<usize>>().len() as u64;
        }
        let changes = self.choosers.iter().map(Chooser::changes_count);
        outcome.changes = changes.sum();
        outcome.lost_pages = self.pages.lost;
        outcome.network_bytes = self.sent_bytes;
        outcome
    }

    fn happen(&mut self, event: Scheduled, now_ns: u64) {
        match event {
            Scheduled::Next(client) => self.next(client, now_ns),
            Scheduled::Asked(request) => self.asked(request, now_ns),
            Scheduled::Served(request) => self.served(request, now_ns),
            Scheduled::ReadForClient(request) => self.answer(request, now_ns),
            Scheduled::Answered(request) => self.answered(request, now_ns),
            Scheduled::Refused(request) => self.refused(request, now_ns),
            Scheduled::ReadFromDisk(request) => self.read_from_disk(request, now_ns),
            Scheduled::CopyTurn(server) => self.copy_turn(server, now_ns),
            Scheduled::Copied | Scheduled::Noticed => {}
            Scheduled::Called(page) => self.pages.learn(page),
            Scheduled::Closed(client, server) => self.closed(client, server),
            Scheduled::Moved { page, from, to, .. } => self.moved(page, from, to, now_ns),
            Scheduled::Freed(server) => self.freed(server, now_ns),
            Scheduled::Owner(at) => self.change_room(at, now_ns),
        }
    }

    /// Schedules an event, and counts the bytes that lead to it.
    fn send(&mut self, at_ns: u64, event: Scheduled) {
        self.sent_bytes += event.bytes();
        self.queue.put(at_ns, event);
    }

    /// Time at which a page reaches another host; clients have the first numbers.
    fn transfer(&mut self, sender: usize, receiver: usize, now_ns: u64) -> u64 {
        let link_ns = self.scenario.link_ns();
        let end_ns = transfer(&mut self.machines, (sender, receiver), now_ns, link_ns);
        end_ns + self.latency_ns()
    }

    /// Number of a server among all hosts.
    fn host(&self, server: usize) -> usize {
        self.choosers.len() + server
    }

    fn latency_ns(&self) -> u64 {
        u64::from(self.scenario.latency_us) * 1_000
    }

    fn is_replicated(&self) -> bool {
        self.scenario.shutdown.preparation() == Preparation::Replica
    }

    /// Stores a page at the server that its client chooses; `None` if no server has room.
    fn place(&mut self, page: usize, now_ns: u64) -> Option<usize> {
        let client = self.pages.get(page).client;
        let servers = self.pages.servers();
        loop {
            let pages = &self.pages;
            // Every client counts the servers from another one on, so that equal servers are equally
            // attractive.
            let candidates = (0..servers).map(|number| PageServer {
                number,
                free_pages: pages.free_for((number + client) % servers, client),
                is_busy: false,
                has_copy: false,
            });
            let chosen = self.choosers[client].choose(candidates, (now_ns / 1_000) as i64);
            if let Some(number) = chosen {
                let server = (number + client) % servers;
                self.pages.occupy(server);
                self.pages.enter(page, server);
                return Some(server);
            }
            if !self.pages.evict_for(client) {
                return None;
            }
        }
    }

    /// Occupies room for the second copy of a page, or reserves it. Returns its server.
    fn occupy_second(&mut self, page: usize) -> Option<usize> {
        let Home::Server(server) = self.pages.get(page).home else {
            return None;
        };
        let second = self.pages.roomiest_but(server)?;
        self.pages.drop_second(page);
        self.pages.occupy(second);
        self.pages.get_mut(page).second = Some(second);
        Some(second)
    }

    /// Random number of 0 or more, and below 1.
    fn draw(&mut self) -> f64 {
        f64::from(self.dice.next_u32()) / 4_294_967_296.0
    }

    /// Exponential time of computing between two requests.
    fn pause_ns(&mut self) -> u64 {
        let per_s = self.scenario.page_ins_per_s + self.scenario.page_outs_per_s;
        let random = 1.0 - self.draw();
        (-random.ln() / per_s * 1e9) as u64
    }

    /// Counts bytes of a shutdown.
    fn count_shutdown(&mut self, server: usize, bytes: u64, now_ns: u64) {
        if let Some(owner) = self.recent_return(server, now_ns) {
            owner.network_bytes += bytes;
        }
    }

    /// Return of a server's owner in the last 10 s.
    fn recent_return(&mut self, server: usize, now_ns: u64) -> Option<&mut OwnerReturn> {
        let (at, _) = self.leaving[server].owner?;
        let owner = self.outcome.returns.get_mut(at)?;
        (now_ns < owner.at_ns + SHUTDOWN_NS).then_some(owner)
    }
}
