//! Random requests, as in the study (section 3.2): 262,144 reads of 8 KB from 2 GB. Assumed: the data have as
//! many blocks as there are reads, which is 2 GiB, in one file per disk.

use super::{Layout, Run, below};
use crate::Request;
use crate::event::MS;
use rand_chacha::ChaCha8Rng;

/// The study's compute time before each request (section 3.2).
const THINK_NS: u64 = 10 * MS;

/// Number of requests of a run.
const REQUESTS: u32 = 262_144;

pub(super) const LAYOUT: Layout = Layout {
    files: 2,
    file_blocks: 131_072,
    block_bytes: 8 << 10,
    largest_request_bytes: 8 << 10,
};

/// Generator of the requests of one run, each for a random block.
#[derive(Clone, Debug)]
pub struct Draws {
    think_ns: u64,
    dice: ChaCha8Rng,
    left: u32,
}

impl Draws {
    /// Returns the next request, for the block that `block` draws.
    pub(super) fn next_of(&mut self, block: fn(&mut ChaCha8Rng) -> u32) -> Option<Request> {
        self.left = self.left.checked_sub(1)?;
        Some(Request {
            object: u64::from(block(&mut self.dice)),
            bytes: LAYOUT.block_bytes,
            is_write: false,
            think_ns: self.think_ns,
        })
    }
}

impl Run for Draws {
    const LAYOUT: Layout = LAYOUT;
    const THINK_NS: u64 = THINK_NS;
    const IS_CALIBRATED: bool = false;
    const KEEPS_REGIONS: bool = false; // section 3.3
    // The study says: "a constant compute time of 10 ms between successive I/O requests", so one process.
    const PROCESSES: u32 = 1;

    fn new(think_ns: u64, dice: ChaCha8Rng) -> Self {
        Self {
            think_ns,
            dice,
            left: REQUESTS,
        }
    }
}

impl Iterator for Draws {
    type Item = Request;

    #[inline]
    fn next(&mut self) -> Option<Request> {
        self.next_of(|dice| below(LAYOUT.blocks(), dice))
    }
}
