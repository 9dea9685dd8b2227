//! Random requests, all the study's (section 3.2): 262,144 reads of 8 KB from 2 GB. That these are as many blocks as 2 GiB
//! have, in a file on each disk, is assumed.

use super::{Layout, below};
use crate::Request;
use rand_chacha::ChaCha8Rng;

/// Requests of a run.
const REQUESTS: u32 = 262_144;

pub(super) const LAYOUT: Layout = Layout {
    files: 2,
    file_blocks: 131_072,
    block_bytes: 8 << 10,
    largest_request_bytes: 8 << 10,
};

/// The next request's block.
pub(super) fn block(dice: &mut ChaCha8Rng) -> u32 {
    below(LAYOUT.blocks(), dice)
}

/// The requests of one run, each for a block that is drawn.
#[derive(Clone, Debug)]
pub struct Draws {
    block: fn(&mut ChaCha8Rng) -> u32,
    think_ns: u64,
    dice: ChaCha8Rng,
    left: u32,
}

impl Draws {
    pub(super) fn new(block: fn(&mut ChaCha8Rng) -> u32, think_ns: u64, dice: ChaCha8Rng) -> Self {
        Self {
            block,
            think_ns,
            dice,
            left: REQUESTS,
        }
    }
}

impl Iterator for Draws {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        self.left = self.left.checked_sub(1)?;
        Some(Request {
            object: u64::from((self.block)(&mut self.dice)),
            bytes: LAYOUT.block_bytes,
            is_write: false,
            think_ns: self.think_ns,
        })
    }
}
