//! Mostly a fifth of the data: as `random`, but 80 % of the requests go to the first 20 % of the blocks (section 3.2).

use super::below;
use super::random::LAYOUT;
use rand_chacha::ChaCha8Rng;

const HOT_BLOCKS: u32 = LAYOUT.blocks() / 5;

/// The next request's block.
pub(super) fn block(dice: &mut ChaCha8Rng) -> u32 {
    let is_hot = below(5, dice) < 4;
    if is_hot {
        below(HOT_BLOCKS, dice)
    } else {
        HOT_BLOCKS + below(LAYOUT.blocks() - HOT_BLOCKS, dice)
    }
}
