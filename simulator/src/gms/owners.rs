//! Owners: a node's idle frames change while the simulation runs.

use super::recorded::PAGE_BYTES;
use crate::event::MS;
use crate::hosts::Timeline;
use gleaner_schemas::lending::Mode;
use serde::{Deserialize, Serialize};

/// Change of a node's idle frames, because its owner returns or leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnerChange {
    /// Node with idle memory, from 0.
    pub node: u32,
    /// Time of the change, in ms since the simulation's begin.
    pub at_ms: u64,
    /// Idle frames of the node from then on.
    pub frames: u32,
}

/// Changes of recorded hosts, for frames of 8 KiB: host i is the node i with idle memory. Its frames are the memory
/// that it may lend in this mode, at most `most_frames`. A host that is in use, or that nobody has seen, has only
/// what the mode spares.
#[must_use]
pub fn owner_changes(hosts: &[Timeline], mode: Mode, most_frames: u32) -> Vec<OwnerChange> {
    let of_host = |(node, host): (u32, &Timeline)| {
        let changes = host.changes.iter().map(move |change| {
            let bytes = change.lent_bytes(mode);
            let frames = u32::try_from(bytes / u64::from(PAGE_BYTES)).unwrap_or(u32::MAX);
            OwnerChange {
                node,
                at_ms: change.at_ns / MS,
                frames: frames.min(most_frames),
            }
        });
        changes.collect::<Vec<OwnerChange>>()
    };
    (0..).zip(hosts).flat_map(of_host).collect()
}
