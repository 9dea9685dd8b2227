//! Simulated servers, disk and client, and their faults.

use super::super::servers::LATE_US;
use super::super::*;
use crate::nbd::wire::{Fault, SimpleReply};
use gleaner_policy::choice::Choice;
use gleaner_policy::eviction::Policy;
use gleaner_policy::shutdown::Revocation;
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

pub(super) const PAGES: u32 = 12;

#[derive(Clone, Debug)]
pub(super) enum Step {
    Write(u32, u8),
    /// Writes some bytes of a page.
    Patch(u32, usize, usize, u8),
    Read(u32),
    Zero(u32),
    Flush,
    /// Completes one of the operations in progress.
    Deliver(usize),
    Down(usize),
    Up(usize),
    Gone(usize),
    Drain(usize),
    /// A server's pages change by themselves.
    Flip(usize),
    /// A server gives back some slots, one after the other.
    GiveBack(usize, u32),
    Full(usize),
    /// A server stops answering.
    Silent(usize),
    /// Writes the late bytes of a lost connection.
    Late(usize),
    /// A server answers a request that was sent to another server, to the disk or to nobody.
    Forge(usize, usize, Forgery),
    /// A server answers its own request with the wrong kind of answer.
    Mistype(usize),
    /// A server answers one request twice.
    Repeat(usize),
    Wait(i64),
}

/// Kind of a forged answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Forgery {
    Read,
    Wrote,
    Failed,
}

fn forgery() -> impl Strategy<Value = Forgery> {
    prop_oneof![
        Just(Forgery::Read),
        Just(Forgery::Wrote),
        Just(Forgery::Failed)
    ]
}

pub(super) fn step(servers: usize) -> impl Strategy<Value = Step> {
    let page = 0..PAGES;
    let server = 0..servers;
    prop_oneof![
        8 => (page.clone(), any::<u8>()).prop_map(|(p, b)| Step::Write(p, b)),
        3 => (page.clone(), 0..4096usize, 1..300usize, any::<u8>())
            .prop_map(|(p, at, len, b)| Step::Patch(p, at, len, b)),
        8 => page.clone().prop_map(Step::Read),
        2 => page.prop_map(Step::Zero),
        1 => Just(Step::Flush),
        30 => (0..8usize).prop_map(Step::Deliver),
        1 => server.clone().prop_map(Step::Down),
        2 => server.clone().prop_map(Step::Up),
        1 => server.clone().prop_map(Step::Gone),
        1 => server.clone().prop_map(Step::Drain),
        1 => server.clone().prop_map(Step::Flip),
        1 => (server.clone(), 0..8u32).prop_map(|(s, slot)| Step::GiveBack(s, slot)),
        1 => server.clone().prop_map(Step::Full),
        1 => server.clone().prop_map(Step::Silent),
        3 => server.clone().prop_map(Step::Late),
        2 => (server.clone(), 0..16usize, forgery()).prop_map(|(s, nth, kind)| Step::Forge(s, nth, kind)),
        1 => server.clone().prop_map(Step::Mistype),
        1 => server.prop_map(Step::Repeat),
        4 => (1..3000i64).prop_map(Step::Wait),
    ]
}

/// A memory server that may have any fault.
#[derive(Default)]
struct Host {
    number: Option<u8>,
    slots: HashMap<u32, [u8; PAGE]>,
    given_back: Vec<u32>,
    is_up: bool,
    is_full: bool,
    is_silent: bool,
    /// Writes in transit when their connection was lost: time of the loss, slot and bytes.
    late: Vec<(i64, u32, [u8; PAGE])>,
}

/// A request of the engine.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum EngineRequest {
    /// Read of a page. The second value is the index of the page's contents when the read began.
    Read(u32, usize),
    Write(u32),
    Flush,
}

pub(super) struct World {
    pub(super) device: Device,
    hosts: Vec<Host>,
    disk: HashMap<u32, [u8; PAGE]>,
    pub(super) under_way: Vec<Action>,
    /// All contents that each page ever had.
    pages: Vec<Vec<[u8; PAGE]>>,
    pub(super) asked: HashMap<u64, EngineRequest>,
    cookie: u64,
    now_us: i64,
    pub(super) failed_reads: u64,
    pub(super) failed_writes: u64,
    pub(super) released: Vec<u8>,
    pub(super) notes: Vec<String>,
    /// True for pages of which a write failed.
    is_open: [bool; PAGES as usize],
}

impl World {
    pub(super) fn new(
        copies: usize,
        has_disk: bool,
        hosts: usize,
        slots: u32,
        on_revocation: Revocation,
    ) -> Self {
        let eviction = Policy::Lru;
        Self::evicting(eviction, copies, has_disk, hosts, slots, on_revocation)
    }

