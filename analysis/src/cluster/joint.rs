//! Copies of a region on several hosts: the probability of losing all copies, given that hosts are not
//! independent.
//!
//! In each cell, n hosts have the region to lend and a known outcome; k of them lose it within the horizon.
//! Copies lie on different hosts of those n, every choice equally likely: all m copies are lost in
//! k(k−1)…(k−m+1) of n(n−1)…(n−m+1) choices. Numerators and denominators are each summed over cells, so that
//! the figure is exact for the trace. The probability that one given copy is lost uses the same choices.
//! Otherwise hours in which many hosts can lend would weigh less in it, and the comparison would be between
//! different times of day.

use crate::cluster::by_cell::ByCell;
use crate::cluster::grid::HostCells;
use crate::cluster::outlook::{SCOPES, ahead_cells, each_start};
use gleaner_schemas::findings::{Copies, Findings, Parameters};
use serde::{Deserialize, Serialize};

/// Numbers of copies that are measured.
const COPIES: [u32; 2] = [2, 3];

/// Number of hosts that have a region in one cell, and of those that lose it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Fates {
    have: u32,
    lose: u32,
}

/// Fates by scope and cell; within a cell by region, then by horizon.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct JointFates {
    scopes: [ByCell<Vec<Fates>>; SCOPES.len()],
}

impl JointFates {
    pub(crate) fn of_host(host: &HostCells, parameters: &Parameters) -> Self {
        let regions = &parameters.region_bytes;
        let ahead_cells = ahead_cells(host.cell_ms);
        let mut found = Self::default();
        for (scope, cells) in SCOPES.into_iter().zip(&mut found.scopes) {
            each_start(host, scope, &ahead_cells, |start| {
                // Regions are sorted: if the smallest does not fit, none does.
                if regions.first().is_none_or(|r| *r > start.now_bytes) {
                    return;
                }
                let fates = cells.at(start.cell);
                fates.resize(regions.len() * ahead_cells.len(), Fates::default());
                let of_regions = regions.iter().zip(fates.chunks_mut(ahead_cells.len()));
                for (&region, fates) in of_regions.filter(|(r, _)| **r <= start.now_bytes) {
                    for (fates, kept) in fates.iter_mut().zip(start.kept_bytes) {
                        if let Some(kept) = *kept {
                            fates.have = 1;
                            fates.lose = u32::from(kept < region);
                        }
                    }
                }
            });
        }
        found
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        let add = |mine: &mut Vec<Fates>, theirs: &Vec<Fates>| {
            if mine.is_empty() {
                mine.clone_from(theirs);
            } else {
                for (mine, theirs) in mine.iter_mut().zip(theirs) {
                    mine.have += theirs.have;
                    mine.lose += theirs.lose;
                }
            }
        };
        for (mine, theirs) in self.scopes.iter_mut().zip(&other.scopes) {
            mine.merge(theirs, add);
        }
    }

    pub(crate) fn write(&self, cell_ms: i64, parameters: &Parameters, findings: &mut Findings) {
        let ahead_cells = ahead_cells(cell_ms);
        for (scope, cells) in SCOPES.into_iter().zip(&self.scopes) {
            for (region, &region_bytes) in parameters.region_bytes.iter().enumerate() {
                for (at, ahead) in ahead_cells.iter().enumerate() {
                    let place = region * ahead_cells.len() + at;
                    let fates = || cells.iter().filter_map(|(_, all)| all.get(place).copied());
                    for copies in COPIES {
                        let Some(odds) = odds(fates(), copies) else {
                            continue;
                        };
                        findings.copies.push(Copies {
                            scope,
                            region_bytes,
                            ahead_s: (ahead * cell_ms) as f64 / 1000.0,
                            copies_count: i64::from(copies),
                            one_lost_probability: odds.one_lost,
                            all_lost_probability: odds.all_lost,
                            all_lost_if_independent_probability: (odds.one_lost)
                                .powi(copies as i32),
                            all_lost_ratio: (odds.one_lost > 0.0)
                                .then(|| odds.all_lost / odds.one_lost.powi(copies as i32)),
                            none_lost_probability: odds.none_lost,
                            choices_count: odds.choices,
                        });
                    }
                }
            }
        }
    }
}

/// Probabilities for a given number of copies.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Odds {
    one_lost: f64,
    all_lost: f64,
    none_lost: f64,
    choices: f64,
}

