//! Placements by name.

use gleaner_policy::placement::Placement;
use serde::{Deserialize, Serialize};

/// How hosts are chosen.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum PlacementName {
    /// Any host with room, each as likely.
    Random,
    /// The host with the fewest pages stored.
    FewestPages,
    /// The host that serves the fewest requests.
    FewestRequests,
    /// The host that the client has the least on.
    Spread,
    /// The host that this client found good before, as long as it has room; at first any.
    Stick,
    /// As likely as the host's share of all free memory at the start of the epoch.
    EpochWeights,
    /// The host on which so much is most likely to stay for as long as asked.
    #[default]
    LongestAvailable,
}

impl From<PlacementName> for Placement {
    fn from(name: PlacementName) -> Self {
        match name {
            PlacementName::Random => Self::Random,
            PlacementName::FewestPages => Self::FewestPages,
            PlacementName::FewestRequests => Self::FewestRequests,
            PlacementName::Spread => Self::Spread,
            PlacementName::Stick => Self::Stick,
            PlacementName::EpochWeights => Self::EpochWeights,
            PlacementName::LongestAvailable => Self::LongestAvailable,
        }
    }
}
