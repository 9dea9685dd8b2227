//! Requests mostly to a fifth of the data: like `random`, but 80 % of the requests go to the first 20 % of
//! the blocks (section 3.2).

use super::random::{self, LAYOUT};
use super::{Layout, Run, below};
use crate::Request;
use rand_chacha::ChaCha8Rng;

const HOT_BLOCKS: u32 = LAYOUT.blocks() / 5;

/// Generator of the requests of one run.
#[derive(Clone, Debug)]
pub struct Draws(random::Draws);

impl Run for Draws {
    const LAYOUT: Layout = LAYOUT;
    const THINK_NS: u64 = random::Draws::THINK_NS;
    const IS_CALIBRATED: bool = random::Draws::IS_CALIBRATED;
    const KEEPS_REGIONS: bool = random::Draws::KEEPS_REGIONS;
    const PROCESSES: u32 = random::Draws::PROCESSES;

    fn new(think_ns: u64, dice: ChaCha8Rng) -> Self {
        Self(Run::new(think_ns, dice))
    }
}

impl Iterator for Draws {
    type Item = Request;

    #[inline]
    fn next(&mut self) -> Option<Request> {
        self.0.next_of(block)
    }
}

/// Draws the next request's block.
fn block(dice: &mut ChaCha8Rng) -> u32 {
    let is_hot = below(5, dice) < 4;
    if is_hot {
        below(HOT_BLOCKS, dice)
    } else {
        HOT_BLOCKS + below(LAYOUT.blocks() - HOT_BLOCKS, dice)
    }
}
