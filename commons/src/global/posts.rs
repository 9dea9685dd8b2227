//! Messages that nobody waits for: evicted blocks, changes of the directory, early ends of epochs.

use super::frames::BlockData;
use crate::catalog::Hash;
use gleaner_policy::global::NodeId;
use gleaner_policy::global::message::Message;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use tokio::sync::watch;

/// Most evicted blocks that wait to be sent; further ones are dropped.
const MOST_PUTS: usize = 256;
/// Most changes of the directory that wait to be sent; a change that is not sent costs its readers one exchange.
const MOST_NOTICES: usize = 1 << 14;

/// Evicted block on its way to another host.
pub struct EvictedBlock {
    /// Host that receives the block.
    pub to: NodeId,
    /// Hash of the block.
    pub hash: Hash,
    /// Bytes of the block.
    pub data: BlockData,
    /// Time since the block's last use, in ms.
    pub age_ms: u64,
    /// Forwards left, under `n-chance`.
    pub chances: u8,
}

/// Change for the directory of another host, or for its copy.
pub struct DirectoryNotice {
    /// Host that receives the message.
    pub to: NodeId,
    /// `Moved`, `Gone`, `Alone` or `Discard`.
    pub message: Message,
}

/// Sending ends of the queues.
pub struct Posts {
    puts: SyncSender<EvictedBlock>,
    notices: SyncSender<DirectoryNotice>,
    ended: watch::Sender<u64>,
    dropped_puts: AtomicU64,
}

/// Receiving ends of the queues.
pub struct PostQueues {
    /// Blocks to send.
    pub puts: Receiver<EvictedBlock>,
    /// Changes to send.
    pub notices: Receiver<DirectoryNotice>,
}

impl Posts {
    /// Makes the queues.
    #[must_use]
    pub fn new() -> (Self, PostQueues) {
        let (puts, waiting_puts) = sync_channel(MOST_PUTS);
        let (notices, waiting_notices) = sync_channel(MOST_NOTICES);
        let posts = Self {
            puts,
            notices,
            ended: watch::Sender::new(0),
            dropped_puts: AtomicU64::new(0),
        };
        let queues = PostQueues {
            puts: waiting_puts,
            notices: waiting_notices,
        };
        (posts, queues)
    }

    /// Numbers of epochs that have ended before their time, for the recruiters.
    #[must_use]
    pub fn ended_epochs(&self) -> watch::Receiver<u64> {
        self.ended.subscribe()
    }

    /// Number of evicted blocks that were dropped because too many waited.
    #[must_use]
    pub fn dropped_puts_count(&self) -> u64 {
        self.dropped_puts.load(Ordering::Relaxed)
    }

    pub(super) fn put(&self, block: EvictedBlock) {
        if self.puts.try_send(block).is_err() {
            self.dropped_puts.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn notify(&self, to: NodeId, message: Message) {
        let _ = self.notices.try_send(DirectoryNotice { to, message }); // see MOST_NOTICES
    }

    pub(super) fn end(&self, epoch: u64) {
        self.ended.send_replace(epoch);
    }
}
