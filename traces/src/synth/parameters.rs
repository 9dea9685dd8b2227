//! What to make a cluster of.

use super::fleet::{Class, Fleet};
use super::life::Life;
use super::{Preset, SynthError};
use std::sync::Arc;

/// The paper's.
const INTERVAL_MS: i64 = 90_000;

/// What to make.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// Kinds of host and their habits.
    pub fleet: Arc<Fleet>,
    /// Which hosts: what the fleet names so, or its first where absent.
    pub cluster: Option<String>,
    /// Hosts.
    pub hosts: usize,
    /// Days of each.
    pub days: u32,
    /// Where they begin, ms since 1970-01-01 UTC.
    pub start_ms: i64,
    /// Time between samples.
    pub interval_ms: i64,
    /// Decides all else.
    pub seed: u64,
    /// Whether every host is left on day and night.
    pub always_on: bool,
}

impl Parameters {
    /// The hosts of `preset`, as long as it has them.
    ///
    /// # Errors
    /// [`SynthError::Fleet`], which no preset gives.
    pub fn of_preset(preset: Preset, seed: u64) -> Result<Self, SynthError> {
        Self::of_fleet(preset.fleet()?, Some(preset.cluster()), seed)
    }

    /// The hosts of a fleet's cluster, as long as it has them.
    ///
    /// # Errors
    /// [`SynthError::Fleet`] where it has no such cluster.
    pub fn of_fleet(fleet: Fleet, cluster: Option<&str>, seed: u64) -> Result<Self, SynthError> {
        Ok(Self {
            hosts: fleet.cluster(cluster)?.hosts_count(),
            days: fleet.days,
            start_ms: fleet.start_ms()?,
            cluster: cluster.map(str::to_owned),
            fleet: Arc::new(fleet),
            interval_ms: INTERVAL_MS,
            seed,
            always_on: false,
        })
    }

    pub(super) fn life(&self, class: &Class, index: usize) -> Life {
        Life::new(&self.fleet, class, self.seed, index, self.start_ms)
    }
}
