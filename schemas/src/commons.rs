//! Messages between a member of a commons and a recruiter: one JSON object per WebSocket message (RFC 6455),
//! over one connection that the member opens. Within a [`VERSION`], fields and kinds are only added.
//!
//! The recruiter begins the epochs (`gleaner_policy::global`). Each message has an epoch's number and its
//! initiator, and the higher pair wins: several recruiters may serve one commons.

use crate::lending::Refusal;
use serde::{Deserialize, Serialize};

/// Version of the protocol, sent in every [`Hello`].
pub const VERSION: u32 = 1;

/// Time without messages after which a member is gone, and after which a member receives no weights.
pub const SILENCE_MS: i64 = 30_000;

/// Size of a block, which is the unit of all frames.
pub const BLOCK_BYTES: u64 = 64 << 10;

/// Maximum length of a commons' name.
pub const MOST_NAME_BYTES: usize = 64;

/// Maximum length of a message from a member: a summary with every number at its largest has 1 KiB.
pub const MOST_MEMBER_MESSAGE_BYTES: usize = 4 << 10;

/// Maximum number of members of one commons.
pub const MOST_MEMBERS: usize = 16_384;

/// Maximum length of a message from the recruiter: a list of [`MOST_MEMBERS`] with the longest addresses.
pub const MOST_RECRUITER_MESSAGE_BYTES: usize = 8 << 20;

/// Maximum length of a member's address: a full domain name and a port.
pub const MOST_ADDRESS_BYTES: usize = 262;

/// Message from a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum MemberMessage {
    /// State of the member: sent on connecting, on every change, and every 10 s if nothing else is sent. It
    /// also answers a [`ReportPlease`] that is older than the epoch that the member follows.
    Hello(Hello),
    /// Ages of the member's blocks, which answer a [`ReportPlease`].
    Summary(Summary),
    /// The epoch is over before its time.
    Ended {
        /// Number of the epoch that is over.
        epoch: u64,
    },
    /// A message of a later version.
    #[serde(other)]
    Other,
}

/// State of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the protocol ([`VERSION`]).
    pub version: u32,
    /// Generation of the member's memory; a higher one after each start, and whenever all blocks are lost.
    pub generation: u32,
    /// Address at which other members reach this one, as `HOST:PORT`.
    pub address: String,
    /// Frames that the member lends: its weight under the policy `hash`.
    pub frames: u32,
    /// Highest epoch to which the member has reported; 0 before the first.
    pub epoch: u64,
    /// Initiator of that epoch.
    pub initiator: u32,
}

/// Distribution of a member's frames by age, and its counts since the last summary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of the new epoch.
    pub epoch: u64,
    /// Blocks in each class of ages (`gleaner_policy::global::age`), the youngest class first.
    pub classes: Vec<u32>,
    /// Frames without a block.
    pub free_frames: u32,
    /// Blocks that left the cluster, or took the place of another, by this member's decision.
    pub replaced: u32,
    /// Blocks that the member received from others and stored.
    pub received: u32,
    /// Received blocks whose victim was younger than the minimum age.
    pub stale: u32,
}

/// Message from the recruiter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CommonsMessage {
    /// Request for a summary: an epoch begins.
    ReportPlease(ReportPlease),
    /// Parameters of the epoch.
    Weights(Weights),
    /// Members of the commons: all of them after the member's first [`Hello`], and each change afterwards.
    Members(MembersChange),
    /// Reason why the recruiter ends the connection.
    Refused(Refusal),
    /// A message of a later version.
    #[serde(other)]
    Other,
}

/// Request for a summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportPlease {
    /// Number of the new epoch.
    pub epoch: u64,
    /// Number of the recruiter that begins it.
    pub initiator: u32,
}

