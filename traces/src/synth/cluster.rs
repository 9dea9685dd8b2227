//! A cluster whose hosts are generated on demand.

use super::fleet::ClusterOf;
use super::life::Life;
use super::{Parameters, SynthError, SyntheticHost};

const DAY_MS: i64 = 86_400_000;

/// A synthetic cluster; its hosts are generated on demand.
#[derive(Clone, Debug)]
pub struct Cluster {
    parameters: Parameters,
    of: ClusterOf,
}

impl Cluster {
    /// A cluster with these parameters.
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

    /// Parameters of the cluster.
    #[must_use]
    pub const fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The complete trace of the host numbered `index`.
    #[must_use]
    pub fn host(&self, index: usize) -> SyntheticHost {
        SyntheticHost::new(
            &self.parameters,
            self.class_of(index),
            self.of.first_host + index,
        )
    }

    /// The life of the host numbered `index`, for which no rows are generated.
    #[must_use]
    pub fn life(&self, index: usize) -> Life {
        let class = &self.parameters.fleet.classes[self.class_of(index)];
        let mut life = self.parameters.life(class, self.of.first_host + index);
        life.boot(self.parameters.start_ms);
        life
    }

    /// Class of the host numbered `index`, as an index in the fleet's classes.
    #[must_use]
    pub fn class_of(&self, index: usize) -> usize {
        let name = self.of.class_of(index);
        self.parameters.fleet.class(name).unwrap_or(0) // names were checked with the fleet
    }

    /// End of all traces; every record is earlier.
    #[must_use]
    pub fn end_ms(&self) -> i64 {
        self.parameters.start_ms + i64::from(self.parameters.days) * DAY_MS
    }
}
