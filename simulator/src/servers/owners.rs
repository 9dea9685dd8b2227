//! Owners: a server's room changes while the simulation runs.

use super::PAGE_BYTES;
use crate::event::MS;
use crate::hosts::{Presence, Timeline};
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
/// at most `most_pages`. A host that is in use, or that nobody has seen, has only what the mode spares.
#[must_use]
pub fn room_changes(hosts: &[Timeline], mode: Mode, most_pages: u32) -> Vec<RoomChange> {
    let of_host = |(server, host): (u32, &Timeline)| {
        let changes = host.changes.iter().map(move |change| {
            let is_lent = match change.presence {
                Presence::Idle => true,
                Presence::InUse => mode == Mode::Spare,
                Presence::Unseen => false,
            };
            let bytes = if is_lent {
                change.quotas.bytes(mode)
            } else {
                0
            };
            let pages = u32::try_from(bytes / PAGE_BYTES).unwrap_or(u32::MAX);
            RoomChange {
                server,
                at_ms: change.at_ns / MS,
                pages: pages.min(most_pages),
            }
        });
        changes.collect::<Vec<RoomChange>>()
    };
    (0..).zip(hosts).flat_map(of_host).collect()
}
