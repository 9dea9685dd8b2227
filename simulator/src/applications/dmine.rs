//! Association rules: scans of all transactions, one scan for each size of item set.
//!
//! From the study: 4 GB in 8 files; almost all requests are for 128 KB (section 4); a frequent set has at
//! most three items, and the access pattern is a scan (section 3.2). Assumed: one pass for each size of set,
//! as in the algorithm that the study names (Agrawal & Srikant), so three; each of the eight traced processes
//! scans its own file, in step with the others.

use super::{Layout, Run};
use crate::Request;
use rand_chacha::ChaCha8Rng;

/// Compute time before each request, **calibrated** to Table 5's ideal speedup of dmine.
const THINK_NS: u64 = 4_428_000;

const FILES: u32 = 8;
const PASSES: u32 = 3;

const LAYOUT: Layout = Layout {
    files: FILES,
    file_blocks: 3815, // 4.0 · 10⁹ bytes in all
    block_bytes: 128 << 10,
    largest_request_bytes: 128 << 10,
};

/// Generator of the requests of one run.
#[derive(Clone, Debug)]
pub struct Scans {
    think_ns: u64,
    pass: u32,
    block: u32,
    file: u32,
}

impl Run for Scans {
    const LAYOUT: Layout = LAYOUT;
    const THINK_NS: u64 = THINK_NS;
    const IS_CALIBRATED: bool = true;
    const KEEPS_REGIONS: bool = true; // section 3.3
    // dmine is a parallel program, traced on eight processors and run on a client with four (sections 3.2 and
    // 3.3).
    const PROCESSES: u32 = 4;

    fn new(think_ns: u64, _dice: ChaCha8Rng) -> Self {
        Self {
            think_ns,
            pass: 0,
            block: 0,
            file: 0,
        }
    }
}

impl Iterator for Scans {
    type Item = Request;

    #[inline]
    fn next(&mut self) -> Option<Request> {
        if self.pass == PASSES {
            return None;
        }
        let object = u64::from(self.file * LAYOUT.file_blocks + self.block);
        self.file += 1;
        if self.file == FILES {
            (self.file, self.block) = (0, self.block + 1);
        }
        if self.block == LAYOUT.file_blocks {
            (self.block, self.pass) = (0, self.pass + 1);
        }
        Some(Request {
            object,
            bytes: LAYOUT.block_bytes,
            is_write: false,
            think_ns: self.think_ns,
        })
    }
}
