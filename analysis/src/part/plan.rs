//! Plans: the hosts and parameters of a part, from which a process analyses them without a look at the other
//! hosts.

use crate::error::{AnalysisError, Result};
use crate::parameters;
use gleaner_dataset::Dataset;
use gleaner_schemas::findings::Parameters;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Plan of an analysis, or of a part of it. A plan of all hosts is made once and divided; finding all hosts and
/// choosing the parameters takes a look at every file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Parameters with all defaults chosen.
    pub parameters: Parameters,
    /// Number of hosts in the whole analysis.
    hosts_count: usize,
    /// Hash (BLAKE3) of the ids of all these hosts, in hexadecimal.
    hosts_hash: String,
    /// Position of the plan's first host in the order of all ids, from 0.
    first: usize,
    /// Ids of the plan's hosts, in order.
    hosts: Vec<String>,
}

impl Plan {
    /// Plan of an analysis of all hosts of a dataset. Sizes that `asked` leaves open are chosen from all hosts.
    ///
    /// # Errors
    /// The errors of [`crate::analyze`] about parameters, and a dataset whose hosts cannot be listed.
    pub fn new(dataset: &Dataset, asked: &Parameters) -> Result<Self> {
        let parameters = parameters::resolved(&[dataset], asked)?;
        let hosts = dataset.hosts().map_err(AnalysisError::Hosts)?;
        Ok(Self::of(parameters, hosts))
    }

    /// Plan of these hosts; `parameters` must be resolved.
    pub(crate) fn of(parameters: Parameters, hosts: Vec<String>) -> Self {
        Self {
            parameters,
            hosts_count: hosts.len(),
            hosts_hash: hash(&hosts),
            first: 0,
            hosts,
        }
    }

    /// Number of the plan's hosts.
    #[must_use]
    pub fn hosts_count(&self) -> usize {
        self.hosts.len()
    }

    /// Plan of some of the plan's hosts, by their positions in the order of ids, from 0.
    ///
    /// # Errors
    /// [`AnalysisError::Parameter`] if the plan lacks some of them.
    pub fn part(&self, hosts: Range<usize>) -> Result<Self> {
        let place = |at: usize| at.checked_sub(self.first);
        let places = place(hosts.start).zip(place(hosts.end));
        let chosen = places.and_then(|(start, end)| self.hosts.get(start..end));
        let Some(chosen) = chosen else {
            return Err(AnalysisError::Parameter {
                name: "hosts",
                value: format!("{}..{}", hosts.start, hosts.end),
                allowed: "a range of the dataset's hosts, counted from 0",
            });
        };
        Ok(Self {
            parameters: self.parameters.clone(),
            hosts_hash: self.hosts_hash.clone(),
            hosts: chosen.to_vec(),
            first: hosts.start,
            ..*self
        })
    }

    /// Ids of the plan's hosts, in the plan's order.
    #[must_use]
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// This plan, which must be of all hosts, with its hosts in another order, in which the hosts of each group
    /// follow each other; and the positions of each group's hosts. Hosts of the same group keep their order.
    /// `group_of` returns a host's group, from 0 to below `groups_count`. Findings do not depend on the order of
    /// the hosts, but parts of plans with different orders cannot be merged.
    #[must_use]
    pub fn by_groups(
        self,
        groups_count: usize,
        group_of: impl Fn(&str) -> usize,
    ) -> (Self, Vec<Range<usize>>) {
        let first = self.first;
        let mut hosts = self.hosts;
        hosts.sort_by_cached_key(|host| group_of(host));
        let end = |group: usize| hosts.partition_point(|host| group_of(host) < group);
        let groups = (0..groups_count).map(|group| first + end(group)..first + end(group + 1));
        let groups = groups.collect();
        let hosts_hash = hash(&hosts);
        let plan = Self {
            hosts,
            hosts_hash,
            ..self
        };
        (plan, groups)
    }

    /// Positions of the plan's hosts, divided into `parts_count` ranges of nearly equal size.
    pub fn ranges(&self, parts_count: usize) -> impl Iterator<Item = Range<usize>> {
        let (first, hosts_count) = (self.first, self.hosts.len() as u128);
        let end = move |part: usize| {
            first + (part as u128 * hosts_count / parts_count.max(1) as u128) as usize
        };
        (0..parts_count).map(move |part| end(part)..end(part + 1))
    }

    /// Positions of the plan's hosts in the order of all ids.
    pub(super) fn range(&self) -> Range<usize> {
        self.first..self.first + self.hosts.len()
    }

    /// Number of hosts in the whole analysis, and the hash of their ids.
    pub(crate) fn whole(&self) -> (usize, &str) {
        (self.hosts_count, &self.hosts_hash)
    }
}

/// Hash (BLAKE3) of host ids in this order, in hexadecimal.
fn hash(hosts: &[String]) -> String {
    let mut hash = blake3::Hasher::new();
    for host in hosts {
        hash.update(&(host.len() as u64).to_le_bytes());
        hash.update(host.as_bytes());
    }
    hash.finalize().to_hex().to_string()
}
