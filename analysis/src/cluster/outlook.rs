//! Outlook of memory that is lent in one cell: the part that stays within the quota, by horizon.
//!
//! Bytes lent in a cell for h cells must be there in that cell and the h after it: a lease that begins at any
//! time in the cell then has them for h cells. A host has lost all lent memory if it sleeps, is shut down or
//! is unreachable in that time, or if its agent falls silent. The outcome is unknown if the window reaches
//! into an unknown time (after the trace's end, missing samples, unknown idleness), even if the host lost its
//! memory before: otherwise losses would be known more often than survivals.

use crate::cluster::grid::{HostCells, Run, RunEnd};
use gleaner_schemas::findings::Scope;

/// Horizons, each rounded up to whole cells: ten minutes, and 1, 4, 12 and 24 hours.
const AHEAD_S: [i64; AHEAD_COUNT] = [600, 3600, 14_400, 43_200, 86_400];
/// Maximum number of horizons.
pub(crate) const AHEAD_COUNT: usize = 5;
/// Both scopes, in the order of the sums.
pub(crate) const SCOPES: [Scope; 2] = [Scope::All, Scope::Idle];

/// Horizons in whole cells, without duplicates.
pub(crate) fn ahead_cells(cell_ms: i64) -> Vec<i64> {
    let cells = AHEAD_S.iter().map(|s| (s * 1000 + cell_ms - 1) / cell_ms);
    let mut cells: Vec<i64> = cells.collect();
    cells.dedup();
    cells
}

/// Host in a cell in which its memory could be lent.
pub(crate) struct Start<'a> {
    pub(crate) cell: i64,
    /// Quota in the cell.
    pub(crate) now_bytes: i64,
    /// Minimum of the quota from the cell to each horizon; `None` if the outcome is unknown.
    pub(crate) kept_bytes: &'a [Option<i64>],
}

