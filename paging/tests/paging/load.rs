//! A program that uses pages over NBD and checks their contents.

use gleaner_paging::nbd::client::{Server, Wire, connect};
use gleaner_paging::nbd::wire::{Command, Request, SimpleReply};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

const PAGE: usize = 4096;

/// Outcome of a load.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    pub(crate) slowest: Duration,
}

/// Pages that the load uses, with the number of each page's last write. `None`: that write failed, and the
/// page may have its former or its new contents.
pub(crate) struct Load {
    wire: Wire,
    first_page: u64,
    pages: Vec<Option<u64>>,
    random: ChaCha8Rng,
    stamp: u64,
    pub(crate) outcome: Outcome,
}

/// Contents of a page after the write with number `stamp`; 0: the page was never written.
fn contents(page: u64, stamp: u64) -> Vec<u8> {
    let mut bytes = vec![0; PAGE];
    if stamp > 0 {
        ChaCha8Rng::seed_from_u64(page << 32 | stamp).fill_bytes(&mut bytes);
    }
    bytes
}

impl Load {
    /// Connects to use `count` pages from `first_page` on. No request may take longer than `patience`.
    pub(crate) fn new(
        (server, export): (&Server, &str),
        (first_page, count): (u64, usize),
        seed: u64,
        patience: Duration,
    ) -> Self {
        let (wire, _) = connect(server, export, None, Duration::from_secs(10)).unwrap();
        wire.set_patience(Some(patience)).unwrap();
        Self {
            wire,
            first_page,
            pages: vec![Some(0); count],
            random: ChaCha8Rng::seed_from_u64(seed),
            stamp: 0,
            outcome: Outcome::default(),
        }
    }

    /// Sends a request and waits for its answer; returns true if it succeeded.
    fn ask(&mut self, command: Command, page: usize, count: usize, data: &mut [u8]) -> bool {
        let begun = Instant::now();
        let request = Request {
            flags: 0,
            command,
            cookie: self.outcome.requests,
            offset: (self.first_page + page as u64) * PAGE as u64,
            bytes: (count * PAGE) as u32,
        };
        let mut sent = request.encode().to_vec();
        if command == Command::Write {
            sent.extend_from_slice(data);
        }
        self.wire.write_all(&sent).unwrap();
        let mut head = [0; SimpleReply::BYTES];
        self.wire.read_exact(&mut head).expect("an answer in time");
        let reply = SimpleReply::decode(&head).unwrap();
        assert_eq!(reply.cookie, request.cookie);
        if command == Command::Read && reply.error == 0 {
            self.wire.read_exact(data).unwrap();
        }
        self.outcome.requests += 1;
        self.outcome.errors += u64::from(reply.error != 0);
        self.outcome.slowest = self.outcome.slowest.max(begun.elapsed());
        reply.error == 0
    }

    /// Writes, reads or discards some pages.
    pub(crate) fn step(&mut self) {
        let page = self.random.next_u32() as usize % self.pages.len();
        let count = (1 + self.random.next_u32() as usize % 8).min(self.pages.len() - page);
        match self.random.next_u32() % 20 {
            0 => {
                let done = self.ask(Command::Trim, page, count, &mut []);
                self.pages[page..page + count].fill(done.then_some(0));
            }
            1..9 => self.write(page, count),
            _ => self.check(page, count),
        }
    }

    fn write(&mut self, page: usize, count: usize) {
        self.stamp += 1;
        let stamp = self.stamp;
        let number = |at: usize| self.first_page + (page + at) as u64;
        let mut data: Vec<u8> = (0..count)
            .flat_map(|at| contents(number(at), stamp))
            .collect();
        let done = self.ask(Command::Write, page, count, &mut data);
        self.pages[page..page + count].fill(done.then_some(stamp));
    }

    /// Writes every page.
    pub(crate) fn write_all(&mut self) {
        for page in 0..self.pages.len() {
            self.write(page, 1);
        }
    }

    fn check(&mut self, page: usize, count: usize) {
        let mut data = vec![0; count * PAGE];
        if !self.ask(Command::Read, page, count, &mut data) {
            return;
        }
        for at in 0..count {
            let number = self.first_page + (page + at) as u64;
            let Some(stamp) = self.pages[page + at] else {
                continue;
            };
            let is_right = data[at * PAGE..][..PAGE] == contents(number, stamp);
            assert!(is_right, "page {number} is not what was written as {stamp}");
        }
    }

    /// Reads and checks every page once more.
    pub(crate) fn check_all(&mut self) {
        for page in 0..self.pages.len() {
            self.check(page, 1);
        }
    }
}
