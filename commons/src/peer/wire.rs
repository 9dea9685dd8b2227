//! Names and bodies of the messages between members.

use crate::catalog::Hash;
use crate::directory::HolderChange;
use gleaner_policy::global::directory::{Holder, Stamp};
use gleaner_policy::global::message::Message;
use gleaner_policy::global::{NodeId, Uid};
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
/// Kind of a copy that the sender has given away.
pub(super) const KIND_GLOBAL: &str = "global";
/// Header with the generation of the reader's memory and the stamp of its request: `GENERATION.STAMP`.
pub(super) const READER: &str = "gleaner-reader";
/// Header of a request to a host that the directory named as a holder.
pub(super) const FORWARDED: &str = "gleaner-forwarded";
/// Header with the time since an evicted block's last use, in ms.
pub(super) const AGE: &str = "gleaner-age-ms";
/// Header with the number of times that an evicted block may be forwarded (`n-chance`).
pub(super) const CHANCES: &str = "gleaner-chances";
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

/// Value of [`READER`].
pub(super) fn format_reader(reader: Holder) -> String {
    format!("{}.{}", reader.generation, reader.stamp.number())
}

/// Reader `node` with the value of [`READER`].
pub(super) fn parse_reader(node: NodeId, text: &str) -> Option<Holder> {
    let (generation, stamp) = text.split_once('.')?;
    Some(Holder {
        node,
        generation: generation.parse().ok()?,
        stamp: Stamp::of_number(stamp.parse().ok()?),
    })
}

/// Body of `POST /v1/directory` among members with the policies of global memory. Blocks have the first 32
/// hexadecimal digits of their hashes, changes their stamps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NoticeUpdate {
    /// Generation of the sender's memory.
    pub(super) generation: u32,
    /// Blocks that the sender holds.
    pub(super) moved: Vec<(String, u32)>,
    /// Blocks that the sender no longer holds.
    pub(super) gone: Vec<(String, u32)>,
    /// Blocks that no other host holds, as the sender's directory knows.
    pub(super) alone: Vec<String>,
    /// Blocks of which the receiver drops its copy that it holds for others.
    pub(super) discard: Vec<String>,
}

impl NoticeUpdate {
    /// Body with these messages; messages of other kinds are left out.
    pub(super) fn new(generation: u32, messages: &[Message]) -> Self {
        let mut update = Self {
            generation,
            ..Self::default()
        };
        let digits = |uid: &Uid| format!("{:032x}", uid.number());
        for message in messages {
            match message {
                Message::Moved { uid, holder } => {
                    update.moved.push((digits(uid), holder.stamp.number()));
                }
                Message::Gone { uid, holder } => {
                    update.gone.push((digits(uid), holder.stamp.number()));
                }
                Message::Alone { uid } => update.alone.push(digits(uid)),
                Message::Discard { uid } => update.discard.push(digits(uid)),
                _ => {}
            }
        }
        update
    }

    /// Messages of the sender `node`; `None` if there are too many, or one is malformed.
    pub(super) fn messages(&self, node: NodeId) -> Option<Vec<Message>> {
        let count = self.moved.len() + self.gone.len() + self.alone.len() + self.discard.len();
        if count > MOST_CHANGES {
            return None;
        }
        let uid = |digits: &str| {
            let number = hex::is_lower(digits, 32).then(|| u128::from_str_radix(digits, 16));
            number?.ok().map(Uid::shared)
        };
        let holder = |stamp| Holder {
            node,
            generation: self.generation,
            stamp: Stamp::of_number(stamp),
        };
        let mut messages = Vec::with_capacity(count);
        for (digits, stamp) in &self.gone {
            let (uid, holder) = (uid(digits)?, holder(*stamp));
            messages.push(Message::Gone { uid, holder });
        }
        for (digits, stamp) in &self.moved {
            let (uid, holder) = (uid(digits)?, holder(*stamp));
            messages.push(Message::Moved { uid, holder });
        }
        for digits in &self.alone {
            messages.push(Message::Alone { uid: uid(digits)? });
        }
        for digits in &self.discard {
            messages.push(Message::Discard { uid: uid(digits)? });
        }
        Some(messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_keep_their_stamps_and_are_bounded() {
        let holder = Holder {
            node: 5,
            generation: 9,
            stamp: Stamp::default().next(true),
        };
        assert_eq!(parse_reader(5, &format_reader(holder)), Some(holder));
        for wrong in ["", "1", "1.x", "-1.1", "1.4294967296"] {
            assert_eq!(parse_reader(5, wrong), None, "{wrong}");
        }
        let uid = Uid::shared((0xff << 120) | 7);
        let messages = [
            Message::Gone { uid, holder },
            Message::Moved { uid, holder },
            Message::Alone { uid },
            Message::Discard { uid },
        ];
        let update = NoticeUpdate::new(9, &messages);
        let text = serde_json::to_string(&update).unwrap();
        let read: NoticeUpdate = serde_json::from_str(&text).unwrap();
        assert_eq!(read.messages(5).unwrap(), messages);
        let many = NoticeUpdate::new(9, &vec![Message::Alone { uid }; MOST_CHANGES + 1]);
        assert_eq!(many.messages(5), None);
        for digits in ["", "0g", "-0000000000000000000000000000001"] {
            let wrong = NoticeUpdate {
                alone: vec![digits.to_owned()],
                ..NoticeUpdate::default()
            };
            assert_eq!(wrong.messages(5), None, "{digits}");
        }
    }

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
