//! Savings of pooling: single hosts each need their own peak of demand; a pool only needs the peak of its
//! hosts' sum.
//!
//! Demand is physical less available memory, the maximum in a cell. Where a host was not seen, its demand is
//! 0 between a shutdown and the next boot, and otherwise its 99th percentile: a sleeping host holds its
//! memory, and an unknown demand must not look like a saving. Pools are formed at random from hashes of the
//! hosts' ids, so the same hosts give the same pools. If the hosts have more than [`MOST_VALUES`] cells,
//! those with the lowest hashes stand for all, which is also a random sample.

use crate::cluster::grid::{HostCells, RunEnd};
use crate::cluster::quantile::p99;
use gleaner_schemas::findings::{Findings, Peak, PoolingSaving};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Maximum cells kept of all hosts together: 32 MiB, as much as 2,000 hosts have in two weeks.
const MOST_VALUES: usize = 4 << 20;
/// Number of random groupings.
const REGROUPINGS: u64 = 5;

/// Demand of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Demand {
    /// Runs in which the host was seen: first cell, and the maximum demand in each cell from there on.
    seen: Vec<(i64, Vec<i64>)>,
    /// Cells throughout which the host was shut down.
    off: Vec<Range<i64>>,
    /// Bytes assumed in a cell with unknown demand.
    unseen_bytes: i64,
}

impl Demand {
    /// Demand of a host; `None` if the host was not seen.
    fn of(host: &HostCells) -> Option<Self> {
        let mut all: Vec<i64> = host.iter().map(|(_, c)| c.demand_most_bytes).collect();
        let unseen_bytes = p99(&mut all)?;
        let of_run = |run: &crate::cluster::grid::Run| {
            let most = run.cells.iter().map(|c| c.demand_most_bytes).collect();
            (run.first, most)
        };
        let runs = host.runs.iter().filter(|run| !run.cells.is_empty());
        let pairs = host.runs.iter().zip(host.runs.iter().skip(1));
        let off = pairs.filter(|(run, _)| run.after == RunEnd::Off);
        Some(Self {
            seen: runs.map(of_run).collect(),
            // In the cells of the shutdown and of the boot the host was neither seen nor off throughout.
            off: off
                .map(|(run, next)| run.end() + 1..next.first - 1)
                .collect(),
            unseen_bytes,
        })
    }

    fn values_count(&self) -> usize {
        self.seen.iter().map(|(_, values)| values.len()).sum()
    }

    /// Demand in each of `cells`, which are sorted.
    fn on(&self, cells: &[i64]) -> Vec<i64> {
        let mut found = vec![self.unseen_bytes; cells.len()];
        let place = |cell: i64| cells.partition_point(|c| *c < cell);
        for off in self.off.iter().filter(|off| off.start < off.end) {
            found[place(off.start)..place(off.end)].fill(0);
        }
        // Runs are written after the times off: where clocks were set back, seen values win.
        for (first, values) in &self.seen {
            let from = place(*first);
            for (found, value) in found[from..].iter_mut().zip(values) {
                *found = *value;
            }
        }
        found
    }
}

/// The hosts by the hash of their ids.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Pools {
    hosts: BTreeMap<(u64, String), Demand>,
    values_count: usize,
}

impl Pools {
    pub(crate) fn of_host(host: &HostCells) -> Self {
        let mut found = Self::default();
        if let Some(demand) = Demand::of(host) {
            found.insert(&(hash(&host.host), host.host.clone()), &demand, MOST_VALUES);
        }
        found
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (key, demand) in &other.hosts {
            self.insert(key, demand, MOST_VALUES);
        }
    }

    /// Adds a host, and keeps the hosts with the lowest hashes that fit, in whatever order the hosts come.
    fn insert(&mut self, key: &(u64, String), demand: &Demand, most_values: usize) {
        self.values_count += demand.values_count();
        self.hosts.insert(key.clone(), demand.clone());
        while self.values_count > most_values && self.hosts.len() > 1 {
            let Some((_, dropped)) = self.hosts.pop_last() else {
                break;
            };
            self.values_count -= dropped.values_count();
        }
    }

