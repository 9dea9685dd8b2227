//! Policies of global memory, and their settings.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Rule by which pages are placed in the cluster's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryPolicy {
    /// Global memory management with epochs (Feeley et al., SOSP 1995, section 3.2).
    #[default]
    Gms,
    /// The same with full knowledge of all ages (section 3.1): each fault replaces the cluster's oldest page.
    /// Only a simulator has that knowledge.
    Exact,
    /// N-chance forwarding (Dahlin et al., OSDI 1994), as section 2 describes it.
    NChance,
    /// Consistent hashing: each page has a home, which keeps a copy.
    Hash,
    /// Local memory and disk alone.
    None,
}

impl MemoryPolicy {
    /// All policies, in the order of the documentation.
    pub const ALL: [Self; 5] = [
        Self::Gms,
        Self::Exact,
        Self::NChance,
        Self::Hash,
        Self::None,
    ];

    /// Name in configurations.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gms => "gms",
            Self::Exact => "exact",
            Self::NChance => "n-chance",
            Self::Hash => "hash",
            Self::None => "none",
        }
    }
}

impl fmt::Display for MemoryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Error: no policy of global memory has that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMemoryPolicy(pub String);

impl fmt::Display for UnknownMemoryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = MemoryPolicy::ALL.map(MemoryPolicy::name).join(", ");
        let Self(name) = self;
        write!(
            f,
            "there is no policy of global memory {name:?}: choose one of {names}"
        )
    }
}

impl std::error::Error for UnknownMemoryPolicy {}

impl FromStr for MemoryPolicy {
    type Err = UnknownMemoryPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownMemoryPolicy> {
        let found = Self::ALL.into_iter().find(|policy| policy.name() == name);
        found.ok_or_else(|| UnknownMemoryPolicy(name.to_owned()))
    }
}

/// Page that a node evicts under `gms`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Victim {
    /// The page with the largest boosted age (section 4.5).
    #[default]
    Oldest,
    /// The oldest global page; without global pages, the least recently used local one (section 3.1).
    GlobalFirst,
}

/// Receiver of the page that a node evicts after a hit in another node's global memory.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Swap {
    /// The node that the wanted page came from, which has a free frame now (section 3.1).
    #[default]
    Return,
    /// A node drawn by weight (section 4.5).
    Weights,
}

/// Settings that all nodes of a cluster share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Policy of the cluster.
    pub policy: MemoryPolicy,
    /// Page that a node evicts, under `gms`.
    pub victim: Victim,
    /// Receiver of the page that makes room for a hit, under `gms`.
    pub swap: Swap,
    /// Factor of global pages' ages, in quarters: 5 stands for 5/4.
    pub boost_quarters: u32,
    /// N-chance: forwards of a page until it is dropped.
    pub chances: u8,
    /// N-chance: age from which a receiver drops a page without other copies.
    pub very_old_ms: u64,
    /// Hash: number of homes of a page, at most 2.
    pub homes: usize,
    /// Hash: a page is in one memory at a time, its home's or a reader's.
    pub is_exclusive: bool,
    /// Hash: most frames of pages that a node reads itself, once all its frames are used; the others are for pages
    /// of which it is the home.
    pub local_frames: u32,
    /// Time after which a node reads a page from its source, if the cluster has not answered.
    pub fetch_timeout_ms: i64,
    /// Interval in which a node sees only the first use of each page; 0: it sees every use. The paper's nodes flush
    /// their TLB once a minute, and see a page's first use after that (section 4.2).
    pub age_period_ms: i64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: MemoryPolicy::Gms,
            victim: Victim::Oldest,
            swap: Swap::Return,
            boost_quarters: 5,
            chances: 2,
            very_old_ms: 60_000,
            homes: 1,
            is_exclusive: false,
            local_frames: u32::MAX,
            fetch_timeout_ms: 500,
            age_period_ms: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_return_their_policy() {
        for policy in MemoryPolicy::ALL {
            assert_eq!(policy.name().parse(), Ok(policy));
        }
        let error = "GMS".parse::<MemoryPolicy>().unwrap_err().to_string();
        assert!(error.contains("gms, exact, n-chance"), "{error}");
    }
}
