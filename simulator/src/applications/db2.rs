//! Decision support: five queries that join relations with and without indices.
//!
//! From the study: 5.2 GB in 831 files; five consecutive queries of "complex join, select, and aggregate
//! operations on indexed and non-indexed relations" (section 3.2). Assumed: files have equal sizes; a query
//! scans two fifths of the files in order, in requests of 64 KB, and each query begins a fifth further on;
//! after each such request, the query looks up one random page of 8 KB, as a join by an index would.

use super::{Layout, Run, below};
use crate::Request;
use rand_chacha::ChaCha8Rng;

/// Compute time before each request, **calibrated** to Table 5's ideal speedup of db2.
const THINK_NS: u64 = 7_898_000;

const QUERIES: u32 = 5;
const FILES: u32 = 831;
const FILES_A_QUERY: u32 = FILES * 2 / QUERIES;
/// Blocks per request of a scan, which make 64 KB.
const SCANNED: u32 = 8;

const LAYOUT: Layout = Layout {
    files: FILES,
    file_blocks: 764, // 5.2 · 10⁹ bytes in all
    block_bytes: 8 << 10,
    largest_request_bytes: SCANNED * (8 << 10),
};

/// Generator of the requests of one run.
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
    const fn request(&self, block: u32, blocks: u32) -> Request {
        Request {
            object: block as u64,
            bytes: blocks * LAYOUT.block_bytes,
            is_write: false,
            think_ns: self.think_ns,
        }
    }
}

impl Run for Queries {
    const LAYOUT: Layout = LAYOUT;
    const THINK_NS: u64 = THINK_NS;
    const IS_CALIBRATED: bool = true;
    const KEEPS_REGIONS: bool = true; // section 3.3
    // db2 is a parallel program, traced on eight processors and run on a client with four (sections 3.2 and
    // 3.3).
    const PROCESSES: u32 = 4;

    fn new(think_ns: u64, dice: ChaCha8Rng) -> Self {
        Self {
            think_ns,
            dice,
            query: 0,
            file: 0,
            block: 0,
            looks_up: false,
        }
    }
}

impl Iterator for Queries {
    type Item = Request;

    #[inline]
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