    pub(crate) fn hosts_count(&self) -> usize {
        self.hosts.len()
    }

    pub(crate) fn write(&self, findings: &mut Findings) {
        // A single host has nobody to share with.
        if self.hosts.len() > 1 {
            findings.pooling.extend(self.records());
        }
    }

    fn records(&self) -> Vec<PoolingSaving> {
        let mut cells: Vec<i64> = (self.hosts.values())
            .flat_map(|demand| &demand.seen)
            .flat_map(|(first, values)| *first..*first + values.len() as i64)
            .collect();
        cells.sort_unstable();
        cells.dedup();
        let hosts: Vec<(u64, Vec<i64>)> = (self.hosts.iter())
            .map(|((hash, _), demand)| (*hash, demand.on(&cells)))
            .collect();
        let own = Peaks::of(hosts.iter().map(|(_, demand)| demand));
        let mut by_size: BTreeMap<usize, Peaks> = BTreeMap::new();
        for regrouping in 0..REGROUPINGS {
            let mut order: Vec<&(u64, Vec<i64>)> = hosts.iter().collect();
            order.sort_by_key(|(hash, _)| mixed(hash ^ mixed(regrouping + 1)));
            let mut pools: Vec<Vec<i64>> = order
                .chunks(2)
                .map(|p| sum(p.iter().map(|h| &h.1)))
                .collect();
            let mut size = 2;
            loop {
                by_size
                    .entry(size.min(hosts.len()))
                    .or_default()
                    .add(&Peaks::of(pools.iter()));
                if size >= hosts.len() {
                    break;
                }
                pools = pools.chunks(2).map(|pair| sum(pair.iter())).collect();
                size *= 2;
            }
        }
        let alone = (1, own, 1.0);
        let pools = by_size
            .into_iter()
            .map(|(size, peaks)| (size, peaks, REGROUPINGS as f64));
        let all = std::iter::once(alone).chain(pools);
        all.flat_map(|(size, peaks, regroupings)| {
            [
                (Peak::Max, own.max, peaks.max),
                (Peak::P99, own.p99, peaks.p99),
            ]
            .map(|(peak, own, pooled)| {
                let peak_of_sums_bytes = pooled as f64 / regroupings;
                PoolingSaving {
                    pool_hosts_count: size as i64,
                    hosts_count: hosts.len() as i64,
                    peak,
                    sum_of_peaks_bytes: i64::try_from(own).unwrap_or(i64::MAX),
                    peak_of_sums_bytes,
                    saved_share: if own > 0 {
                        1.0 - peak_of_sums_bytes / own as f64
                    } else {
                        0.0
                    },
                }
            })
        })
        .collect()
    }
}

/// Sums of peaks of demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Peaks {
    max: i128,
    p99: i128,
}

impl Peaks {
    fn of<'a>(demands: impl Iterator<Item = &'a Vec<i64>>) -> Self {
        let mut found = Self::default();
        for demand in demands {
            let max = demand.iter().copied().max().unwrap_or(0);
            found.max += i128::from(max);
            found.p99 += i128::from(p99(&mut demand.clone()).unwrap_or(0));
        }
        found
    }

    fn add(&mut self, other: &Self) {
        self.max += other.max;
        self.p99 += other.p99;
    }
}

fn sum<'a>(demands: impl Iterator<Item = &'a Vec<i64>>) -> Vec<i64> {
    let mut found: Vec<i64> = Vec::new();
    for demand in demands {
        if found.is_empty() {
            found.clone_from(demand);
        } else {
            for (sum, value) in found.iter_mut().zip(demand) {
                *sum = sum.saturating_add(*value);
            }
        }
    }
    found
}

/// FNV-1a with mixed bits. Unlike the standard library's hash, it is the same in every build.
fn hash(id: &str) -> u64 {
    let fnv = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mixed(fnv)
}

