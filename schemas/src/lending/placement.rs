//! Names of the placement policies, which choose hosts; `gleaner_policy::placement` implements the policies.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Placement policy: chooses hosts for leases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = PlacementName))]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Any host with room, each with the same probability (Dodo; Acharya & Setia, section 5).
    Random,
    /// The host with the fewest pages stored (Anemone).
    FewestPages,
    /// The host that serves the fewest requests (Anemone).
    FewestRequests,
    /// The host on which this client has the fewest bytes: spread equally (Felten & Zahorjan).
    Spread,
    /// The host that served this client before, as long as that host has room (Felten & Zahorjan); at first
    /// any host.
    Stick,
    /// A random host. A host's probability is its share of all free memory at the start of the epoch, less
    /// the leases placed there since (GMS: weights w_i). Once the weights are used up, a new epoch begins.
    EpochWeights,
    /// The host on which the memory is most likely to stay for the requested time (ours), by the forecast; a
    /// host without a forecast counts with one half. Among equals, the host that has been idle for longest,
    /// since it is the most likely to stay idle.
    #[default]
    LongestAvailable,
}

impl Placement {
    /// All placement policies.
    pub const ALL: [Self; 7] = [
        Self::Random,
        Self::FewestPages,
        Self::FewestRequests,
        Self::Spread,
        Self::Stick,
        Self::EpochWeights,
        Self::LongestAvailable,
    ];

    /// Name of the policy in configurations and requests.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::FewestPages => "fewest-pages",
            Self::FewestRequests => "fewest-requests",
            Self::Spread => "spread",
            Self::Stick => "stick",
            Self::EpochWeights => "epoch-weights",
            Self::LongestAvailable => "longest-available",
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Error: no placement policy has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPlacement(pub String);

impl fmt::Display for UnknownPlacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Placement::ALL.map(Placement::name).join(", ");
        write!(
            f,
            "there is no placement {:?}: choose one of {names}",
            self.0
        )
    }
}

impl std::error::Error for UnknownPlacement {}

impl FromStr for Placement {
    type Err = UnknownPlacement;

    fn from_str(name: &str) -> Result<Self, UnknownPlacement> {
        let found = Self::ALL.into_iter().find(|p| p.name() == name);
        found.ok_or_else(|| UnknownPlacement(name.to_owned()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_are_spelt_alike_in_json_and_by_themselves() {
        for placement in Placement::ALL {
            let json = serde_json::to_value(placement).unwrap();
            assert_eq!(json, placement.name());
            assert_eq!(placement.name().parse(), Ok(placement));
        }
    }
}
