//! Memory of the owner's processes after a return: A in the paper's memory context.

use super::samples::{Rows, Sample};
use super::{Reading, Result};
use arrow::array::{Array, Int64Array};
use gleaner_dataset::Dataset;
use gleaner_hosts::derived::{Footprint, Process, returned_boottime_ms};
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::ProcessRow;

/// Active processes of a host, in order of time.
#[derive(Debug, Default)]
pub(super) struct Processes {
    time_ms: Vec<i64>,
    /// Active processes, each with the sequence number of its sample.
    rows: Vec<(i64, Process)>,
}

impl Processes {
    pub(super) fn read(dataset: &Dataset, host: &str, reading: &Reading) -> Result<Self> {
        let columns = [
            "sequence",
            "time",
            "pid",
            "start_boottime_ms",
            "anon_bytes",
            "shmem_bytes",
            "file_bytes",
        ];
        let span = (Some(reading.lead_ms()), Some(reading.until_ms));
        let rows = Rows::read(dataset, &ProcessRow::TABLE, host, &columns, span)?;
        let (time, sequence) = (rows.integers("time")?, rows.integers("sequence")?);
        let (pid, started) = (rows.integers("pid")?, rows.integers("start_boottime_ms")?);
        let parts = [
            rows.integers("anon_bytes")?,
            rows.integers("shmem_bytes")?,
            rows.integers("file_bytes")?,
        ];
        let known = |of: &Int64Array, row: usize| (!of.is_null(row)).then(|| of.value(row));
        let process = |row| {
            let parts = [0, 1, 2].map(|part| known(&parts[part], row));
            let process = Process::new(known(&pid, row), known(&started, row), parts);
            (sequence.value(row), process)
        };
        Ok(Self {
            time_ms: time.values().to_vec(),
            rows: (0..rows.len()).map(process).collect(),
        })
    }

    /// Memory of the processes that are active in `window`, after the return at `returned_ms`. `None` if no
    /// size is known.
    pub(super) fn footprint(&self, window: &[Sample], returned_ms: i64) -> Option<Footprint> {
        let first = window.first()?;
        Footprint::of(
            !self.rows.is_empty(),
            window.iter().flat_map(|sample| self.of_sample(sample)),
            returned_boottime_ms(first.time_ms, first.boottime_ms, returned_ms),
        )
    }

    fn of_sample(&self, sample: &Sample) -> impl Iterator<Item = Process> {
        let from = self.time_ms.partition_point(|&t| t < sample.time_ms);
        let to = self.time_ms.partition_point(|&t| t <= sample.time_ms);
        let sequence = sample.sequence;
        let rows = self.rows.get(from..to).unwrap_or_default().iter();
        let of_sample = rows.filter(move |(of, _)| *of == sequence);
        of_sample.map(|(_, process)| *process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes processes from (time, pid, start since boot, bytes); sequence numbers equal the times.
    fn processes(rows: &[(i64, i64, i64, Option<u64>)]) -> Processes {
        Processes {
            time_ms: rows.iter().map(|row| row.0).collect(),
            rows: (rows.iter())
                .map(|&(time_ms, pid, start_boottime_ms, bytes)| {
                    let process = Process {
                        pid: Some(pid),
                        start_boottime_ms: Some(start_boottime_ms),
                        bytes,
                    };
                    (time_ms, process)
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
        // The owner returns at 88, which is 1088 since boot. Process 2 was started before, at 1085.
        let found = of.footprint(&window(&[90, 180]), 88);
        let expected = Footprint {
            bytes: 30 + 7 + 100,
            cached_bytes: 30 + 7,
        };
        assert_eq!(found, Some(expected));
        assert_eq!(of.footprint(&[], 88), None);
    }
}