/// The finaliser of SplitMix64.
fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::outlook::tests::{any_host, host, run};
    use proptest::prelude::*;

    fn of(hosts: &[HostCells]) -> Pools {
        let mut all = Pools::default();
        for host in hosts {
            all.merge(&Pools::of_host(host));
        }
        all
    }

    #[test]
    fn worked_by_hand() {
        // Each host has 10 bytes. The demands are 1, 9 and 9, 1: a pool needs 10, single hosts 18.
        let all = of(&[
            host("a", vec![run(0, &[9, 1], RunEnd::Unknown)]),
            host("b", vec![run(0, &[1, 9], RunEnd::Unknown)]),
        ]);
        let found: Vec<_> = (all.records().iter())
            .filter(|p| p.peak == Peak::Max)
            .map(|p| {
                let needs = (p.sum_of_peaks_bytes, p.peak_of_sums_bytes);
                (p.pool_hosts_count, p.hosts_count, needs)
            })
            .collect();
        assert_eq!(found, [(1, 2, (18, 18.0)), (2, 2, (18, 10.0))]);
    }

    #[test]
    fn a_host_that_is_off_demands_nothing_and_an_unknown_one_its_usual_most() {
        let demand = |after| {
            let h = host(
                "h",
                vec![run(0, &[9, 7], after), run(6, &[8], RunEnd::Unknown)],
            );
            let cells: Vec<i64> = (-1..8).collect();
            Demand::of(&h).unwrap().on(&cells)
        };
        assert_eq!(demand(RunEnd::Lost), [3, 1, 3, 3, 3, 3, 3, 2, 3]);
        // Cells 2 and 5 hold the shutdown and the boot.
        assert_eq!(demand(RunEnd::Off), [3, 1, 3, 3, 0, 0, 3, 2, 3]);
    }

    #[test]
    fn of_too_many_hosts_the_same_sample_remains_in_any_order() {
        let demand = Demand {
            seen: vec![(0, vec![1, 2])],
            off: vec![],
            unseen_bytes: 0,
        };
        let keys: Vec<_> = (0..50)
            .map(|i: i32| (hash(&i.to_string()), i.to_string()))
            .collect();
        let remaining = |order: &mut dyn Iterator<Item = &(u64, String)>| -> Vec<_> {
            let mut pools = Pools::default();
            order.for_each(|key| pools.insert(key, &demand, 21));
            pools.hosts.into_keys().collect()
        };
        let mut lowest = keys.clone();
        lowest.sort();
        lowest.truncate(10);
        assert_eq!(remaining(&mut keys.iter()), lowest);
        assert_eq!(remaining(&mut keys.iter().rev()), lowest);
    }

    proptest! {
        #[test]
        fn bounds_hold_and_halves_are_all(
            mut hosts in prop::collection::vec(any_host(), 2..9), half in 0..9usize,
        ) {
            for (i, host) in hosts.iter_mut().enumerate() {
                host.host = i.to_string();
            }
            let half = half.min(hosts.len());
            let mut halves = of(&hosts[half..]);
            halves.merge(&of(&hosts[..half]));
            let all = of(&hosts);
            prop_assert_eq!(all.records(), halves.records());
            let most: Vec<_> =
                all.records().into_iter().filter(|p| p.peak == Peak::Max).collect();
            for pair in most.windows(2) {
                // Larger pools contain the smaller ones and never need more.
                prop_assert!(pair[0].peak_of_sums_bytes >= pair[1].peak_of_sums_bytes);
            }
            let seen = hosts.iter().filter(|h| h.iter().next().is_some()).count();
            if let Some(last) = most.last().filter(|_| seen > 0) {
                prop_assert_eq!(last.pool_hosts_count, seen as i64);
                // All hosts in one pool, computed cell by cell.
                let cells: std::collections::BTreeSet<i64> =
                    hosts.iter().flat_map(|h| h.iter().map(|c| c.0)).collect();
                let cells: Vec<i64> = cells.into_iter().collect();
                let demands: Vec<_> = hosts.iter().filter_map(Demand::of)
                    .map(|d| d.on(&cells)).collect();
                let sums = (0..cells.len()).map(|c| demands.iter().map(|d| d[c]).sum::<i64>());
                prop_assert_eq!(last.peak_of_sums_bytes, sums.max().unwrap() as f64);
                let peaks: i64 = demands.iter().map(|d| d.iter().max().unwrap()).sum();
                prop_assert_eq!(last.sum_of_peaks_bytes, peaks);
            }
        }
    }
}
