//! A grid of time that all hosts share: cells of equal length, aligned to 1970-01-01 UTC.
//!
//! A sample stands for the interval that follows it, so that a run of samples covers the time from its first
//! to its last sample. A host is *seen* in a cell if one run covers the whole cell. It is therefore not seen
//! in a cell in which a gap or the trace begins or ends. The findings use the time-weighted mean or the
//! minimum of a cell's samples. Cells are ten minutes long, and longer if the dataset's days would have more
//! than [`MOST_CELLS`] cells. Samples further apart than a cell fill the cells between them.

use crate::availability::periods::lease_windows::{Break, breaks};
use crate::cluster::cell::{Cell, Figures, PartialCell};
use crate::derived::HostHistory;
use crate::sizes::{Classes, SizeClass};
use gleaner_schemas::findings::Parameters;
use std::ops::Range;

/// Maximum number of cells over the UTC days that have samples.
const MOST_CELLS: f64 = 20_000.0;
const DAY_S: f64 = 86_400.0;
/// Cell lengths in seconds; each divides a day, and those up to an hour divide an hour.
const LENGTHS_S: [f64; 11] = [
    600.0, 900.0, 1200.0, 1800.0, 3600.0, 7200.0, 10_800.0, 14_400.0, 21_600.0, 43_200.0, DAY_S,
];
/// Maximum time for which a sample's figures hold.
const MOST_HELD_MS: i64 = 86_400_000;

/// Length of a cell in a dataset with samples on `days_count` UTC days. If `asked_s` is 0, the length is
/// chosen.
pub(crate) fn cell_s(asked_s: f64, days_count: usize) -> f64 {
    let longer = LENGTHS_S.into_iter().filter(|length| *length > asked_s);
    let asked = (asked_s > 0.0).then_some(asked_s);
    let fits = |length: &f64| days_count as f64 * DAY_S / length <= MOST_CELLS;
    asked.into_iter().chain(longer).find(fits).unwrap_or(DAY_S)
}

/// Length of a cell in milliseconds; the parameters must have been checked.
pub(crate) fn cell_ms(parameters: &Parameters) -> i64 {
    ((parameters.cluster_cell_s * 1000.0) as i64).max(1)
}

/// Longest absence that counts as missing ([`HostCells::missing`]).
const LONGEST_MISSING_MS: i64 = 7 * 86_400_000;

/// State of a host after a run of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// The host was shut down, or crashed: its leases were lost, and it used no memory until it was up again.
    Off,
    /// The host slept, or its agent fell silent: its leases were lost, as for availability periods
    /// (`lease_windows`).
    Lost,
    /// The state is unknown: the trace ends, samples are missing, or the clock was set.
    Unknown,
}

/// Consecutive cells in which a host was seen.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// First cell; for a run without cells, the cell in which it ended.
    pub(crate) first: i64,
    pub(crate) cells: Vec<Cell>,
    pub(crate) after: RunEnd,
}

impl Run {
    /// Number of the cell that follows the run's last cell.
    pub(crate) fn end(&self) -> i64 {
        self.first.saturating_add(self.cells.len() as i64)
    }

    /// Cells with their numbers on the grid.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, &Cell)> {
        (self.first..).zip(&self.cells)
    }
}

/// A host on the grid.
#[derive(Clone, Debug)]
pub(crate) struct HostCells {
    pub(crate) host: String,
    pub(crate) size_class: SizeClass,
    pub(crate) cell_ms: i64,
    /// Runs in the order of recording; each cell is in at most one run.
    pub(crate) runs: Vec<Run>,
}

impl HostCells {
    pub(crate) fn of(host: &HostHistory<'_>, parameters: &Parameters) -> Self {
        let cell_ms = cell_ms(parameters);
        let time = &host.trace.samples.time_ms;
        let physical_bytes = host.trace.samples.physical_bytes.last();
        let mut found = Self {
            host: host.id().to_owned(),
            size_class: Classes::new(&parameters.size_class_bytes)
                .of(physical_bytes.copied().unwrap_or(0)),
            cell_ms,
            runs: Vec::new(),
        };
        let breaks = breaks(host);
        let mut taken = Vec::new();
        for (at, segment) in host.trace.segments.iter().enumerate() {
            let mut from = segment.start;
            for i in segment.start + 1..segment.end {
                if time[i].saturating_sub(time[i - 1]) > MOST_HELD_MS {
                    found.add(host, parameters, from..i, RunEnd::Unknown, &mut taken);
                    from = i;
                }
            }
            let is_new_boot = host.trace.samples.is_new_boot.get(segment.end);
            let after = after(breaks[at], is_new_boot == Some(&true));
            found.add(host, parameters, from..segment.end, after, &mut taken);
        }
        found
    }

    /// Cells between two runs in which the host's samples are missing for an unknown reason. A host missing
    /// for longer than [`LONGEST_MISSING_MS`] is meanwhile no part of the cluster and has none.
    pub(crate) fn missing(&self) -> impl Iterator<Item = i64> {
        let pairs = self.runs.windows(2).filter_map(|pair| match pair {
            [run, next] if run.after == RunEnd::Unknown => Some(run.end()..next.first),
            _ => None,
        });
        let longest = LONGEST_MISSING_MS / self.cell_ms.max(1);
        let short = pairs.filter(move |cells| cells.end.saturating_sub(cells.start) <= longest);
        short.flatten()
    }