    pub(super) fn evicting(
        eviction: Policy,
        copies: usize,
        has_disk: bool,
        hosts: usize,
        slots: u32,
        on_revocation: Revocation,
    ) -> Self {
        let settings = Self::settings(eviction, copies, has_disk, on_revocation);
        Self::of(settings, hosts, slots)
    }

    /// Settings with small frames and short timeouts.
    pub(super) fn settings(
        eviction: Policy,
        copies: usize,
        has_disk: bool,
        on_revocation: Revocation,
    ) -> Settings {
        Settings {
            pages: PAGES,
            copies,
            has_disk,
            frames: 64,
            eviction,
            on_revocation,
            choice: Choice::Spread,
            window_requests: 0,
            answer_timeout_ms: 2000,
            request_timeout_ms: 5000,
        }
    }

    /// World of a device with these settings, and servers of equal size.
    pub(super) fn of(settings: Settings, hosts: usize, slots: u32) -> Self {
        let mut world = Self {
            device: Device::new(settings, &[3; 32]).unwrap(),
            hosts: Vec::new(),
            disk: HashMap::new(),
            under_way: Vec::new(),
            pages: vec![vec![[0; PAGE]]; PAGES as usize],
            asked: HashMap::new(),
            cookie: 0,
            now_us: 0,
            failed_reads: 0,
            failed_writes: 0,
            released: Vec::new(),
            notes: Vec::new(),
            is_open: [false; PAGES as usize],
        };
        for number in 0..hosts {
            world.join(&format!("host{number}"), slots);
        }
        world
    }

    fn join(&mut self, name: &str, slots: u32) {
        let number = self.device.add_server(name, slots);
        self.hosts.push(Host {
            number,
            is_up: true,
            ..Host::default()
        });
        self.device.server_up(number.unwrap());
        self.act();
    }

    fn host(&mut self, number: u8) -> Option<&mut Host> {
        self.hosts
            .iter_mut()
            .find(|host| host.number == Some(number))
    }

    /// Carries out the device's actions; checks answers to clients.
    fn act(&mut self) {
        while let Some(action) = self.device.next_action() {
            match action {
                Action::Answer(answer) => self.check(answer),
                Action::Disconnect(number, _) => {
                    // The server forgets the requests of its former connection.
                    self.drop_requests(number);
                    if let Some(host) = self.host(number) {
                        host.is_up = false;
                        host.is_silent = false;
                    }
                }
                Action::Release(number) => {
                    self.released.push(number);
                    let host = self.host(number).unwrap();
                    (host.number, host.is_up) = (None, false);
                }
                Action::Note(words) => self.notes.push(words),
                other => self.under_way.push(other),
            }
        }
    }

    fn check(&mut self, answer: Answer) {
        let (head, data) = answer.bytes.split_first_chunk().unwrap();
        let reply = SimpleReply::decode(head).unwrap();
        let asked = self.asked.remove(&reply.cookie).expect("asked for");
        match (asked, reply.error) {
            (EngineRequest::Read(page, since), 0) => {
                let all = &self.pages[page as usize];
                let may_be = |was: &[u8; PAGE]| was == data;
                // A failed write may have been done or not, and later writes may have replaced parts of it.
                // So each byte must be one that the page once had at that offset.
                let byte_was = |at: usize| all.iter().any(|was| was[at] == data[at]);
                assert!(
                    all[since..].iter().any(may_be)
                        || self.is_open[page as usize] && (0..PAGE).all(byte_was),
                    "page {page}: {:?} is none of {:?}",
                    &data[..8],
                    all.iter().map(|was| &was[..8]).collect::<Vec<_>>()
                );
            }
            (EngineRequest::Read(..), _) => self.failed_reads += 1,
            (EngineRequest::Write(page), 1..) => {
                self.failed_writes += 1;
                self.is_open[page as usize] = true;
            }
            _ => {}
        }
        self.device.recycle(answer);
    }

    fn drop_requests(&mut self, number: u8) {
        let now_us = self.now_us;
        let is_its = |action: &mut Action| matches!(action, Action::Read { server, .. } | Action::Write { server, .. } if *server == number);
        let dropped: Vec<Action> = self.under_way.extract_if(.., is_its).collect();
        let Some(host) = self.host(number) else {
            return;
        };
        for action in dropped {
            if let Action::Write { slot, bytes, .. } = action {
                host.late.push((now_us, slot, bytes.0));
            }
        }
    }

    /// Writes late bytes of a lost connection, unless too much time has passed.
    fn write_late(&mut self, host: usize) {
        let now_us = self.now_us;
        let host = &mut self.hosts[host];
        host.late
            .retain(|(since_us, ..)| since_us + LATE_US > now_us);
        if !host.late.is_empty() {
            let (_, slot, bytes) = host.late.remove(0);
            host.slots.insert(slot, bytes);
        }
    }

