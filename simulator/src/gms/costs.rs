//! Costs of operations: the paper's Tables 1 to 5 (DEC 3000 workstations, 225 MHz, on ATM of 155 Mb/s).

use gleaner_policy::global::Uid;
use gleaner_policy::global::cost::{GetPageCost, MESSAGE_NS, PAGE_NS, PUT_NS};
use gleaner_policy::global::message::{Action, Event, Message};
use gleaner_policy::global::settings::MemoryPolicy;
use serde::{Deserialize, Serialize};

/// Requester's work before a private miss: only the own directory is asked (Table 1).
const PRIVATE_MISS_REQUEST_NS: u64 = 7_000;
/// Directory's work for a shared miss (Table 1).
const SHARED_MISS_DIRECTORY_NS: u64 = 59_000;
/// Requester's work with the answer to a shared miss (Table 1).
const MISS_RECEIPT_NS: u64 = 5_000;

/// Costs in nanoseconds. A part of a getpage that is not listed here is in
/// [`gleaner_policy::global::cost`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Costs {
    /// One way of a small message.
    pub message_ns: u64,
    /// One way of a page that was requested.
    pub page_ns: u64,
    /// One way of a page that is put.
    pub put_ns: u64,
    /// Part of a page's way during which it occupies the sender's and the receiver's link: 171 cells of 53
    /// bytes at 155 Mb/s.
    pub link_ns: u64,
    /// Sender's work for a put of a private page (Table 2).
    pub put_private_ns: u64,
    /// Sender's work for a put of a shared page (Table 2).
    pub put_shared_ns: u64,
    /// Receiver's work for a put of a private page (Table 2).
    pub put_target_private_ns: u64,
    /// Receiver's work for a put of a shared page (Table 2).
    pub put_target_shared_ns: u64,
    /// Directory's work for a changed holder of a private page (Table 2).
    pub directory_private_ns: u64,
    /// Directory's work for a changed holder of a shared page (Table 2).
    pub directory_shared_ns: u64,
    /// Time from the sender's work for a put until its frame is free (section 5.1).
    pub frame_ns: u64,
    /// Work of a node per page that it serves or stores for others, after the page has left or arrived.
    /// Calibrated: 194 µs of Figure 13, less the mean of a target's 80 and 178 µs.
    pub serving_ns: u64,
    /// Fault of a private page besides the parts of Tables 1 and 2. Calibrated: Table 3.
    pub private_fault_ns: u64,
    /// Fault of a shared page besides the parts of Tables 1 and 2. Calibrated: Table 4.
    pub shared_fault_ns: u64,
    /// Access to a page on disk that follows the page before (Table 3).
    pub disk_sequential_ns: u64,
    /// Access to another page on disk (Table 3).
    pub disk_random_ns: u64,
    /// Access to a page of an NFS server's disk that follows the page before (Table 4).
    pub nfs_sequential_ns: u64,
    /// Access to another page of an NFS server's disk (Table 4).
    pub nfs_random_ns: u64,
    /// Initiator's work per node when it asks for summaries (Table 5).
    pub summary_request_ns: u64,
    /// Work of a summary per local page (section 5.2).
    pub summary_local_page_ns: u64,
    /// Work of a summary per global page (section 5.2).
    pub summary_global_page_ns: u64,
    /// Initiator's work per node when it sends weights (Table 5).
    pub weights_ns: u64,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            message_ns: MESSAGE_NS,
            page_ns: PAGE_NS,
            put_ns: PUT_NS,
            link_ns: 468_000,
            put_private_ns: 58_000,
            put_shared_ns: 102_000,
            put_target_private_ns: 178_000,
            put_target_shared_ns: 181_000,
            directory_private_ns: 7_000,
            directory_shared_ns: 12_000,
            frame_ns: 300_000,
            serving_ns: 65_000,
            private_fault_ns: 295_000,
            shared_fault_ns: 100_000,
            disk_sequential_ns: 3_600_000,
            disk_random_ns: 14_300_000,
            nfs_sequential_ns: 4_800_000,
            nfs_random_ns: 16_700_000,
            summary_request_ns: 78_000,
            summary_local_page_ns: 290,
            summary_global_page_ns: 540,
            weights_ns: 45_000,
        }
    }
}