    /// Every cell in which the host was seen.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, &Cell)> {
        self.runs.iter().flat_map(Run::iter)
    }

    /// Adds the cells that gapless samples cover, except cells seen before (the clock was set back).
    fn add(
        &mut self,
        host: &HostHistory<'_>,
        parameters: &Parameters,
        samples: Range<usize>,
        after: RunEnd,
        taken: &mut Vec<Range<i64>>,
    ) {
        let cell_ms = self.cell_ms;
        let (Some(&from_ms), Some(&to_ms)) = (
            host.trace.samples.time_ms.get(samples.start),
            host.trace.samples.time_ms.get(samples.end.wrapping_sub(1)),
        ) else {
            return;
        };
        let end = to_ms.div_euclid(cell_ms);
        let first = from_ms.saturating_add(cell_ms - 1).div_euclid(cell_ms);
        if first >= end {
            self.runs.push(Run {
                first: end,
                cells: Vec::new(),
                after,
            });
            return;
        }
        let cells = cells(host, parameters, samples, first..end, cell_ms);
        for part in free_of(first..end, taken) {
            let inside = (part.start - first) as usize..(part.end - first) as usize;
            self.runs.push(Run {
                first: part.start,
                cells: cells[inside].to_vec(),
                after: if part.end == end {
                    after
                } else {
                    RunEnd::Unknown
                },
            });
        }
        taken.push(first..end);
    }
}

/// The parts of a range that no range of `taken` covers.
fn free_of(range: Range<i64>, taken: &[Range<i64>]) -> Vec<Range<i64>> {
    let mut free = vec![range];
    for t in taken {
        // Nearly always no range overlaps, since clocks go forward.
        if free.iter().any(|r| r.start < t.end && t.start < r.end) {
            let parts = |r: Range<i64>| [r.start..r.end.min(t.start), r.start.max(t.end)..r.end];
            let parts = free.into_iter().flat_map(parts);
            free = parts.filter(|r| r.start < r.end).collect();
        }
    }
    free
}

/// State of a host after a break; `is_new_boot` is true if the host was booted in it.
fn after(found: Break, is_new_boot: bool) -> RunEnd {
    match found.end {
        Some(_) if found.is_blind => RunEnd::Unknown,
        Some(_) if is_new_boot => RunEnd::Off,
        Some(_) => RunEnd::Lost,
        None => RunEnd::Unknown,
    }
}

/// Figures of the cells `wanted`, all of which the samples cover.
fn cells(
    host: &HostHistory<'_>,
    parameters: &Parameters,
    samples: Range<usize>,
    wanted: Range<i64>,
    cell_ms: i64,
) -> Vec<Cell> {
    let time = &host.trace.samples.time_ms;
    let periods = &host.idleness.periods;
    // Periods are in the order of their samples, and within a run in order of time.
    let first = periods.partition_point(|p| p.samples.start < samples.start);
    let last = periods.partition_point(|p| p.samples.start < samples.end);
    let periods = &periods[first..last];
    let can_show_idle = host.can_show_idle();
    let mut building = vec![PartialCell::default(); (wanted.end - wanted.start) as usize];
    for i in samples.start..samples.end.saturating_sub(1) {
        let to_ms = time[i + 1].min(wanted.end.saturating_mul(cell_ms));
        let mut at_ms = time[i].max(wanted.start.saturating_mul(cell_ms));
        let figures = Figures::of(host, i, parameters.headroom_share, can_show_idle);
        while at_ms < to_ms {
            let cell = at_ms.div_euclid(cell_ms);
            let until_ms = to_ms.min((cell + 1).saturating_mul(cell_ms));
            let cell = &mut building[(cell - wanted.start) as usize];
            cell.add(&figures, at_ms..until_ms, periods);
            at_ms = until_ms;
        }
    }
    let starts = wanted.clone().map(|cell| cell.saturating_mul(cell_ms));
    let finished = building.iter().zip(starts);
    let mut cells: Vec<Cell> = finished
        .map(|(cell, start_ms)| cell.finish(start_ms, cell_ms, periods))
        .collect();
    // During an outage the host is up but unreachable, and lends nothing.
    let (from_ms, to_ms) = (time[samples.start], time[samples.end - 1]);
    for outage in host.trace.arrivals.outages(from_ms, to_ms) {
        let first = outage.from_ms.div_euclid(cell_ms).max(wanted.start);
        let last = (outage.to_ms - 1).div_euclid(cell_ms).min(wanted.end - 1);
        for cell in first..=last {
            cells[(cell - wanted.start) as usize].least_quota_bytes = 0;
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_ten_minutes_unless_there_are_too_many() {
        let cases = [
            (0.0, 1, 600.0),
            (0.0, 14, 600.0),
            (0.0, 138, 600.0),
            (0.0, 139, 900.0),
            (0.0, 366, 1800.0),
            (0.0, 30_000, DAY_S),
            (60.0, 1, 60.0),
            (60.0, 14, 600.0),
            (700.0, 300, 1800.0),
        ];
        for (asked, days, expected) in cases {
            assert_eq!(cell_s(asked, days), expected, "{asked} {days}");
        }
    }

    #[test]
    fn what_was_taken_is_left_out() {
        let taken = [0..10, 20..30];
        assert_eq!(free_of(30..40, &taken), [30..40]);
        assert_eq!(free_of(5..25, &taken), [10..20]);
        assert_eq!(free_of(-5..35, &taken), [-5..0, 10..20, 30..35]);
        assert_eq!(free_of(2..8, &taken), []);
    }
}