    fn begin(&mut self, asked: EngineRequest) -> usize {
        self.cookie += 1;
        self.asked.insert(self.cookie, asked);
        let bytes = match asked {
            EngineRequest::Read(..) => PAGE,
            _ => 0,
        };
        self.device.begin(1, self.cookie, bytes)
    }

    pub(super) fn do_step(&mut self, step: &Step) {
        match *step {
            Step::Write(page, byte) => self.write(page, 0, &[byte; PAGE]),
            Step::Patch(page, at, len, byte) => {
                let until = (at + len).min(PAGE);
                self.write(page, at, &vec![byte; until - at]);
            }
            Step::Read(page) => {
                let since = self.pages[page as usize].len() - 1;
                let job = self.begin(EngineRequest::Read(page, since));
                self.device.read(job, page, 0, PAGE, 0);
                self.device.end(job);
            }
            Step::Zero(page) if self.device.room() > 0 => {
                self.pages[page as usize].push([0; PAGE]);
                self.device.zero(page);
            }
            Step::Flush => {
                let job = self.begin(EngineRequest::Flush);
                self.device.flush(job);
                self.device.end(job);
            }
            Step::Deliver(nth) => self.deliver(nth),
            Step::Down(host) => self.lose(host, false),
            Step::Up(host) => {
                let host = &mut self.hosts[host];
                if let Some(number) = host.number {
                    (host.is_up, host.is_silent) = (true, false);
                    self.device.server_up(number);
                }
            }
            Step::Gone(host) => self.lose(host, true),
            Step::Drain(host) => {
                if let Some(number) = self.hosts[host].number {
                    self.device.drain(number);
                }
            }
            Step::Flip(host) => {
                for bytes in self.hosts[host].slots.values_mut() {
                    bytes[77] ^= 4;
                }
            }
            Step::GiveBack(host, slot) => self.hosts[host].given_back.push(slot),
            Step::Full(host) => self.hosts[host].is_full = true,
            Step::Silent(host) => self.hosts[host].is_silent = true,
            Step::Late(host) => self.write_late(host),
            Step::Forge(host, nth, kind) => self.forge(host, nth, kind),
            Step::Mistype(host) => self.mistype(host),
            Step::Repeat(host) => self.repeat(host),
            Step::Zero(_) => {}
            Step::Wait(ms) => self.wait(ms),
        }
        self.act();
    }

    pub(super) fn wait(&mut self, ms: i64) {
        self.now_us += ms * 1000;
        self.device.now(self.now_us);
        self.device.tick();
        self.act();
    }

    fn write(&mut self, page: u32, at: usize, bytes: &[u8]) {
        if self.device.room() == 0 {
            return;
        }
        let mut now = *self.pages[page as usize].last().unwrap();
        now[at..at + bytes.len()].copy_from_slice(bytes);
        let job = self.begin(EngineRequest::Write(page));
        self.pages[page as usize].push(now);
        self.device.write(job, page, at, bytes, false);
        self.device.end(job);
    }

    /// Number of a host's server in the device, if it is connected.
    fn connected(&self, host: usize) -> Option<u8> {
        let host = &self.hosts[host];
        host.number.filter(|_| host.is_up)
    }

    fn forge(&mut self, host: usize, nth: usize, kind: Forgery) {
        let Some(number) = self.connected(host) else {
            return;
        };
        let op_of = |action: &Action| match action {
            Action::Read { server, op, .. } | Action::Write { server, op, .. } => {
                (*server != number).then_some(*op)
            }
            Action::DiskRead { op, .. } | Action::DiskWrite { op, .. } => Some(*op),
            _ => None,
        };
        let others: Vec<u64> = self.under_way.iter().filter_map(op_of).collect();
        // If no such request exists, a small number is sent: the key of a request, without a generation.
        let op = others.get(nth).copied().unwrap_or(nth as u64);
        self.lie(number, op, kind);
    }

    /// Returns the index of the first unanswered request to a connected server.
    fn own(&self, number: u8) -> Option<usize> {
        let is_own = |action: &Action| matches!(action, Action::Read { server, .. } | Action::Write { server, .. } if *server == number);
        self.under_way.iter().position(is_own)
    }

    fn mistype(&mut self, host: usize) {
        let Some(number) = self.connected(host) else {
            return;
        };
        match self.own(number).map(|at| &self.under_way[at]) {
            Some(Action::Read { op, .. }) => self.lie(number, *op, Forgery::Wrote),
            Some(Action::Write { op, .. }) => self.lie(number, *op, Forgery::Read),
            _ => {}
        }
    }

