//! Bytes that the hosts together have for a given time, with a given probability.
//!
//! Each cell is a start for each horizon. For memory that stays on its host, the figure is the sum, over
//! hosts, of the minimum that each host can lend up to the horizon. For memory that may move between hosts,
//! it is the minimum, over the same cells, of the sum. The probability is the share of starts. A cell counts
//! as a start if the outcome of at least nine of ten hosts seen in it is known; hosts with unknown outcomes
//! are left out of the start's sum, too. A host that is missing ([`HostCells::missing`]) has an unknown
//! outcome meanwhile: its memory is not gone.

use crate::cluster::by_cell::ByCell;
use crate::cluster::grid::HostCells;
use crate::cluster::outlook::{AHEAD_COUNT, SCOPES, ahead_cells, each_start};
use crate::cluster::quantile::reached_by;
use gleaner_schemas::findings::{Findings, Guarantee, Residence};
use serde::{Deserialize, Serialize};

/// Probabilities of the guarantees: number of starts, of 1000, that have at least the given bytes.
const PER_MILLE: [usize; 5] = [500, 900, 950, 990, 999];

/// Sums over the hosts whose outcome at one horizon is known, with one cell as the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct KnownSums {
    hosts: i64,
    now_bytes: i64,
    kept_bytes: i64,
}

/// Sums over the hosts whose quota in a cell is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct QuotaSums {
    /// Number of hosts, missing ones included.
    hosts: i64,
    bytes: i64,
    /// Sums over hosts with known outcomes, by horizon.
    ahead: [KnownSums; AHEAD_COUNT],
}

impl QuotaSums {
    fn add(&mut self, other: &Self) {
        self.hosts += other.hosts;
        self.bytes = self.bytes.saturating_add(other.bytes);
        for (mine, theirs) in self.ahead.iter_mut().zip(&other.ahead) {
            mine.hosts += theirs.hosts;
            mine.now_bytes = mine.now_bytes.saturating_add(theirs.now_bytes);
            mine.kept_bytes = mine.kept_bytes.saturating_add(theirs.kept_bytes);
        }
    }
}

/// Sums by scope and cell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Guarantees {
    scopes: [ByCell<QuotaSums>; SCOPES.len()],
}

impl Guarantees {
    pub(crate) fn of_host(host: &HostCells) -> Self {
        let ahead_cells = ahead_cells(host.cell_ms);
        let mut found = Self::default();
        for (scope, cells) in SCOPES.into_iter().zip(&mut found.scopes) {
            for cell in host.missing() {
                cells.at(cell).hosts = 1;
            }
            each_start(host, scope, &ahead_cells, |start| {
                let sums = cells.at(start.cell);
                sums.hosts = 1;
                sums.bytes = start.now_bytes;
                for (known, kept) in sums.ahead.iter_mut().zip(start.kept_bytes) {
                    if let Some(kept_bytes) = *kept {
                        *known = KnownSums {
                            hosts: 1,
                            now_bytes: start.now_bytes,
                            kept_bytes,
                        };
                    }
                }
            });
        }
        found
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.scopes.iter_mut().zip(&other.scopes) {
            mine.merge(theirs, QuotaSums::add);
        }
    }

    pub(crate) fn write(&self, cell_ms: i64, findings: &mut Findings) {
        for (scope, cells) in SCOPES.into_iter().zip(&self.scopes) {
            for (at, ahead) in ahead_cells(cell_ms).into_iter().enumerate() {
                let (mut now, starts) = starts(cells, at, ahead);
                now.sort_unstable();
                let mean_now_bytes = now.iter().map(|&b| b as f64).sum::<f64>() / now.len() as f64;
                let stays = starts.iter().map(|s| s.0).collect();
                let somewhere = starts.iter().map(|s| s.1).collect();
                let forms = [(Residence::Stays, stays), (Residence::Somewhere, somewhere)];
                for (residence, mut bytes) in forms {
                    let bytes: &mut Vec<i64> = &mut bytes;
                    bytes.sort_unstable();
                    // With fewer than 1000 / (1000 − p) starts, the figure would only be that of the worst
                    // cell: it is left out.
                    let told = |p: &usize| bytes.len() * (1000 - p) >= 1000;
                    let records = PER_MILLE.into_iter().filter(told).filter_map(|per_mille| {
                        let bytes = reached_by(bytes, per_mille)?;
                        Some(Guarantee {
                            scope,
                            residence,
                            ahead_s: (ahead * cell_ms) as f64 / 1000.0,
                            probability: per_mille as f64 / 1000.0,
                            bytes,
                            mean_now_bytes,
                            share_of_now: (mean_now_bytes > 0.0)
                                .then(|| bytes as f64 / mean_now_bytes),
                            cells_count: starts.len() as i64,
                        })
                    });
                    findings.guarantees.extend(records);
                }
            }
        }
    }
}