/// Calls `visit` with every cell of the host in which the quota is known.
pub(crate) fn each_start(
    host: &HostCells,
    scope: Scope,
    ahead_cells: &[i64],
    mut visit: impl FnMut(&Start<'_>),
) {
    let unknown_from = unknown_from(&host.runs, scope);
    let mut kept = vec![None; ahead_cells.len()];
    for (run, unknown_from) in host.runs.iter().zip(unknown_from) {
        let values: Vec<_> = run.cells.iter().map(|cell| cell.quota(scope)).collect();
        for (at, now) in values.iter().enumerate() {
            let &Some(now_bytes) = now else { continue };
            let cell = run.first + at as i64;
            let (mut least, mut seen) = (now_bytes, at);
            for (&ahead, kept) in ahead_cells.iter().zip(&mut kept) {
                *kept = None;
                if cell + ahead >= unknown_from[at] {
                    continue;
                }
                while seen < at + ahead as usize && least > 0 {
                    seen += 1;
                    // In a cell after the run's end the host slept or was off.
                    least = least.min(values.get(seen).copied().flatten().unwrap_or(0));
                }
                *kept = Some(least);
            }
            visit(&Start {
                cell,
                now_bytes,
                kept_bytes: &kept,
            });
        }
    }
}

/// For each cell of each run, the first unknown cell at or after it.
fn unknown_from(runs: &[Run], scope: Scope) -> Vec<Vec<i64>> {
    let mut found = Vec::with_capacity(runs.len());
    // Start of the next run, and first unknown cell at or after that start.
    let mut next: Option<(i64, i64)> = None;
    for run in runs.iter().rev() {
        let mut unknown = match (run.after, next) {
            (RunEnd::Off | RunEnd::Lost, Some((first, unknown))) if first >= run.end() => unknown,
            _ => run.end(),
        };
        let mut of_run = vec![0; run.cells.len()];
        for (at, cell) in run.cells.iter().enumerate().rev() {
            if cell.quota(scope).is_none() {
                unknown = run.first + at as i64;
            }
            of_run[at] = unknown;
        }
        next = Some((run.first, unknown));
        found.push(of_run);
    }
    found.reverse();
    found
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::cluster::cell::Cell;
    use crate::sizes::Classes;
    use proptest::prelude::*;

    /// A cell with this `quota`; `idle` may be unknown. In some cells that are not idle, the owner
    /// returned.
    pub(crate) fn cell(quota: i64, idle: Option<bool>) -> Cell {
        let is_idle = idle == Some(true);
        let returned = idle == Some(false) && quota % 2 == 1;
        Cell {
            least_quota_bytes: quota,
            quota_at_start_bytes: quota,
            available_bytes: quota,
            available_least_bytes: quota,
            physical_bytes: 10,
            demand_most_bytes: 10 - quota,
            idle,
            idle_at_start: is_idle || returned,
            returned,
            idle_ms: if is_idle { 600_000 } else { 0 },
            idle_available_bytes: if is_idle { quota } else { 0 },
            ..Cell::default()
        }
    }

    pub(crate) fn host(name: &str, runs: Vec<Run>) -> HostCells {
        HostCells {
            host: name.to_owned(),
            size_class: Classes::new(&[]).of(10),
            cell_ms: 600_000,
            runs,
        }
    }

    pub(crate) fn run(first: i64, quota: &[i64], after: RunEnd) -> Run {
        let cells = quota.iter().map(|&l| cell(l, Some(true))).collect();
        Run {
            first,
            cells,
            after,
        }
    }

    /// Hosts whose runs follow each other with gaps of some cells and any `RunEnd`.
    pub(crate) fn any_host() -> impl Strategy<Value = HostCells> {
        let idle = prop_oneof![4 => Just(Some(true)), 2 => Just(Some(false)), 1 => Just(None)];
        let cells = prop::collection::vec((0..10i64, idle), 0..8);
        let after = prop_oneof![
            2 => Just(RunEnd::Lost), 1 => Just(RunEnd::Off), 1 => Just(RunEnd::Unknown)
        ];
        let runs = prop::collection::vec((0..3i64, cells, after), 0..4);
        (0..4i64, any::<u64>(), runs).prop_map(|(first, name, runs)| {
            let mut at = first;
            let runs = runs.into_iter().map(|(gap, cells, after)| {
                let run = Run {
                    first: at,
                    cells: cells.into_iter().map(|(l, idle)| cell(l, idle)).collect(),
                    after,
                };
                at = run.end() + gap;
                run
            });
            host(&name.to_string(), runs.collect())
        })
    }

    /// Returns all starts as tuples: cell, memory now, and memory kept by horizon.
    pub(crate) fn starts(
        host: &HostCells,
        scope: Scope,
        ahead: &[i64],
    ) -> Vec<(i64, i64, Vec<Option<i64>>)> {
        let mut found = Vec::new();
        each_start(host, scope, ahead, |s| {
            found.push((s.cell, s.now_bytes, s.kept_bytes.to_vec()));
        });
        found
    }

    #[test]
    fn times_ahead_are_whole_cells() {
        assert_eq!(ahead_cells(600_000), [1, 6, 24, 72, 144]);
        assert_eq!(ahead_cells(900_000), [1, 4, 16, 48, 96]);
        assert_eq!(ahead_cells(14_400_000), [1, 3, 6]);
        assert_eq!(ahead_cells(60_000), [10, 60, 240, 720, 1440]);
    }

    #[test]
    fn worked_by_hand() {
        // The host is seen in cells 0-3, asleep in 4 and 5, and seen in 6 and 7, where the trace ends.
        let h = host(
            "h",
            vec![
                run(0, &[5, 4, 6, 6], RunEnd::Lost),
                run(6, &[7, 3], RunEnd::Unknown),
            ],
        );
        assert_eq!(
            starts(&h, Scope::All, &[1, 3]),
            [
                (0, 5, vec![Some(4), Some(4)]),
                (1, 4, vec![Some(4), Some(0)]),
                (2, 6, vec![Some(6), Some(0)]),
                (3, 6, vec![Some(0), Some(0)]),
                (6, 7, vec![Some(3), None]),
                (7, 3, vec![None, None]),
            ]
        );
        // With missing samples instead of sleep, the outcome would be unknown.
        let h = host(
            "h",
            vec![
                run(0, &[5, 4, 6], RunEnd::Unknown),
                run(4, &[7], RunEnd::Unknown),
            ],
        );
        assert_eq!(
            starts(&h, Scope::All, &[1]),
            [
                (0, 5, vec![Some(4)]),
                (1, 4, vec![Some(4)]),
                (2, 6, vec![None]),
                (4, 7, vec![None])
            ]
        );
    }

    #[test]
    fn the_owner_returns_or_is_lost_from_sight() {
        let idle = [Some(true), Some(true), Some(false), None, Some(true)];
        let cells = idle.into_iter().map(|idle| cell(5, idle)).collect();
        let h = host(
            "h",
            vec![Run {
                first: 0,
                cells,
                after: RunEnd::Unknown,
            }],
        );
        assert_eq!(
            starts(&h, Scope::Idle, &[1, 2]),
            [
                (0, 5, vec![Some(5), Some(0)]),
                // The owner returned in cell 2: memory lent in cell 1 is lost. From cell 3 on, idleness is
                // unknown.
                (1, 5, vec![Some(0), None]),
                (2, 0, vec![None, None]),
                (4, 5, vec![None, None]),
            ]
        );
    }

    /// Bytes of a cell, `None` if unknown; 0 between runs in which the host is known to have lost all.
    fn slowly(host: &HostCells, scope: Scope, cell: i64) -> Option<i64> {
        for (i, run) in host.runs.iter().enumerate() {
            if (run.first..run.end()).contains(&cell) {
                return run.cells[(cell - run.first) as usize].quota(scope);
            }
            let next = host.runs.get(i + 1)?;
            if (run.end()..next.first).contains(&cell) {
                return (run.after != RunEnd::Unknown).then_some(0);
            }
        }
        None
    }

    proptest! {
        /// Compares with the plain definition, cell by cell. A gap shorter than a cell has no cell in the
        /// definition: runs that touch are distinguished by their `RunEnd`.
        #[test]
        fn equals_the_slow_version(host in any_host(), ahead in 1..6i64) {
            for scope in SCOPES {
                for (cell, now, kept) in starts(&host, scope, &[ahead]) {
                    prop_assert_eq!(slowly(&host, scope, cell), Some(now));
                    let window = cell..=cell + ahead;
                    let values: Option<Vec<i64>> =
                        window.clone().map(|c| slowly(&host, scope, c)).collect();
                    // Ends of runs inside the window, also that of the last run.
                    let ends = || host.runs.iter().filter(|r| {
                        r.end() > cell && r.end() <= cell + ahead
                    });
                    let unknown = ends().any(|r| r.after == RunEnd::Unknown);
                    let gap = ends().next().is_some();
                    let expected = match values {
                        Some(values) if !unknown => {
                            Some(if gap { 0 } else { values.into_iter().min().unwrap() })
                        }
                        _ => None,
                    };
                    prop_assert_eq!(kept[0], expected);
                }
            }
        }
    }
}
