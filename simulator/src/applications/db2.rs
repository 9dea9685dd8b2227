//! Decision support: five queries that join relations with and without indices.
//!
//! The study's: 5.2 GB in 831 files; five consecutive queries of "complex join, select, and aggregate operations on indexed
//! and non-indexed relations" (section 3.2). Everything else is assumed: files of one size; a query scans two fifths of the
//! files one after the other in requests of 64 KB, each query beginning a fifth further on, and after each of them looks one page of 8 KB up,
//! anywhere, as a join by an index would.

use super::{Layout, below};
use crate::Request;
use rand_chacha::ChaCha8Rng;

/// **Calibrated** to Table 5's ideal speedup of db2.
pub(super) const THINK_NS: u64 = 7_898_000;

const QUERIES: u32 = 5;
const FILES: u32 = 831;
const FILES_A_QUERY: u32 = FILES * 2 / QUERIES;
/// Blocks of a scan's request: 64 KB.
const SCANNED: u32 = 8;

pub(super) const LAYOUT: Layout = Layout {
    files: FILES,
    file_blocks: 764, // 5.2 · 10⁹ bytes in all
    block_bytes: 8 << 10,
    largest_request_bytes: SCANNED * (8 << 10),
};

/// The requests of one run.
#[derive(Clone, Debug)]
pub struct Queries {
    think_ns: u64,
    dice: ChaCha8Rng,
    query: u32,
    file: u32,
    block: u32,
    looks_up: bool,
}

impl Queries {
    pub(super) const fn new(think_ns: u64, dice: ChaCha8Rng) -> Self {
        Self {
            think_ns,
            dice,
            query: 0,
            file: 0,
            block: 0,
            looks_up: false,
        }
    }

    const fn request(&self, block: u32, blocks: u32) -> Request {
        Request {
            object: block as u64,
            bytes: blocks * LAYOUT.block_bytes,
            is_write: false,
            think_ns: self.think_ns,
        }
    }
}

impl Iterator for Queries {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        if self.looks_up {
            self.looks_up = false;
            let page = below(LAYOUT.blocks(), &mut self.dice);
            return Some(self.request(page, 1));
        }
        if self.query == QUERIES {
            return None;
        }
        let file = (self.query * FILES / QUERIES + self.file) % FILES;
        let blocks = SCANNED.min(LAYOUT.file_blocks - self.block);
        let request = self.request(file * LAYOUT.file_blocks + self.block, blocks);
        self.looks_up = true;
        self.block += blocks;
        if self.block == LAYOUT.file_blocks {
            (self.block, self.file) = (0, self.file + 1);
        }
        if self.file == FILES_A_QUERY {
            (self.file, self.query) = (0, self.query + 1);
        }
        Some(request)
    }
}
