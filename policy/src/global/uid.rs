//! Identifiers of pages, and the hash that spreads them.

/// Number of a node of the cluster.
pub type NodeId = u32;

/// Number of the node on a host: a hash of the host's id (32 hex digits), so that all members and masters
/// of a cluster give it the same number. Texts that are no id have one number.
#[must_use]
pub fn node_of_host(host_id: &str) -> NodeId {
    let id = u128::from_str_radix(host_id, 16).unwrap_or_default();
    (Uid::shared(id).hash() >> 32) as NodeId
}

/// Marks the identifier of a page that only one node uses. A hash of a block begins like this once in 2³²
/// blocks; the block's directory entry then lies on another node, which is the same one for all readers.
const PRIVATE: u64 = 0xFFFF_FFFF;

/// Identifier of a page in the whole cluster, 128 bits (GMS, section 4.1). For a sealed block these are the
/// first 16 bytes of its hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid {
    high: u64,
    low: u64,
}

impl Uid {
    /// Identifier of a page that several nodes may read.
    #[must_use]
    pub const fn shared(number: u128) -> Self {
        Self {
            high: (number >> 64) as u64,
            low: number as u64,
        }
    }

    /// Identifier of a page that only `node` uses. Its directory entry lies on `node`.
    #[must_use]
    pub const fn private(node: NodeId, number: u64) -> Self {
        Self {
            high: (PRIVATE << 32) | node as u64,
            low: number,
        }
    }

    /// Number of the identifier, as messages have it; of a shared page, the argument of [`Uid::shared`].
    #[must_use]
    pub const fn number(self) -> u128 {
        ((self.high as u128) << 64) | self.low as u128
    }

    /// The only node that uses the page, or `None` if the page may be shared.
    #[must_use]
    pub const fn user(self) -> Option<NodeId> {
        if self.high >> 32 == PRIVATE {
            Some(self.high as u32)
        } else {
            None
        }
    }

    /// Hash of the identifier; every bit depends on every bit of the identifier.
    #[must_use]
    #[inline]
    pub const fn hash(self) -> u64 {
        mix(mix(self.high) ^ self.low)
    }
}

/// Finalizer of SplitMix64 (Steele et al., OOPSLA 2014), after one addition.
#[must_use]
#[inline]
pub(super) const fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Random number below `count`; probabilities differ from uniform by less than `count` of 2⁶⁴.
#[must_use]
pub(super) fn below(count: u64, random_number: u64) -> u64 {
    ((u128::from(random_number) * u128::from(count)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_pages_name_their_node() {
        assert_eq!(Uid::private(7, 9).user(), Some(7));
        assert_eq!(Uid::shared(9).user(), None);
        assert_eq!(Uid::shared((9 << 64) | 7).number(), (9 << 64) | 7);
        assert_ne!(Uid::private(7, 9).hash(), Uid::private(8, 9).hash());
        assert_eq!(Uid::shared(u128::MAX >> 32).user(), None);
    }
}