/// Parameters of an epoch, for one member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weights {
    /// Number of the epoch.
    pub epoch: u64,
    /// Number of the recruiter that computed the weights.
    pub initiator: u32,
    /// Longest time that the epoch lasts.
    pub length_ms: i64,
    /// Age from which an evicted block is dropped; absent: no age, every evicted block is put.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_age_ms: Option<u64>,
    /// Weight of the receiver of this message, in frames.
    pub own_weight: u64,
    /// True if the receiver ends the epoch when its weight is used up.
    pub is_counter: bool,
    /// Other members with their weights.
    pub targets: Vec<(u32, u64)>,
    /// Quota of the receiver's host, of which a quarter stays free for other clients; absent: its memory
    /// server is not linked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_bytes: Option<u64>,
}

/// Change of the list of members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MembersChange {
    /// True if `present` is the whole list.
    pub is_complete: bool,
    /// Members that are new, or whose state has changed.
    pub present: Vec<CommonsMember>,
    /// Numbers of the members that are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<u32>,
}

/// Member of a commons, as other members need it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CommonsMember {
    /// Number of the member, which follows from the host's id.
    pub node: u32,
    /// Id of the host: the name on its certificate.
    pub host_id: String,
    /// Generation of the member's memory.
    pub generation: u32,
    /// Frames that the member lends.
    pub frames: u32,
    /// Address at which the member is reached, as `HOST:PORT`.
    pub address: String,
}

/// State of one commons at a recruiter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CommonsView {
    /// Name of the commons.
    pub name: String,
    /// Number of the newest epoch; 0 before the first.
    pub epoch: u64,
    /// True if this recruiter began that epoch; false: another recruiter did.
    pub is_initiator: bool,
    /// Time since the weights of that epoch were sent; absent: none were sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights_age_ms: Option<i64>,
    /// Age from which an evicted block is dropped; absent: no age, or no weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_age_ms: Option<u64>,
    /// Sum of all weights, in frames.
    pub weights_sum: u64,
    /// Members, sorted by their hosts' ids.
    pub members: Vec<MemberView>,
}

/// Member of a commons, as a recruiter knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MemberView {
    /// The member itself.
    #[serde(flatten)]
    pub member: CommonsMember,
    /// Weight in the newest epoch, in frames.
    pub weight: u64,
    /// Largest weight that the member may have, in frames.
    pub weight_limit: u64,
    /// Time since the member's last message.
    pub last_message_age_ms: i64,
}

/// Returns true if `name` may name a commons: 1 to [`MOST_NAME_BYTES`] letters, digits and `._-`, not
/// beginning with a dot.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    (1..=MOST_NAME_BYTES).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(allowed)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    #[test]
    fn names_have_few_characters_and_no_path() {
        for name in ["toolchains", "a", "x_1.0-b"] {
            assert!(is_name(name), "{name}");
        }
        let long = "a".repeat(MOST_NAME_BYTES + 1);
        for name in ["", ".", "..", "a/b", "é", "a b", &long] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn messages_of_later_versions_are_read_as_other() {
        let later = json!({"type": "later", "x": 1});
        assert_eq!(
            from_value::<MemberMessage>(later.clone()).unwrap(),
            MemberMessage::Other
        );
        assert_eq!(
            from_value::<CommonsMessage>(later).unwrap(),
            CommonsMessage::Other
        );
    }

    #[test]
    fn frames_beyond_32_bits_are_no_summary() {
        let summary = |free: u64| {
            json!({"type": "summary", "epoch": 1, "classes": [], "free_frames": free,
                "replaced": 0, "received": 0, "stale": 0})
        };
        assert!(from_value::<MemberMessage>(summary(u64::from(u32::MAX))).is_ok());
        assert!(from_value::<MemberMessage>(summary(1 << 63)).is_err());
    }

    #[test]
    fn the_largest_summary_is_within_the_limit_of_a_message() {
        let largest = MemberMessage::Summary(Summary {
            epoch: u64::MAX,
            classes: vec![u32::MAX; 70],
            free_frames: u32::MAX,
            replaced: u32::MAX,
            received: u32::MAX,
            stale: u32::MAX,
        });
        let bytes = serde_json::to_string(&largest).unwrap().len();
        assert!(bytes * 2 < MOST_MEMBER_MESSAGE_BYTES, "{bytes}");
    }
}