/// Parts of a getpage of this page.
fn getpage(uid: Uid) -> &'static GetPageCost {
    if uid.user().is_some() {
        &GetPageCost::PRIVATE
    } else {
        &GetPageCost::SHARED
    }
}

/// Returns true if the node sends a message of that kind.
fn sends(actions: &[Action], is_kind: impl Fn(&Message) -> bool) -> bool {
    let is_sent =
        |action: &Action| matches!(action, Action::Send { message, .. } if is_kind(message));
    actions.iter().any(is_sent)
}

impl Costs {
    /// CPU time of a node for an event, up to the first action. Puts are extra ([`Costs::sending_ns`]).
    pub(super) fn handling_ns(
        &self,
        event: &Event,
        actions: &[Action],
        policy: MemoryPolicy,
    ) -> u64 {
        match event {
            Event::Read { uid } => self.reading_ns(*uid, actions, policy),
            Event::Message { message, .. } => self.receiving_ns(message, actions),
            Event::Loaded { .. }
            | Event::Tick
            | Event::Members(_)
            | Event::Frames(_)
            | Event::Freed { .. }
            | Event::Failed { .. }
            | Event::Lost { .. }
            | Event::Oldest(_) => 0,
        }
    }

    /// CPU time of a read that is not answered by the node's local pages.
    fn reading_ns(&self, uid: Uid, actions: &[Action], policy: MemoryPolicy) -> u64 {
        if policy == MemoryPolicy::None {
            return 0;
        }
        let cost = getpage(uid);
        let is_private = uid.user().is_some();
        if actions
            .iter()
            .any(|action| matches!(action, Action::Ready { .. }))
        {
            return self.fault_ns(uid); // a global page of the node itself
        }
        if actions
            .iter()
            .any(|action| matches!(action, Action::Load { .. }))
        {
            return match is_private {
                true => PRIVATE_MISS_REQUEST_NS + cost.directory_ns,
                false => cost.request_ns + SHARED_MISS_DIRECTORY_NS,
            };
        }
        let has_own_directory = sends(actions, |message| {
            matches!(message, Message::Forward { .. })
        });
        cost.request_ns
            + if has_own_directory {
                cost.directory_ns
            } else {
                0
            }
    }

    fn receiving_ns(&self, message: &Message, actions: &[Action]) -> u64 {
        let has_page = sends(actions, |message| matches!(message, Message::Page { .. }));
        let is_missed = sends(actions, |message| matches!(message, Message::Miss { .. }));
        match message {
            Message::GetPage { uid, .. } => {
                let cost = getpage(*uid);
                let directory_ns = match is_missed {
                    true => SHARED_MISS_DIRECTORY_NS,
                    false => cost.directory_ns,
                };
                directory_ns + if has_page { cost.target_ns } else { 0 }
            }
            Message::Forward { uid, .. } => getpage(*uid).target_ns,
            Message::Page { uid, .. } => getpage(*uid).receipt_ns + self.fault_ns(*uid),
            Message::Miss { .. } | Message::Alone { .. } | Message::Discard { .. } => {
                MISS_RECEIPT_NS
            }
            Message::PutPage { uid, .. } => match uid.user() {
                Some(_) => self.put_target_private_ns,
                None => self.put_target_shared_ns,
            },
            Message::Moved { uid, .. } | Message::Gone { uid, .. } => match uid.user() {
                Some(_) => self.directory_private_ns,
                None => self.directory_shared_ns,
            },
            Message::ReportPlease { .. }
            | Message::Summary { .. }
            | Message::Weights(_)
            | Message::Ended { .. } => 0,
        }
    }

    /// CPU time of a node after it has served a page to another node, or stored another node's page.
    pub(super) fn serving_ns(&self, event: &Event, actions: &[Action]) -> u64 {
        let is_put = matches!(
            event,
            Event::Message {
                message: Message::PutPage { .. },
                ..
            }
        );
        let has_page = sends(actions, |message| matches!(message, Message::Page { .. }));
        if is_put || has_page {
            self.serving_ns
        } else {
            0
        }
    }

