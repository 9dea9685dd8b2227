//! What a cluster is made of.

use super::{HostTrace, SynthError};

const DAY_MS: i64 = 86_400_000;

/// What to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
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

/// A synthetic cluster; its hosts are made when they are asked for.
#[derive(Clone, Debug)]
pub struct Cluster {
    parameters: Parameters,
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
        HostTrace::new(&self.parameters, index)
    }

    /// When all traces end: no record is of this time or later.
    #[must_use]
    pub fn end_ms(&self) -> i64 {
        self.parameters.start_ms + i64::from(self.parameters.days) * DAY_MS
    }
}
