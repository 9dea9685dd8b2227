//! Blocks to fetch ahead of a sequential reader.

use crate::catalog::{BLOCK_BYTES, blocks_of};
use std::ops::Range;

/// First number of blocks ahead.
const FIRST_WINDOW: u64 = 2;
/// Distance by which a read may miss the end of the one before and still continue it: the kernel's own
/// readahead may reorder requests.
const SLACK_BYTES: u64 = 1 << 20;

/// Progress of a reader through a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sequence {
    /// Furthest byte that was read, plus 1.
    end: u64,
    /// Number of blocks ahead; 0 for a reader that is not sequential.
    window: u64,
    /// Block up to which blocks were fetched ahead.
    fetched_to: u64,
}

impl Sequence {
    /// Notes that the bytes in `read` were requested, and returns the blocks to fetch ahead, at most `most`.
    pub(super) fn advance(&mut self, read: Range<u64>, file_bytes: u64, most: u64) -> Range<u64> {
        let is_near = read.start <= self.end.saturating_add(SLACK_BYTES)
            && read.start.saturating_add(SLACK_BYTES) >= self.end;
        if !is_near {
            *self = Self {
                end: read.end,
                ..Self::default()
            };
            return 0..0;
        }
        if read.end <= self.end {
            return 0..0;
        }
        self.end = read.end;
        let window = self.window.saturating_mul(2).max(FIRST_WINDOW);
        self.window = window.min(most);
        let next = blocks_of(read.end);
        let end = next.saturating_add(self.window).min(blocks_of(file_bytes));
        let begin = next.max(self.fetched_to);
        if begin >= end {
            return 0..0;
        }
        self.fetched_to = end;
        begin..end
    }
}

const _: () = assert!(SLACK_BYTES.is_multiple_of(BLOCK_BYTES));

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const GIB: u64 = 1 << 30;

    #[test]
    fn the_window_doubles_up_to_the_limit_and_no_block_is_named_twice() {
        let mut sequence = Sequence::default();
        let mut ahead = |read| sequence.advance(read, GIB, 8);
        assert_eq!(ahead(0..64 * KIB), 1..3);
        assert_eq!(ahead(64 * KIB..128 * KIB), 3..6);
        assert_eq!(ahead(128 * KIB..192 * KIB), 6..11);
        assert_eq!(ahead(192 * KIB..256 * KIB), 11..12);
        assert_eq!(ahead(192 * KIB..256 * KIB), 0..0);
        assert_eq!(ahead(256 * KIB..260 * KIB), 12..13);
    }

    #[test]
    fn a_reader_that_jumps_has_nothing_fetched_ahead() {
        let mut sequence = Sequence::default();
        assert_eq!(sequence.advance(GIB / 2..GIB / 2 + 1, GIB, 8), 0..0);
        assert_eq!(sequence.advance(0..1, GIB, 8), 0..0);
        // It goes on from here.
        assert_eq!(sequence.advance(1..2, GIB, 8), 1..3);
    }

    #[test]
    fn nothing_lies_behind_the_end_of_the_file() {
        let mut sequence = Sequence::default();
        assert_eq!(sequence.advance(0..10, 100 * KIB, 8), 1..2);
        assert_eq!(sequence.advance(10..100 * KIB, 100 * KIB, 8), 0..0);
        let mut none = Sequence::default();
        assert_eq!(none.advance(0..10, GIB, 0), 0..0);
    }

    proptest::proptest! {
        #[test]
        fn ranges_lie_in_the_file_and_behind_the_read(
            reads in proptest::collection::vec((0_u64..4 << 20, 1_u64..1 << 20), 1..40),
            file_bytes in 1_u64..4 << 20,
            most in 0_u64..40,
        ) {
            let mut sequence = Sequence::default();
            for (start, length) in reads {
                let read = start.min(file_bytes)..(start + length).min(file_bytes);
                let ahead = sequence.advance(read.clone(), file_bytes, most);
                if !ahead.is_empty() {
                    proptest::prop_assert!(ahead.end <= blocks_of(file_bytes));
                    proptest::prop_assert!(ahead.start * BLOCK_BYTES >= read.end);
                    proptest::prop_assert!(ahead.end - ahead.start <= most);
                }
            }
        }
    }
}
