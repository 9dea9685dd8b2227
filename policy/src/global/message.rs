//! Messages between nodes, events of one node, and its actions: plain types.

use super::age::Summary;
use super::directory::Holder;
use super::members::Members;
use super::uid::{NodeId, Uid};
use std::sync::Arc;

/// Message from one node to another. Messages may be late, doubled and reordered. If one is lost, a page is
/// read from its source instead, or stays in memory without being found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// A reader asks the directory's node, or under `hash` the page's home, for a page.
    GetPage {
        /// Page that the reader wants.
        uid: Uid,
        /// Reader, which becomes a holder of the page.
        reader: Holder,
    },
    /// The directory's node asks a holder to send the page to the reader.
    Forward {
        /// Page that the reader wants.
        uid: Uid,
        /// Node that waits for the page, with the stamp of its request.
        reader: Holder,
    },
    /// The page and its data.
    Page {
        /// Page that is sent.
        uid: Uid,
        /// True if the sender kept no copy.
        is_moved: bool,
        /// Receiver of the page, with the stamp of its request.
        reader: Holder,
    },
    /// The cluster's memory does not have the page.
    Miss {
        /// Page that the reader wants.
        uid: Uid,
        /// Receiver of the message, with the stamp of its request.
        reader: Holder,
    },
    /// An evicted page and its data. The sender has dropped the page, and does not wait for an answer.
    PutPage {
        /// Page that was evicted.
        uid: Uid,
        /// Time since the page's last use.
        age_ms: u64,
        /// N-chance: forwards left.
        chances: u8,
    },
    /// The sender holds a page.
    Moved {
        /// Page that the sender holds.
        uid: Uid,
        /// The sender, with the stamp of this change.
        holder: Holder,
    },
    /// The sender no longer holds a page.
    Gone {
        /// Page that the sender dropped or sent away.
        uid: Uid,
        /// The sender, with the stamp of this change.
        holder: Holder,
    },
    /// No other node holds the page.
    Alone {
        /// Page with a single copy.
        uid: Uid,
    },
    /// Another node holds a global copy: the receiver drops its own.
    Discard {
        /// Page with two global copies.
        uid: Uid,
    },
    /// An initiator begins an epoch and asks for a summary.
    ReportPlease {
        /// Number of the new epoch.
        epoch: u64,
    },
    /// Ages of the sender's pages.
    Summary {
        /// Number of the new epoch.
        epoch: u64,
        /// Ages and counts of the sender.
        summary: Arc<Summary>,
    },
    /// The initiator's result.
    Weights(Arc<Weights>),
    /// The epoch is over before its time; sent to the next initiator.
    Ended {
        /// Number of the epoch that is over.
        epoch: u64,
    },
}

impl Message {
    /// Size without the data of a page, in bytes: a kind of one byte, then the fields.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        const UID: u64 = 16;
        const HOLDER: u64 = 12;
        1 + match self {
            Self::GetPage { .. }
            | Self::Forward { .. }
            | Self::Miss { .. }
            | Self::Moved { .. }
            | Self::Gone { .. } => UID + HOLDER,
            Self::Page { .. } => UID + HOLDER + 1,
            Self::Alone { .. } | Self::Discard { .. } => UID,
            Self::PutPage { .. } => UID + 9,
            Self::ReportPlease { .. } | Self::Ended { .. } => 8,
            Self::Summary { .. } => Summary::BYTES,
            Self::Weights(weights) => {
                let lists = 8 * weights.targets.len() + 4 * weights.successors.len();
                48 + lists as u64
            }
        }
    }

    /// Returns true if the message carries the data of a page.
    #[must_use]
    pub const fn has_data(&self) -> bool {
        matches!(self, Self::Page { .. } | Self::PutPage { .. })
    }
}

/// Parameters of an epoch, for one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Weights {
    /// Number of the epoch.
    pub epoch: u64,
    /// Node that computed the weights.
    pub initiator: NodeId,
    /// Longest time that the epoch lasts.
    pub length_ms: i64,
    /// Age from which an evicted page is dropped.
    pub min_age_ms: u64,
    /// Estimate of replacements per second, in thousandths, for the next initiator.
    pub rate_milli_per_s: u64,
    /// Weight of the receiver of this message.
    pub own_weight: u64,
    /// True if the receiver has the largest weight, and thus ends the epoch when the weight is used up.
    pub is_counter: bool,
    /// Nodes that begin the next epoch: the first one, or the second if the first is silent, and so on.
    pub successors: Vec<NodeId>,
    /// Other nodes with their weights.
    pub targets: Vec<(NodeId, u64)>,
}

/// Event of one node.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A program of this node reads a page.
    Read {
        /// Page that the reader wants.
        uid: Uid,
    },
    /// The page that [`Action::Load`] requested has arrived.
    Loaded {
        /// Page that was read from its source.
        uid: Uid,
    },
    /// Message from another node.
    Message {
        /// Sender of the message.
        from: NodeId,
        /// Content of the message.
        message: Message,
    },
    /// Time has passed; sent at least every 100 ms.
    Tick,
    /// The list of members has changed.
    Members(Arc<Members>),
    /// The number of frames has changed: an owner has returned, or has left.
    Frames(u32),
    /// A program of this node no longer needs a page, and frees its frame: the program has ended.
    Freed {
        /// Page without further use on this node.
        uid: Uid,
    },
    /// The page that [`Action::Load`] requested cannot be read from its source.
    Failed {
        /// Page that the source does not have.
        uid: Uid,
    },
    /// The data of a page of this node are lost, with its frame: the frame's memory was taken back.
    Lost {
        /// Page without data.
        uid: Uid,
    },
    /// Under `exact`: node with the oldest frame of the cluster now ([`super::pages::Pages::oldest_age_ms`]).
    Oldest(Option<NodeId>),
}

/// Origin of a page that a program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// Local pages of the node itself.
    Local,
    /// Global pages of the node itself.
    OwnGlobal,
    /// Memory of another node.
    Cluster,
    /// Disk or server.
    Source,
}

/// Action that the driver of a node carries out, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Send a message, with the page's data if [`Message::has_data`].
    Send {
        /// Receiver of the message.
        to: NodeId,
        /// Content of the message.
        message: Message,
    },
    /// Read a page from its source, then report [`Event::Loaded`].
    Load {
        /// Page to read.
        uid: Uid,
    },
    /// The program that reads the page continues.
    Ready {
        /// Page that was read.
        uid: Uid,
        /// Origin of the page.
        origin: Origin,
    },
    /// Store the page of the [`Message::PutPage`] just received in a free frame. Without this action, the
    /// page's data are dropped, or belong to a program that waits for them ([`Action::Ready`]).
    Store {
        /// Page that was put to this node.
        uid: Uid,
    },
    /// Free the page's frame. A dirty page has been written before the policy evicts it.
    Drop {
        /// Page without a frame.
        uid: Uid,
    },
}
