//! What an owner's processes hold after a return: the paper's A.

use super::samples::{Rows, Sample};
use super::{Reading, Result};
use arrow::array::{Array, Int64Array};
use gleaner_dataset::Dataset;
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::ProcessRow;
use std::collections::BTreeMap;

/// A host's active processes, in order of time.
#[derive(Debug, Default)]
pub(super) struct Processes {
    time_ms: Vec<i64>,
    rows: Vec<Process>,
}

#[derive(Clone, Copy, Debug)]
struct Process {
    sequence: i64,
    pid: i64,
    started_ms: Option<i64>,
    /// Proportional memory, as far as it is known.
    bytes: Option<u64>,
}

/// What processes held that were active after a return.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Footprint {
    pub(super) bytes: u64,
    /// Of it, those that had started before.
    pub(super) cached_bytes: u64,
}

impl Processes {
    pub(super) fn read(dataset: &Dataset, host: &str, reading: &Reading) -> Result<Self> {
        let columns = [
            "sequence",
            "time",
            "pid",
            "started_ms",
            "anon_bytes",
            "shmem_bytes",
            "file_bytes",
        ];
        let span = (Some(reading.lead_ms()), Some(reading.until_ms));
        let rows = Rows::read(dataset, &ProcessRow::TABLE, host, &columns, span)?;
        let (time, sequence) = (rows.integers("time")?, rows.integers("sequence")?);
        let (pid, started) = (rows.integers("pid")?, rows.integers("started_ms")?);
        let parts = [
            rows.integers("anon_bytes")?,
            rows.integers("shmem_bytes")?,
            rows.integers("file_bytes")?,
        ];
        let known = |of: &Int64Array, row: usize| (!of.is_null(row)).then(|| of.value(row));
        let process = |row| Process {
            sequence: sequence.value(row),
            pid: pid.value(row),
            started_ms: known(&started, row),
            bytes: (parts.iter())
                .filter_map(|part| known(part, row))
                .map(|bytes| u64::try_from(bytes).unwrap_or(0))
                .reduce(u64::saturating_add),
        };
        Ok(Self {
            time_ms: time.values().to_vec(),
            rows: (0..rows.len()).map(process).collect(),
        })
    }

    /// Of the processes active in `window`, each at its largest; `None` where no size is known. The return was
    /// `returned_ms`.
    pub(super) fn footprint(&self, window: &[Sample], returned_ms: i64) -> Option<Footprint> {
        let first = window.first()?;
        let since_ms = first.time_ms.saturating_sub(returned_ms);
        let returned_boottime_ms = Some(first.boottime_ms?.saturating_sub(since_ms));
        let mut largest: BTreeMap<(i64, Option<i64>), u64> = BTreeMap::new();
        let mut is_unknown = self.rows.is_empty();
        for sample in window {
            for process in self.of_sample(sample) {
                match process.bytes {
                    Some(bytes) => {
                        let key = (process.pid, process.started_ms);
                        let known = largest.entry(key).or_insert(0);
                        *known = bytes.max(*known);
                    }
                    None => is_unknown = true,
                }
            }
        }
        if largest.is_empty() && is_unknown {
            return None;
        }
        let mut found = Footprint::default();
        for ((_, started_ms), bytes) in largest {
            found.bytes = found.bytes.saturating_add(bytes);
            // Where it cannot be told, it may have been there: this is for an upper bound.
            if started_ms
                .zip(returned_boottime_ms)
                .is_none_or(|(started, back)| started < back)
            {
                found.cached_bytes = found.cached_bytes.saturating_add(bytes);
            }
        }
        Some(found)
    }

    fn of_sample(&self, sample: &Sample) -> impl Iterator<Item = &Process> {
        let from = self.time_ms.partition_point(|&t| t < sample.time_ms);
        let to = self.time_ms.partition_point(|&t| t <= sample.time_ms);
        let sequence = sample.sequence;
        let rows = self.rows.get(from..to).unwrap_or_default().iter();
        rows.filter(move |process| process.sequence == sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (time, pid, started, bytes); sequences are times.
    fn processes(rows: &[(i64, i64, i64, Option<u64>)]) -> Processes {
        Processes {
            time_ms: rows.iter().map(|row| row.0).collect(),
            rows: (rows.iter())
                .map(|&(time_ms, pid, started_ms, bytes)| Process {
                    sequence: time_ms,
                    pid,
                    started_ms: Some(started_ms),
                    bytes,
                })
                .collect(),
        }
    }

    fn window(times_ms: &[i64]) -> Vec<Sample> {
        let sample = |&time_ms: &i64| Sample {
            time_ms,
            sequence: time_ms,
            boottime_ms: Some(time_ms + 1000),
            ..Sample::default()
        };
        times_ms.iter().map(sample).collect()
    }

    #[test]
    fn each_process_at_its_largest_and_those_from_before_apart() {
        let of = processes(&[
            (80, 9, 5, Some(1000)), // before the window
            (90, 1, 5, Some(10)),
            (90, 2, 1085, Some(7)),
            (180, 1, 5, Some(30)),
            (180, 1, 1100, Some(100)), // the same pid, started after the return
            (180, 3, 6, None),
            (300, 4, 7, Some(500)), // after the window
        ]);
        // Returned at 88, 1088 since boot: pid 2 had started.
        let found = of.footprint(&window(&[90, 180]), 88);
        let expected = Footprint {
            bytes: 30 + 7 + 100,
            cached_bytes: 30 + 7,
        };
        assert_eq!(found, Some(expected));
    }

    #[test]
    fn sizes_that_nobody_knows_are_not_nothing() {
        assert_eq!(processes(&[]).footprint(&window(&[90]), 88), None);
        let blind = processes(&[(90, 1, 5, None)]);
        assert_eq!(blind.footprint(&window(&[90]), 88), None);
        let nobody = processes(&[(10, 1, 5, Some(4))]);
        let none = Footprint::default();
        assert_eq!(nobody.footprint(&window(&[90]), 88), Some(none));
        assert_eq!(nobody.footprint(&[], 88), None);
    }
}
