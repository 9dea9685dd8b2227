//! Feed of changed quotas, for readers that watch them.

use std::sync::Arc;
use tokio::sync::broadcast::{self, Receiver, Sender};

/// Maximum number of events that a reader may lag behind. A slower reader is disconnected, and gets the full
/// list when it reconnects.
const BEHIND: usize = 64;

/// Sender of changes to all readers.
pub(crate) struct Feed(Sender<Arc<str>>);

impl Default for Feed {
    fn default() -> Self {
        Self(broadcast::channel(BEHIND).0)
    }
}

impl Feed {
    /// Sends changes to all readers. The text is made only if there are readers.
    pub(crate) fn tell(&self, changes: impl FnOnce() -> String) {
        if self.0.receiver_count() > 0 {
            // Fails only if no reader is left.
            let _ = self.0.send(changes().into());
        }
    }

    /// Subscribes a reader to the changes.
    pub(super) fn subscribe(&self) -> Receiver<Arc<str>> {
        self.0.subscribe()
    }

    /// Number of readers.
    pub(crate) fn readers_count(&self) -> usize {
        self.0.receiver_count()
    }
}
