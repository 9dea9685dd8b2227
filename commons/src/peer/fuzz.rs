//! Decoder of the members' messages as a function of arbitrary bytes, for the fuzzer and for replaying its
//! findings.

use super::wire::{DirectoryUpdate, NoticeUpdate};
use crate::directory::{HolderChange, HomeDirectory};
use gleaner_policy::global::message::Message;
use std::time::Duration;

/// Member that sends the message.
const SENDER: u32 = 1;

/// Decodes an update of the directory, as its receiver does, and enters its changes. Returns the changes twice:
/// as decoded, and after they were written and decoded again; `None` if the receiver rejects the message.
#[must_use]
pub fn directory_update(bytes: &[u8]) -> Option<[Vec<HolderChange>; 2]> {
    let update: DirectoryUpdate = serde_json::from_slice(bytes).ok()?;
    let changes = update.changes()?;
    let directory = HomeDirectory::new(2, Duration::from_millis(500));
    directory.enter(SENDER, update.generation, &changes);
    let written = serde_json::to_vec(&DirectoryUpdate::new(update.generation, &changes)).ok()?;
    let again: DirectoryUpdate = serde_json::from_slice(&written).ok()?;
    Some([changes, again.changes()?])
}

/// Decodes an update of the directory among members with a recruiter, as its receiver does. Returns its messages
/// twice: as decoded, and after they were written and decoded again; `None` if the receiver rejects the message.
#[must_use]
pub fn directory_notices(bytes: &[u8]) -> Option<[Vec<Message>; 2]> {
    let update: NoticeUpdate = serde_json::from_slice(bytes).ok()?;
    let messages = update.messages(SENDER)?;
    let written = serde_json::to_vec(&NoticeUpdate::new(update.generation, &messages)).ok()?;
    let again: NoticeUpdate = serde_json::from_slice(&written).ok()?;
    Some([messages, again.messages(SENDER)?])
}