    /// CPU time of a sender, in addition to the event that caused the message. Only puts have one.
    pub(super) fn sending_ns(&self, message: &Message) -> u64 {
        match message {
            Message::PutPage { uid, .. } => match uid.user() {
                Some(_) => self.put_private_ns + self.directory_private_ns,
                None => self.put_shared_ns,
            },
            _ => 0,
        }
    }

    /// CPU time of an epoch's message on its sender. This work delays programs, not messages.
    pub(super) fn epoch_ns(&self, message: &Message, local_pages: u32, global_pages: u32) -> u64 {
        match message {
            Message::ReportPlease { .. } => self.summary_request_ns,
            Message::Summary { .. } => {
                u64::from(local_pages) * self.summary_local_page_ns
                    + u64::from(global_pages) * self.summary_global_page_ns
            }
            Message::Weights(_) => self.weights_ns,
            _ => 0,
        }
    }

    /// Time of a message on the network, if the links are unoccupied.
    pub(super) fn network_ns(&self, message: &Message) -> u64 {
        match message {
            Message::Page { .. } => self.page_ns,
            Message::PutPage { .. } => self.put_ns,
            _ => self.message_ns,
        }
    }

    /// Fault of a page that another node sends, besides the parts of the tables.
    const fn fault_ns(&self, uid: Uid) -> u64 {
        match uid.user() {
            Some(_) => self.private_fault_ns,
            None => self.shared_fault_ns,
        }
    }

    /// Time of an access to a page's source.
    #[must_use]
    pub const fn source_ns(&self, is_file: bool, is_sequential: bool) -> u64 {
        match (is_file, is_sequential) {
            (false, true) => self.disk_sequential_ns,
            (false, false) => self.disk_random_ns,
            (true, true) => self.nfs_sequential_ns,
            (true, false) => self.nfs_random_ns,
        }
    }

    /// Parts of a private page's miss, in the order of Table 1: request, directory.
    #[must_use]
    pub const fn private_miss() -> [u64; 2] {
        [PRIVATE_MISS_REQUEST_NS, GetPageCost::PRIVATE.directory_ns]
    }

    /// Parts of a shared page's miss, in the order of Table 1: request, receipt, directory, network.
    #[must_use]
    pub const fn shared_miss(&self) -> [u64; 4] {
        [
            GetPageCost::SHARED.request_ns,
            MISS_RECEIPT_NS,
            SHARED_MISS_DIRECTORY_NS,
            2 * self.message_ns,
        ]
    }

    /// Sender's latency of a put (Table 2): the work before the sender continues.
    #[must_use]
    pub const fn put_latency_ns(&self, is_private: bool) -> u64 {
        match is_private {
            true => self.put_private_ns + self.directory_private_ns,
            false => self.put_shared_ns,
        }
    }

    /// Access of a program to a private page in another node's memory, with the put that makes room (Table 3).
    #[must_use]
    pub const fn private_access_ns(&self) -> u64 {
        let put_ns = self.put_latency_ns(true) + self.frame_ns;
        GetPageCost::PRIVATE.total_ns() + self.private_fault_ns + put_ns
    }

    /// Access of a program to a shared page in another node's memory (Table 4). If the page that makes room is a
    /// duplicate, it is dropped without a put.
    #[must_use]
    pub const fn shared_access_ns(&self, drops_duplicate: bool) -> u64 {
        let put_ns = match drops_duplicate {
            true => 0,
            false => self.put_latency_ns(false) + self.frame_ns,
        };
        GetPageCost::SHARED.total_ns() + self.shared_fault_ns + put_ns
    }

    /// CPU time of a node per page that it serves or stores for others: mean of both (Figure 13).
    #[must_use]
    pub const fn operation_ns(&self) -> u64 {
        self.serving_ns + (GetPageCost::PRIVATE.target_ns + self.put_target_private_ns) / 2
    }
}
