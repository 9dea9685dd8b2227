//! What a cluster is made of.

use super::fleet::{Class, ClusterOf, Fleet};
use super::life::Life;
use super::{HostTrace, Preset, SynthError};
use std::sync::Arc;

const DAY_MS: i64 = 86_400_000;
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

/// A synthetic cluster; its hosts are made when they are asked for.
#[derive(Clone, Debug)]
pub struct Cluster {
    parameters: Parameters,
    of: ClusterOf,
}

impl Cluster {
    /// A cluster of these parameters.
    ///
    /// # Errors
    /// [`SynthError::Parameter`].
    pub fn new(parameters: &Parameters) -> Result<Self, SynthError> {
        let Parameters {
            hosts,
            days,
            start_ms,
            interval_ms,
            ..
        } = *parameters;
        let checks = [
            (
                "hosts",
                (1..=1_000_000).contains(&hosts),
                hosts.to_string(),
                "from 1 to 1000000",
            ),
            (
                "days",
                (1..=36_600).contains(&days),
                days.to_string(),
                "from 1 to 36600",
            ),
            (
                "start",
                (0..=1 << 47).contains(&start_ms),
                format!("{start_ms} ms"),
                "from 1970 to the year 6429",
            ),
            (
                "interval",
                (100..=DAY_MS).contains(&interval_ms),
                format!("{interval_ms} ms"),
                "from 100 ms to a day",
            ),
        ];
        match checks.into_iter().find(|(_, holds, _, _)| !holds) {
            Some((name, _, value, allowed)) => Err(SynthError::Parameter {
                name,
                value,
                allowed,
            }),
            None => Ok(Self {
                of: parameters
                    .fleet
                    .cluster(parameters.cluster.as_deref())?
                    .clone(),
                parameters: parameters.clone(),
            }),
        }
    }

    /// What it was made of.
    #[must_use]
    pub const fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The trace of the host numbered `index`, from its first record on.
    #[must_use]
    pub fn host(&self, index: usize) -> HostTrace {
        HostTrace::new(
            &self.parameters,
            self.class_of(index),
            self.of.first_host + index,
        )
    }

    /// The life of the host numbered `index`, without the rows.
    #[must_use]
    pub fn life(&self, index: usize) -> Life {
        let class = &self.parameters.fleet.classes[self.class_of(index)];
        let mut life = self.parameters.life(class, self.of.first_host + index);
        life.boot(self.parameters.start_ms);
        life
    }

    /// The place among the fleet's classes of that of the host numbered `index`.
    #[must_use]
    pub fn class_of(&self, index: usize) -> usize {
        let name = self.of.class_of(index);
        self.parameters.fleet.class(name).unwrap_or(0) // the fleet was checked
    }

    /// When all traces end: no record is of this time or later.
    #[must_use]
    pub fn end_ms(&self) -> i64 {
        self.parameters.start_ms + i64::from(self.parameters.days) * DAY_MS
    }
}
