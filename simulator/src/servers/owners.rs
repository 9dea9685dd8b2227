//! Owners: a server's room changes while the simulation runs.

use super::PAGE_BYTES;
use crate::event::MS;
use crate::hosts::Timeline;
use gleaner_schemas::lending::Mode;
use serde::{Deserialize, Serialize};

/// Change of a server's room, because its owner returns or leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoomChange {
    /// Number of the server, from 0.
    pub server: u32,
    /// Time of the change, in ms since the simulation's begin.
    pub at_ms: u64,
    /// Pages that fit from then on; 0: the server is dormant.
    pub pages: u32,
}

/// Changes of recorded hosts: host i is the server i. Its room is the memory that it may lend in this mode,
/// at most `most_pages`. A host that is in use, or that nobody has seen, has only what the mode spares; before
/// its first sample, nobody has seen it.
#[must_use]
pub fn room_changes(hosts: &[Timeline], mode: Mode, most_pages: u32) -> Vec<RoomChange> {
    let of_host = |(server, host): (u32, &Timeline)| {
        let change = |at_ns: u64, bytes: u64| {
            let pages = u32::try_from(bytes / PAGE_BYTES).unwrap_or(u32::MAX);
            RoomChange {
                server,
                at_ms: at_ns / MS,
                pages: pages.min(most_pages),
            }
        };
        let is_seen = host.changes.first().is_some_and(|first| first.at_ns == 0);
        let unseen = (!is_seen).then(|| change(0, 0));
        let seen = host.changes.iter();
        let seen = seen.map(|seen| change(seen.at_ns, seen.lent_bytes(mode)));
        let mut changes: Vec<RoomChange> = unseen.into_iter().chain(seen).collect();
        changes.dedup_by_key(|change| change.pages);
        changes
    };
    (0..).zip(hosts).flat_map(of_host).collect()
}
