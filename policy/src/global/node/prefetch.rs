//! Memory that a node reads for an event, loaded before the event.

use super::Node;
use crate::global::message::Message;
use crate::global::prefetch::PrefetchStage;
use crate::global::uid::Uid;

impl Node {
    /// Prefetches the memory that a program's read of a page needs on this node. Changes nothing.
    pub fn prefetch_read(&self, uid: Uid, stage: PrefetchStage) {
        self.pages.prefetch(uid, stage);
        if self.has_directory() && self.members.owner(uid) == Some(self.id) {
            self.directory.prefetch(uid, stage);
        }
    }

    /// Prefetches the memory that a message needs on this node. Changes nothing.
    pub fn prefetch_message(&self, message: &Message, stage: PrefetchStage) {
        match message {
            Message::GetPage { uid, .. } if !self.has_directory() => {
                self.pages.prefetch(*uid, stage);
            }
            Message::GetPage { uid, .. }
            | Message::Moved { uid, .. }
            | Message::Gone { uid, .. } => self.directory.prefetch(*uid, stage),
            Message::PutPage { uid, .. } => {
                self.pages.prefetch(*uid, stage);
                if self.pages.is_full() {
                    self.pages.prefetch_oldest_global(stage);
                }
            }
            Message::Forward { uid, .. } | Message::Alone { uid } | Message::Discard { uid } => {
                self.pages.prefetch(*uid, stage)
            }
            Message::Page { uid, .. } => {
                self.pages.prefetch(*uid, stage);
                // The page that leaves for it is often a private one, whose entry is here.
                if let Some(oldest) = self.pages.oldest_local()
                    && oldest.uid.user() == Some(self.id)
                {
                    self.directory.prefetch(oldest.uid, stage);
                }
            }
            Message::Miss { .. }
            | Message::ReportPlease { .. }
            | Message::Summary { .. }
            | Message::Weights(_)
            | Message::Ended { .. } => {}
        }
    }
}
