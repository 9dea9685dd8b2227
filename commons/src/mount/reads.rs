//! Reads by the kernel that wait for their blocks.

use crate::catalog::BLOCK_BYTES;
use crate::store::{Block, BlockReceiver, FetchError};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Way to answer a read.
pub(super) trait ReadReply: Send {
    /// Answers with the requested bytes.
    fn bytes(self, bytes: &[u8]);
    /// Answers with EIO.
    fn failed(self);
}

impl ReadReply for fuser::ReplyData {
    fn bytes(self, bytes: &[u8]) {
        self.data(bytes);
    }

    fn failed(self) {
        self.error(fuser::Errno::EIO);
    }
}

/// A read of one or several blocks. It is answered when the last one has come, or the first one failed.
pub(super) struct PendingRead<R> {
    /// Bytes of the file to be read; not empty.
    range: Range<u64>,
    state: Mutex<State<R>>,
}

struct State<R> {
    /// `None` once the read was answered.
    reply: Option<R>,
    blocks: Vec<Option<Block>>,
    missing_count: usize,
}

impl<R: ReadReply> PendingRead<R> {
    pub(super) fn new(range: Range<u64>, reply: R) -> Self {
        let span = blocks(&range);
        let count = usize::try_from(span.end - span.start).unwrap_or(usize::MAX);
        Self {
            range,
            state: Mutex::new(State {
                reply: Some(reply),
                blocks: vec![None; count],
                missing_count: count,
            }),
        }
    }

    /// Part of a block that the read needs, as bytes of the block.
    fn part(&self, block: u64) -> Range<u64> {
        part(&self.range, block)
    }
}

/// Blocks that contain the bytes in `range`.
pub(super) fn blocks(range: &Range<u64>) -> Range<u64> {
    range.start / BLOCK_BYTES..range.end.div_ceil(BLOCK_BYTES)
}

/// Part of a block that lies in `range`, as bytes of the block.
pub(super) fn part(range: &Range<u64>, block: u64) -> Range<u64> {
    let begin = block * BLOCK_BYTES;
    range.start.saturating_sub(begin)..(range.end - begin).min(BLOCK_BYTES)
}

fn slice(block: &Block, part: Range<u64>) -> Option<&[u8]> {
    block.get(usize::try_from(part.start).ok()?..usize::try_from(part.end).ok()?)
}

impl<R: ReadReply> BlockReceiver for PendingRead<R> {
    fn receive(&self, index: usize, block: Result<Block, FetchError>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(block) = block else {
            let reply = state.reply.take();
            drop(state);
            if let Some(reply) = reply {
                reply.failed();
            }
            return;
        };
        if let Some(place @ None) = state.blocks.get_mut(index) {
            *place = Some(block);
            state.missing_count -= 1;
        }
        if state.missing_count > 0 {
            return;
        }
        let Some(reply) = state.reply.take() else {
            return;
        };
        let blocks = std::mem::take(&mut state.blocks);
        drop(state);
        let first = self.range.start / BLOCK_BYTES;
        if let [Some(block)] = &blocks[..] {
            match slice(block, self.part(first)) {
                Some(bytes) => reply.bytes(bytes),
                None => reply.failed(),
            }
            return;
        }
        let length = usize::try_from(self.range.end - self.range.start).unwrap_or(0);
        let mut all = Vec::with_capacity(length);
        for (number, block) in (first..).zip(&blocks) {
            let bytes = block
                .as_ref()
                .and_then(|block| slice(block, self.part(number)));
            all.extend_from_slice(bytes.unwrap_or_default());
        }
        // A block that is shorter than its catalog says would shift the bytes behind it.
        if all.len() == length {
            reply.bytes(&all);
        } else {
            reply.failed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::{Sender, channel};

    struct ChannelReply(Sender<Option<Vec<u8>>>);

    impl ReadReply for ChannelReply {
        fn bytes(self, bytes: &[u8]) {
            self.0.send(Some(bytes.to_vec())).unwrap();
        }

        fn failed(self) {
            self.0.send(None).unwrap();
        }
    }

    #[test]
    fn the_first_failure_answers_and_later_blocks_do_not() {
        let (sender, said) = channel();
        let read = PendingRead::new(10..3 * BLOCK_BYTES, ChannelReply(sender));
        let block = || Arc::new(vec![1; BLOCK_BYTES as usize]);
        read.receive(2, Ok(block()));
        assert!(said.try_recv().is_err());
        read.receive(0, Err(FetchError::TimedOut));
        assert_eq!(said.recv(), Ok(None));
        read.receive(1, Ok(block()));
        read.receive(0, Ok(block()));
        assert!(said.try_recv().is_err());
    }

    proptest::proptest! {
        #[test]
        fn blocks_in_any_order_give_the_files_bytes(
            start in 0_u64..4 * BLOCK_BYTES,
            length in 1_u64..3 * BLOCK_BYTES,
            seed: u64,
        ) {
            let file: Vec<u8> = (0..8 * BLOCK_BYTES).map(|i| (i % 251) as u8).collect();
            let range = start..start + length;
            let (sender, said) = channel();
            let read = PendingRead::new(range.clone(), ChannelReply(sender));
            let span = blocks(&range);
            let mut order: Vec<u64> = span.clone().collect();
            let mut random = gleaner_harness::Random(seed);
            for i in (1..order.len()).rev() {
                order.swap(i, random.below(i as u64 + 1) as usize);
            }
            let mut used = 0;
            for number in order {
                let begin = (number * BLOCK_BYTES) as usize;
                let block = file[begin..begin + BLOCK_BYTES as usize].to_vec();
                used += part(&range, number).count();
                read.receive((number - span.start) as usize, Ok(Arc::new(block)));
            }
            let wanted = &file[range.start as usize..range.end as usize];
            let answer = said.recv().unwrap();
            proptest::prop_assert_eq!(answer.as_deref(), Some(wanted));
            proptest::prop_assert_eq!(used as u64, length);
            proptest::prop_assert!(said.try_recv().is_err());
        }
    }
}