/// Bytes in each cell that counts as a start; and, for each start, the bytes that stay for `ahead` cells on
/// their hosts, and on any hosts. `at` is the index of `ahead` among the horizons.
fn starts(cells: &ByCell<QuotaSums>, at: usize, ahead: i64) -> (Vec<i64>, Vec<(i64, i64)>) {
    let counts = |sums: &QuotaSums| sums.hosts > 0 && sums.ahead[at].hosts * 10 >= sums.hosts * 9;
    let starts = cells.iter().filter(|(_, sums)| counts(sums));
    let found = starts.map(|(cell, sums)| {
        // A cell without hosts has no memory: the outcomes of the hosts at a start are known.
        let window = (cell..=cell + ahead).map(|c| cells.get(c).map_or(0, |sums| sums.bytes));
        let known = sums.ahead[at];
        let kept = (known.kept_bytes, window.min().unwrap_or(0));
        (known.now_bytes, kept)
    });
    found.unzip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::grid::RunEnd;
    use crate::cluster::outlook::tests::{any_host, host, run, starts as starts_of};
    use gleaner_schemas::findings::Scope;
    use proptest::prelude::*;

    fn of(hosts: &[crate::cluster::grid::HostCells]) -> Guarantees {
        let mut all = Guarantees::default();
        for host in hosts {
            all.merge(&Guarantees::of_host(host));
        }
        all
    }

    fn written(all: &Guarantees) -> Vec<Guarantee> {
        let mut findings = Findings::default();
        all.write(600_000, &mut findings);
        findings.guarantees
    }

    #[test]
    fn two_hosts_that_take_turns() {
        // Each host has 5 in one cell and 1 in the next. Together they always have 6, of which 2 stay on
        // their hosts.
        let turns: Vec<i64> = (0..40).map(|i| 1 + 4 * (i % 2)).collect();
        let others: Vec<i64> = turns.iter().map(|b| 6 - b).collect();
        let all = of(&[
            host("a", vec![run(0, &turns, RunEnd::Unknown)]),
            host("b", vec![run(0, &others, RunEnd::Unknown)]),
        ]);
        let found: Vec<_> = (written(&all).into_iter())
            .filter(|g| g.scope == Scope::All && g.ahead_s == 600.0)
            .map(|g| {
                (
                    g.residence,
                    g.probability,
                    g.bytes,
                    g.mean_now_bytes,
                    g.cells_count,
                )
            })
            .collect();
        let mut expected = Vec::new();
        for (residence, bytes) in [(Residence::Stays, 2), (Residence::Somewhere, 6)] {
            // 39 starts, since the outcome of the last cell is unknown: enough for 95 %.
            for probability in [0.5, 0.9, 0.95] {
                expected.push((residence, probability, bytes, 6.0, 39));
            }
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn a_start_at_which_fates_are_unknown_does_not_count() {
        // The trace of b ends before that of a: from cell 3 on only a is left, and in cell 2 only one of two
        // outcomes is known.
        let all = of(&[
            host("a", vec![run(0, &[4, 4, 4, 4, 4], RunEnd::Unknown)]),
            host("b", vec![run(0, &[3, 3, 3], RunEnd::Unknown)]),
        ]);
        let found = starts(&all.scopes[0], 0, 1);
        assert_eq!(found, (vec![7, 7, 4], vec![(7, 7), (7, 7), (4, 4)]));
    }

    #[test]
    fn hosts_that_are_missing_are_not_gone() {
        // b's samples are missing in cells 2 and 3: what both hosts have together is unknown there.
        let all = of(&[
            host("a", vec![run(0, &[4, 4, 4, 4, 4, 4], RunEnd::Unknown)]),
            host(
                "b",
                vec![
                    run(0, &[3, 3], RunEnd::Unknown),
                    run(4, &[3, 3], RunEnd::Unknown),
                ],
            ),
        ]);
        let found = starts(&all.scopes[0], 0, 1);
        assert_eq!(found, (vec![7, 7], vec![(7, 7), (7, 7)]));
        // If b is asleep in these cells, its memory is known: 0.
        let all = of(&[
            host("a", vec![run(0, &[4, 4, 4, 4, 4, 4], RunEnd::Unknown)]),
            host(
                "b",
                vec![
                    run(0, &[3, 3], RunEnd::Lost),
                    run(4, &[3, 3], RunEnd::Unknown),
                ],
            ),
        ]);
        assert_eq!(starts(&all.scopes[0], 0, 1).0, [7, 7, 4, 4, 7]);
    }

    proptest! {
        #[test]
        fn equals_the_slow_version(
            hosts in prop::collection::vec(any_host(), 1..6), half in 0..6usize
        ) {
            let all = of(&hosts);
            let half = half.min(hosts.len());
            let mut halves = of(&hosts[..half]);
            halves.merge(&of(&hosts[half..]));
            prop_assert_eq!(written(&all), written(&halves));
            for (scope, cells) in SCOPES.into_iter().zip(&all.scopes) {
                let by_host: Vec<_> = hosts.iter().map(|h| starts_of(h, scope, &[1, 6])).collect();
                for (at, ahead) in [1, 6].into_iter().enumerate() {
                    let mut expected = (Vec::new(), Vec::new());
                    for cell in 0..60 {
                        let here = |c: i64| by_host.iter().flatten().filter(move |s| s.0 == c);
                        let known: Vec<_> = here(cell).filter(|s| s.2[at].is_some()).collect();
                        let is_missing = |h: &&crate::cluster::grid::HostCells| {
                            h.runs.windows(2).any(|pair| {
                                pair[0].after == RunEnd::Unknown
                                    && (pair[0].end()..pair[1].first).contains(&cell)
                            })
                        };
                        let expected_hosts = here(cell).count() + hosts.iter().filter(is_missing).count();
                        if known.is_empty() || known.len() * 10 < expected_hosts * 9 {
                            continue;
                        }
                        let sum = |c| here(c).map(|s| s.1).sum::<i64>();
                        let least = (cell..=cell + ahead).map(sum).min().unwrap();
                        expected.0.push(known.iter().map(|s| s.1).sum());
                        let kept: i64 = known.iter().filter_map(|s| s.2[at]).sum();
                        expected.1.push((kept, least));
                        // Memory that stays on its host is memory on some host.
                        prop_assert!(kept <= least);
                    }
                    prop_assert_eq!(starts(cells, at, ahead), expected);
                }
            }
        }
    }
}
