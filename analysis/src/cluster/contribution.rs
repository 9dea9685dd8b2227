//! Contributions to the cluster's available memory: by class of hosts (Acharya & Setia, Figure 7), and by
//! hosts, the largest contributors first. A host contributes its available memory times the time for
//! which it was seen.

use crate::cluster::grid::HostCells;
use crate::cluster::outlook::SCOPES;
use crate::sizes::SizeClass;
use gleaner_schemas::findings::{ClassContribution, Findings, RankContribution, Scope};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Number of ranks into which the hosts are divided.
const RANKS: usize = 10;

/// Sums over the cells of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    size_class: SizeClass,
    physical: i128,
    available: i128,
    /// Sums for idle time; `None` if idleness is unknown in every cell.
    idle: Option<Idle>,
}

/// Sums over the cells in which the host's idleness is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Idle {
    physical: i128,
    available: i128,
}

/// Contributions of all hosts that were seen.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Contributions {
    parts: Vec<Part>,
}

impl Contributions {
    pub(crate) fn of_host(host: &HostCells) -> Self {
        let mut part = Part {
            size_class: host.size_class,
            physical: 0,
            available: 0,
            idle: None,
        };
        let mut is_seen = false;
        for (_, cell) in host.iter() {
            is_seen = true;
            part.physical += i128::from(cell.physical_bytes);
            part.available += i128::from(cell.available_bytes);
            if cell.idle.is_some() {
                let idle = part.idle.get_or_insert_default();
                idle.physical += i128::from(cell.physical_bytes);
                idle.available += i128::from(cell.idle_available_bytes);
            }
        }
        Self {
            parts: is_seen.then_some(part).into_iter().collect(),
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.parts.extend_from_slice(&other.parts);
    }

    pub(crate) fn write(&self, findings: &mut Findings) {
        for scope in SCOPES {
            let hosts: Vec<_> = self.parts.iter().filter_map(|p| given(p, scope)).collect();
            // If no memory is available, there are no shares.
            if hosts.iter().any(|h| h.2 > 0) {
                findings
                    .contribution_by_class
                    .extend(by_class(scope, &hosts));
                findings.contribution_by_rank.extend(by_rank(scope, &hosts));
            }
        }
    }
}

/// Class, physical memory, and available memory in a scope.
type HostContribution = (SizeClass, i128, i128);

fn given(part: &Part, scope: Scope) -> Option<HostContribution> {
    match scope {
        Scope::All => Some((part.size_class, part.physical, part.available)),
        Scope::Idle => {
            let idle = part.idle?;
            Some((part.size_class, idle.physical, idle.available))
        }
    }
}

fn share(part: i128, all: i128) -> f64 {
    if all > 0 {
        part as f64 / all as f64
    } else {
        0.0
    }
}

fn by_class(scope: Scope, hosts: &[HostContribution]) -> Vec<ClassContribution> {
    let mut classes: BTreeMap<SizeClass, (i64, i128, i128)> = BTreeMap::new();
    for (class, physical, available) in hosts {
        let sums = classes.entry(*class).or_default();
        *sums = (sums.0 + 1, sums.1 + physical, sums.2 + available);
    }
    let all_physical = hosts.iter().map(|h| h.1).sum();
    let all_available = hosts.iter().map(|h| h.2).sum();
    let record = |(class, (hosts_count, physical, available)): (SizeClass, _)| ClassContribution {
        scope,
        size_class: class.to_string(),
        hosts_count,
        available_share: share(available, all_available),
        physical_share: share(physical, all_physical),
    };
    classes.into_iter().map(record).collect()
}

fn by_rank(scope: Scope, hosts: &[HostContribution]) -> Vec<RankContribution> {
    let mut available: Vec<i128> = hosts.iter().map(|h| h.2).collect();
    available.sort_unstable_by(|a, b| b.cmp(a));
    let all: i128 = available.iter().sum();
    let mut counts: Vec<usize> = (1..=RANKS)
        .map(|tenths| (available.len() * tenths).div_ceil(RANKS))
        .collect();
    counts.dedup();
    let record = |count: usize| RankContribution {
        scope,
        hosts_count: count as i64,
        hosts_share: count as f64 / available.len() as f64,
        available_share: share(available[..count].iter().sum(), all),
    };
    counts.into_iter().map(record).collect()
}
