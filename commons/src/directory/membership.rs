//! Members of a commons, and the home of each block.

use super::uid;
use crate::catalog::Hash;
use gleaner_policy::global::members::{self, Members};
use gleaner_policy::global::{NodeId, node_of_host};
use gleaner_schemas::commons::CommonsMember;
use gleaner_trust::{Address, hex};
use std::fmt;
use std::str::FromStr;

/// Number of lower-case hexadecimal digits of a host id.
const HOST_ID_DIGITS: usize = 32;

/// A member as a configuration names it: `HOST_ID@HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberAddress {
    /// Id of the host, which its certificate must have.
    pub host_id: String,
    /// Host name or address, and port.
    pub address: String,
}

/// Reason why a list of members is unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MembershipError {
    /// The text is not an id and an address.
    #[error(
        "{0:?} is no member: write it like HOST_ID@ws1.example:7445, with the id that `gleaner-agent status` shows"
    )]
    Malformed(String),
    /// Two members have the same id, or ids that begin alike.
    #[error("{0} is there twice, or begins like another host's id: each host needs its own")]
    Repeated(String),
    /// The list lacks this host.
    #[error(
        "this host ({0}) is not among the members: all hosts have the same list, with themselves in it"
    )]
    WithoutThisHost(String),
}

impl FromStr for MemberAddress {
    type Err = MembershipError;

    fn from_str(text: &str) -> Result<Self, MembershipError> {
        let parsed = || {
            let (host_id, address) = text.split_once('@')?;
            let (host, port) = address.rsplit_once(':')?;
            let port: u16 = port.parse().ok()?;
            let is_host = !host.is_empty() && !host.contains(['/', '@', ' ', '?', '#']);
            (hex::is_lower(host_id, HOST_ID_DIGITS) && is_host && port > 0).then(|| Self {
                host_id: host_id.to_owned(),
                address: address.to_owned(),
            })
        };
        parsed().ok_or_else(|| MembershipError::Malformed(text.to_owned()))
    }
}

impl fmt::Display for MemberAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.host_id, self.address)
    }
}

/// Source of the list of members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MembershipSource {
    /// A fixed list, the same in the configuration of every member.
    Fixed(Vec<MemberAddress>),
    /// Links to these recruiters, which send the list and its changes.
    Recruiters(Vec<Address>),
}

impl MembershipSource {
    /// Members that the configuration names.
    #[must_use]
    pub fn members(&self) -> &[MemberAddress] {
        match self {
            Self::Fixed(members) => members,
            Self::Recruiters(_) => &[],
        }
    }

    /// Recruiters that send the list of members.
    #[must_use]
    pub fn recruiters(&self) -> &[Address] {
        match self {
            Self::Fixed(_) => &[],
            Self::Recruiters(recruiters) => recruiters,
        }
    }
}

/// Host that belongs to the commons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Number of the member, which follows from its id.
    pub node: NodeId,
    /// Id of the host.
    pub host_id: String,
    /// Host name or address, and port.
    pub address: String,
}

/// Members with the homes of their blocks, as one of the members sees them.
#[derive(Clone, Debug)]
pub struct Membership {
    members: Vec<Member>,
    homes: Members,
    own: NodeId,
}

impl Membership {
    /// Computes the homes for a list of members, on the host `own_id`. All hosts with the same list have the
    /// same homes.
    ///
    /// # Errors
    /// [`MembershipError::Repeated`], [`MembershipError::WithoutThisHost`].
    pub fn new(source: &MembershipSource, own_id: &str) -> Result<Self, MembershipError> {
        let mut members: Vec<Member> = source
            .members()
            .iter()
            .map(|member| Member {
                node: node_of_host(&member.host_id),
                host_id: member.host_id.clone(),
                address: member.address.clone(),
            })
            .collect();
        members.sort_unstable_by_key(|member| member.node);
        let repeated = members.windows(2).find(|two| two[0].node == two[1].node);
        if let Some(two) = repeated {
            return Err(MembershipError::Repeated(two[0].host_id.clone()));
        }
        let own = node_of_host(own_id);
        if !members.iter().any(|member| member.host_id == own_id) {
            return Err(MembershipError::WithoutThisHost(own_id.to_owned()));
        }
        // A fixed list says nothing of the hosts' memory, so all have the same weight.
        let equal = |member: &Member| members::Member {
            node: member.node,
            generation: 0,
            frames: 1,
        };
        Ok(Self {
            homes: Members::new(members.iter().map(equal).collect(), 1),
            members,
            own,
        })
    }