    fn repeat(&mut self, host: usize) {
        let Some(number) = self.connected(host) else {
            return;
        };
        let Some(at) = self.own(number) else {
            return;
        };
        let (op, kind) = match self.under_way.remove(at) {
            Action::Read { op, .. } => (op, Forgery::Read),
            Action::Write { op, .. } => (op, Forgery::Failed),
            other => panic!("{other:?}"),
        };
        self.device.server_failed(number, op, Fault::Io);
        self.lie(number, op, kind);
    }

    /// Sends a false answer. The device must close the connection, and complete no request.
    fn lie(&mut self, number: u8, op: u64, kind: Forgery) {
        let before = self.device.counters().disconnects_count;
        match kind {
            Forgery::Read => self.device.server_read(number, op, &mut [0xEE; PAGE]),
            Forgery::Wrote => self.device.server_wrote(number, op),
            Forgery::Failed => self.device.server_failed(number, op, Fault::Shutdown),
        }
        assert_eq!(self.device.counters().disconnects_count, before + 1);
    }

    fn lose(&mut self, host: usize, for_good: bool) {
        let Some(number) = self.hosts[host].number else {
            return;
        };
        self.hosts[host].is_up = false;
        self.drop_requests(number);
        if for_good {
            self.hosts[host].number = None;
            self.hosts[host].slots.clear();
            self.hosts[host].late.clear();
            self.device.server_gone(number);
        } else {
            self.device.server_down(number);
        }
    }

    /// Completes the oldest request of a server, or any request of the disk; `nth` chooses among them.
    fn deliver(&mut self, nth: usize) {
        let owner = |action: &Action| match action {
            Action::Read { server, .. } | Action::Write { server, .. } => Some(*server),
            _ => None,
        };
        let mut seen = Vec::new();
        let mut firsts = Vec::new();
        for (at, action) in self.under_way.iter().enumerate() {
            let owner = owner(action);
            if owner.is_none() || !seen.contains(&owner) {
                firsts.push(at);
            }
            seen.push(owner);
        }
        if firsts.is_empty() {
            return;
        }
        let action = self.under_way.remove(firsts[nth % firsts.len()]);
        match action {
            Action::Read { server, slot, op } => {
                let Some(host) = self.host(server).filter(|host| host.is_up) else {
                    return;
                };
                if host.is_silent {
                    return;
                }
                if host.given_back.contains(&slot) {
                    return self.device.server_failed(server, op, Fault::Shutdown);
                }
                let mut bytes = host.slots.get(&slot).copied().unwrap_or([0; PAGE]);
                self.device.server_read(server, op, &mut bytes);
            }
            Action::Write {
                server,
                slot,
                op,
                bytes,
            } => {
                let Some(host) = self.host(server).filter(|host| host.is_up) else {
                    return;
                };
                if host.is_silent {
                    return;
                }
                if host.given_back.contains(&slot) {
                    return self.device.server_failed(server, op, Fault::Shutdown);
                }
                if host.is_full && !host.slots.contains_key(&slot) {
                    return self.device.server_failed(server, op, Fault::NoSpace);
                }
                host.slots.insert(slot, bytes.0);
                self.device.server_wrote(server, op);
            }
            Action::DiskRead {
                page,
                op,
                mut bytes,
            } => {
                Arc::make_mut(&mut bytes).0 = self.disk.get(&page).copied().unwrap_or([0; PAGE]);
                self.device.disk_read(op, bytes, true);
            }
            Action::DiskWrite { page, op, bytes } => {
                self.disk.insert(page, bytes.0);
                drop(bytes);
                self.device.disk_wrote(op, true);
            }
            other => panic!("{other:?}"),
        }
    }

    /// Completes all operations in progress; no request may stay unanswered.
    pub(super) fn settle(&mut self) {
        for round in 0.. {
            assert!(
                round < 20_000,
                "{} requests are never answered",
                self.asked.len()
            );
            if self.under_way.is_empty() {
                if self.asked.is_empty() && self.device.is_idle() {
                    break;
                }
                self.wait(500);
                continue;
            }
            self.deliver(0);
            self.act();
        }
    }

    /// Returns, for each page, whether a client can read it after everything has settled. A wrong byte fails
    /// the test.
    pub(super) fn contents(&mut self) -> Vec<bool> {
        (0..PAGES)
            .map(|page| {
                self.settle();
                let before = self.failed_reads;
                // After everything has settled, only the contents written last are right.
                let last = *self.pages[page as usize].last().unwrap();
                if !self.is_open[page as usize] {
                    self.pages[page as usize] = vec![last];
                }
                self.do_step(&Step::Read(page));
                self.settle();
                self.failed_reads == before
            })
            .collect()
    }
}
