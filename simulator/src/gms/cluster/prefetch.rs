//! Memory of the next events, loaded before them: most of a large cluster's time is spent waiting for memory.

use super::{Cluster, Scheduled};
use gleaner_policy::global::NodeId;
use gleaner_policy::global::prefetch::{PrefetchStage, prefetch};

impl Cluster<'_> {
    /// Prefetches the host and the page of the next event, and the hosts and index lines of the two after it, while the
    /// present one is handled.
    pub(super) fn prefetch_next(&self) {
        for (place, event) in self.queue.peek_several().enumerate() {
            let stage = match place {
                0 => PrefetchStage::Page,
                _ => PrefetchStage::Index,
            };
            match event {
                Scheduled::Arrival { to, message, .. } => {
                    let host = &self.hosts[*to as usize];
                    prefetch(host);
                    host.node.prefetch_message(message, stage);
                }
                Scheduled::Reference(id) => {
                    prefetch(&self.hosts[*id as usize]);
                    self.prefetch_reference(*id, stage);
                }
                Scheduled::Resume(id) | Scheduled::Loaded { node: id, .. } => {
                    prefetch(&self.hosts[*id as usize]);
                }
                Scheduled::Tick
                | Scheduled::Exchange
                | Scheduled::Frames(..)
                | Scheduled::Owner(_) => {}
            }
        }
    }

    /// Prefetches the page of a process's next reference.
    pub(super) fn prefetch_reference(&self, id: NodeId, stage: PrefetchStage) {
        let host = &self.hosts[id as usize];
        if let Some(process) = &host.process {
            host.node.prefetch_read(process.next_uid(), stage);
        }
    }
}