    /// Members as recruiters list them, on the host `own_id`. They have no homes here: the node of global memory
    /// computes the place of each block. Entries whose number does not follow from the id are left out.
    #[must_use]
    pub fn of_recruiters(listed: &[CommonsMember], own_id: &str) -> Self {
        let proper = listed
            .iter()
            .filter(|entry| entry.node == node_of_host(&entry.host_id));
        let mut members: Vec<Member> = proper
            .map(|entry| Member {
                node: entry.node,
                host_id: entry.host_id.clone(),
                address: entry.address.clone(),
            })
            .collect();
        members.sort_unstable_by_key(|member| member.node);
        members.dedup_by_key(|member| member.node);
        Self {
            members,
            homes: Members::default(),
            own: node_of_host(own_id),
        }
    }

    /// Number of this host.
    #[must_use]
    pub const fn own(&self) -> NodeId {
        self.own
    }

    /// All members, by number.
    #[must_use]
    pub fn list(&self) -> &[Member] {
        &self.members
    }

    /// Member that keeps a copy of the block for the others.
    #[must_use]
    pub fn home(&self, hash: &Hash) -> Option<NodeId> {
        self.homes.homes(uid(hash)).first().copied()
    }

    /// Member of this number.
    #[must_use]
    pub fn member(&self, node: NodeId) -> Option<&Member> {
        let at = self.members.binary_search_by_key(&node, |m| m.node).ok()?;
        self.members.get(at)
    }

    /// Member with this host id.
    #[must_use]
    pub fn of_host(&self, host_id: &str) -> Option<&Member> {
        let member = self.member(node_of_host(host_id))?;
        (member.host_id == host_id).then_some(member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u32) -> String {
        let hash = blake3::hash(&number.to_le_bytes());
        hex::encode(&hash.as_bytes()[..16])
    }

    fn fixed(numbers: impl Iterator<Item = u32>) -> MembershipSource {
        let member = |n| format!("{}@127.0.0.1:{}", id(n), 7000 + n).parse().unwrap();
        MembershipSource::Fixed(numbers.map(member).collect())
    }

    #[test]
    fn hosts_with_the_same_list_agree_on_homes_and_shares_are_even() {
        let one = Membership::new(&fixed(0..4), &id(0)).unwrap();
        let other = Membership::new(&fixed((0..4).rev()), &id(3)).unwrap();
        let mut shares = [0; 4];
        for number in 0..4000_u32 {
            let hash = blake3::hash(&number.to_le_bytes()).into();
            let home = one.home(&hash).unwrap();
            assert_eq!(other.home(&hash), Some(home));
            let at = one.list().iter().position(|m| m.node == home).unwrap();
            shares[at] += 1;
        }
        assert!(shares.iter().all(|n| (700..1300).contains(n)), "{shares:?}");
        assert_eq!(one.of_host(&id(2)).unwrap().address, "127.0.0.1:7002");
        assert_eq!(one.of_host(&id(9)), None);
    }

    #[test]
    fn members_are_ids_and_addresses() {
        let text = format!("{}@[::1]:7445", id(1));
        let member: MemberAddress = text.parse().unwrap();
        assert_eq!(
            (member.address.as_str(), member.to_string()),
            ("[::1]:7445", text)
        );
        for wrong in ["", "ws1:7445", "x@ws1:7445"] {
            assert!(wrong.parse::<MemberAddress>().is_err(), "{wrong}");
        }
        for rest in [
            "ws1",
            ":7445",
            "ws1:0",
            "ws1:x",
            "ws1/a:7445",
            "me@ws1:7445",
        ] {
            assert!(
                format!("{}@{rest}", id(1))
                    .parse::<MemberAddress>()
                    .is_err(),
                "{rest}"
            );
        }
        let twice = fixed([1, 1].into_iter());
        let twice = Membership::new(&twice, &id(1)).unwrap_err();
        assert_eq!(twice, MembershipError::Repeated(id(1)));
        let alien = Membership::new(&fixed(0..2), &id(5)).unwrap_err();
        assert_eq!(alien, MembershipError::WithoutThisHost(id(5)));
    }
}
