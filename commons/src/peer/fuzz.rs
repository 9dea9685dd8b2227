//! Decoder of the members' messages as a function of arbitrary bytes, for the fuzzer and for replaying its
//! findings.

use super::wire::DirectoryUpdate;
use crate::directory::{HolderChange, HomeDirectory};
use std::time::Duration;

/// Member that sends the message.
const SENDER: u32 = 1;

/// Decodes an update of the directory, as its receiver does, and enters its changes. Returns the changes twice:
/// as decoded, and after they were written and decoded again; `None` if the receiver rejects the message.
#[must_use]
pub fn directory_update(bytes: &[u8]) -> Option<[Vec<HolderChange>; 2]> {
    let update: DirectoryUpdate = serde_json::from_slice(bytes).ok()?;
    let changes = update.changes()?;
    let directory = HomeDirectory::new(Duration::from_millis(500));
    directory.enter(SENDER, update.generation, &changes);
    let written = serde_json::to_vec(&DirectoryUpdate::new(update.generation, &changes)).ok()?;
    let again: DirectoryUpdate = serde_json::from_slice(&written).ok()?;
    Some([changes, again.changes()?])
}
