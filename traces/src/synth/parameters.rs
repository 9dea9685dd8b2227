//! Parameters of a synthetic cluster.

use super::fleet::{Class, Fleet};
use super::life::Life;
use super::{Preset, SynthError};
use std::sync::Arc;

/// Default interval between samples: the paper's.
const INTERVAL_MS: i64 = 90_000;

/// Parameters from which a cluster is generated.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// Classes of hosts, with the model's parameters.
    pub fleet: Arc<Fleet>,
    /// Name of the cluster in the fleet; absent: the fleet's first cluster.
    pub cluster: Option<String>,
    /// Number of hosts.
    pub hosts: usize,
    /// Length of each trace in days.
    pub days: u32,
    /// Start of the traces, ms since 1970-01-01 UTC.
    pub start_ms: i64,
    /// Time between samples, in ms.
    pub interval_ms: i64,
    /// Seed of all random numbers.
    pub seed: u64,
    /// True if every host stays on day and night, whatever its class.
    pub always_on: bool,
}

impl Parameters {
    /// Parameters with the cluster of `preset` and the number of days of its fleet.
    ///
    /// # Errors
    /// [`SynthError::Fleet`]; no preset returns it.
    pub fn of_preset(preset: Preset, seed: u64) -> Result<Self, SynthError> {
        Self::of_fleet(preset.fleet()?, Some(preset.cluster()), seed)
    }

    /// Parameters with the hosts of one of the fleet's clusters, and with the fleet's number of days.
    ///
    /// # Errors
    /// [`SynthError::Fleet`] if the fleet has no such cluster.
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
