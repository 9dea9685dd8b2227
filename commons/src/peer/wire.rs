//! Names and bodies of the messages between members.

use crate::catalog::Hash;
use crate::directory::HolderChange;
use gleaner_trust::hex;
use serde::{Deserialize, Serialize};

/// Header with the name of the sender's commons.
pub(super) const COMMONS: &str = "gleaner-commons";
/// Header by which a reader asks the home to wait for a fetch that is under way.
pub(super) const WAIT: &str = "gleaner-wait";
/// Header with the kind of the sender's copy: `local` if the sender keeps it.
pub(super) const KIND: &str = "gleaner-kind";
/// Kind of a copy that the sender keeps.
pub(super) const KIND_LOCAL: &str = "local";
/// Most changes in one update of a directory.
pub(super) const MOST_CHANGES: usize = 1024;

/// Path of a block.
pub(super) fn block_path(hash: &Hash) -> String {
    format!("/v1/blocks/{}", hex::encode(hash))
}

/// Hash in hexadecimal digits.
pub(super) fn parse_hash(digits: &str) -> Option<Hash> {
    hex::decode(digits)?.try_into().ok()
}

/// Body of `POST /v1/directory`: changes of the sender's blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DirectoryUpdate {
    /// Generation of the sender's memory; a new one voids all earlier entries of the sender.
    pub(super) generation: u32,
    /// Hashes of blocks that the sender holds now.
    #[serde(default)]
    pub(super) moved: Vec<String>,
    /// Hashes of blocks that the sender no longer holds.
    #[serde(default)]
    pub(super) gone: Vec<String>,
}

impl DirectoryUpdate {
    /// Message for these changes. A block must not occur twice.
    pub(super) fn new(generation: u32, changes: &[HolderChange]) -> Self {
        let hashes = |is_held: bool| {
            let chosen = changes.iter().filter(move |c| c.is_held == is_held);
            chosen.map(|change| hex::encode(&change.hash)).collect()
        };
        Self {
            generation,
            moved: hashes(true),
            gone: hashes(false),
        }
    }

    /// Changes in the message; `None` if there are too many, or one is malformed.
    pub(super) fn changes(&self) -> Option<Vec<HolderChange>> {
        if self.moved.len() + self.gone.len() > MOST_CHANGES {
            return None;
        }
        let of = |hashes: &[String], is_held| -> Option<Vec<HolderChange>> {
            let change =
                |digits: &String| parse_hash(digits).map(|hash| HolderChange { hash, is_held });
            hashes.iter().map(change).collect()
        };
        let mut changes = of(&self.gone, false)?;
        changes.extend(of(&self.moved, true)?);
        Some(changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_are_bounded_and_whole() {
        let change = |n: u8, is_held| HolderChange {
            hash: [n; 32],
            is_held,
        };
        let changes = [change(1, false), change(2, true)];
        let update = DirectoryUpdate::new(7, &changes);
        let text = serde_json::to_string(&update).unwrap();
        let read: DirectoryUpdate = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (read.generation, read.changes().unwrap()),
            (7, changes.to_vec())
        );
        let many = DirectoryUpdate::new(7, &vec![change(1, true); MOST_CHANGES + 1]);
        assert_eq!(many.changes(), None);
        let wrong = DirectoryUpdate {
            moved: vec!["0g".to_owned()],
            ..update
        };
        assert_eq!(wrong.changes(), None);
    }
}