/// Odds over all cells; `None` if no cell has as many hosts as `copies`.
fn odds(fates: impl Iterator<Item = Fates>, copies: u32) -> Option<Odds> {
    // The product n(n−1)… counts ordered choices.
    let ordered =
        |n: u32, of: u32| -> u128 { (0..of).map(|i| u128::from(n.saturating_sub(i))).product() };
    let (mut all, mut one_lost, mut all_lost, mut none_lost) = (0, 0, 0, 0);
    for Fates { have, lose } in fates {
        all += ordered(have, copies);
        one_lost += u128::from(lose) * ordered(have.saturating_sub(1), copies - 1);
        all_lost += ordered(lose, copies);
        none_lost += ordered(have - lose, copies);
    }
    let share = |part: u128| part as f64 / all as f64;
    (all > 0).then(|| Odds {
        one_lost: share(one_lost),
        all_lost: share(all_lost),
        none_lost: share(none_lost),
        // Divided by the orders of the copies, this counts unordered choices.
        choices: all as f64 / ordered(copies, copies) as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::outlook::tests::{any_host, starts};
    use proptest::prelude::*;

    #[test]
    fn worked_by_hand() {
        let fates = |have, lose| Fates { have, lose };
        // 4 hosts of which 2 lose the region, and 2 hosts of which none does, make 6 + 1 pairs.
        let found = odds([fates(4, 2), fates(2, 0)].into_iter(), 2).unwrap();
        assert_eq!(
            found,
            Odds {
                // A given copy is lost in 2 × 3 of the 4 × 3 ordered pairs, and in none of the other 2.
                one_lost: 6.0 / 14.0,
                all_lost: 1.0 / 7.0,
                none_lost: 2.0 / 7.0,
                choices: 7.0,
            }
        );
        let three = odds([fates(4, 3), fates(2, 2)].into_iter(), 3).unwrap();
        assert_eq!(
            (three.choices, three.all_lost, three.none_lost),
            (4.0, 0.25, 0.0)
        );
        assert_eq!(odds([fates(1, 1)].into_iter(), 2), None);
        // If all hosts lose the region or none does, two copies are no better than one.
        let together = odds([fates(5, 5), fates(5, 0)].into_iter(), 2).unwrap();
        assert_eq!((together.one_lost, together.all_lost), (0.5, 0.5));
    }

    proptest! {
        /// Compares with every choice of two and of three hosts in every cell. Compares the merge of two
        /// halves with the whole.
        #[test]
        fn equals_every_choice(
            hosts in prop::collection::vec(any_host(), 1..6), half in 0..6usize, region in 1..10i64,
        ) {
            let parameters = Parameters { region_bytes: vec![region], ..Parameters::default() };
            let of = |hosts: &[HostCells]| {
                let mut all = JointFates::default();
                for host in hosts {
                    all.merge(&JointFates::of_host(host, &parameters));
                }
                all
            };
            let half = half.min(hosts.len());
            let mut all = of(&hosts[..half]);
            all.merge(&of(&hosts[half..]));
            let mut findings = Findings::default();
            all.write(600_000, &parameters, &mut findings);
            let mut at_once = Findings::default();
            of(&hosts).write(600_000, &parameters, &mut at_once);
            prop_assert_eq!(&findings.copies, &at_once.copies);
            for scope in SCOPES {
                for ahead in [1, 6] {
                    let by_host: Vec<_> = hosts.iter().map(|h| starts(h, scope, &[ahead])).collect();
                    let (mut pairs, mut one, mut both, mut none, mut threes, mut all3) =
                        (0, 0, 0, 0, 0, 0);
                    for cell in 0..60 {
                        let lost: Vec<bool> = by_host.iter().flatten()
                            .filter(|s| s.0 == cell && s.1 >= region)
                            .filter_map(|s| s.2[0].map(|kept| kept < region))
                            .collect();
                        for (a, &first) in lost.iter().enumerate() {
                            for (b, &second) in lost.iter().enumerate() {
                                if a == b { continue }
                                pairs += 1;
                                one += u32::from(first);
                                both += u32::from(first && second);
                                none += u32::from(!first && !second);
                                for (c, &third) in lost.iter().enumerate() {
                                    if c != a && c != b {
                                        threes += 1;
                                        all3 += u32::from(first && second && third);
                                    }
                                }
                            }
                        }
                    }
                    let found = |copies| findings.copies.iter().find(|c| {
                        c.scope == scope && c.copies_count == copies
                            && c.ahead_s == (ahead * 600) as f64
                    });
                    let share = |part: u32, all: u32| f64::from(part) / f64::from(all);
                    match found(2) {
                        Some(two) => {
                            prop_assert_eq!(two.choices_count, f64::from(pairs) / 2.0);
                            prop_assert_eq!(two.one_lost_probability, share(one, pairs));
                            prop_assert_eq!(two.all_lost_probability, share(both, pairs));
                            prop_assert_eq!(two.none_lost_probability, share(none, pairs));
                        }
                        None => prop_assert_eq!(pairs, 0),
                    }
                    match found(3) {
                        Some(three) => {
                            prop_assert_eq!(three.choices_count, f64::from(threes) / 6.0);
                            prop_assert_eq!(three.all_lost_probability, share(all3, threes));
                        }
                        None => prop_assert_eq!(threes, 0),
                    }
                }
            }
        }
    }
}
