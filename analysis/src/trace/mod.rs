//! A host's trace as recorded: samples in order, runs without gaps, rows of other tables. Derived figures are
//! in `crate::derived`.

pub(crate) mod arrivals;
pub(crate) mod calendar;
mod carried;
pub(crate) mod frame;
pub(crate) mod inventory;
pub(crate) mod reader;
pub(crate) mod reads;
pub(crate) mod samples;
pub(crate) mod span;
pub(crate) mod standing;
pub(crate) mod time_by_hour;

use crate::error::Result;
use arrivals::Arrivals;
use frame::{Frame, TIME};
use gleaner_dataset::Dataset;
use gleaner_hosts::recorded::{Gap, Intervals, covered_ms, runs};
use gleaner_schemas::column::Row;
use gleaner_schemas::findings::Parameters;
use gleaner_schemas::rows::{FileRow, ProcessRow, SampleRow};
use inventory::{Inventory, recorded_gaps};
use reader::HostReader;
use reads::ReadSet;
use samples::Samples;
use span::{Lead, Span};
use std::ops::Range;

/// Columns of `processes` that [`HostTrace::processes`] contains.
const PROCESS_COLUMNS: [&str; 7] = [
    "pid",
    "start_boottime_ms",
    "name",
    "cpu_ms",
    "anon_bytes",
    "shmem_bytes",
    "file_bytes",
];
/// Columns of `files` that [`HostTrace::files`] contains.
const FILE_COLUMNS: [&str; 7] = [
    "file_id",
    "path",
    "open_processes_count",
    "mapping_processes_count",
    "cached_bytes",
    "mapped_cached_bytes",
    "opens_count",
];

/// A host of a dataset, with at least one sample.
pub(crate) struct HostTrace<'a> {
    pub(crate) reader: HostReader<'a>,
    pub(crate) samples: Samples,
    pub(crate) inventory: Inventory,
    pub(crate) intervals: Intervals,
    /// Runs of samples without a gap between them.
    pub(crate) segments: Vec<Range<usize>>,
    /// Gaps recorded by the host or derived from missing samples, in order.
    pub(crate) gaps: Vec<Gap>,
    pub(crate) arrivals: Arrivals,
    /// Active processes in the order of recording.
    pub(crate) processes: SampleRows,
    /// Changes of files in the order of recording.
    pub(crate) files: SampleRows,
}

/// Rows of another table, each with its sample.
pub(crate) struct SampleRows {
    pub(crate) rows: Frame,
    /// The sample of each row; `None` for a row without one.
    pub(crate) sample_of: Vec<Option<usize>>,
}

impl SampleRows {
    /// The range of rows of each sample; a sample's rows are adjacent.
    pub(crate) fn by_sample(&self, samples_count: usize) -> Vec<Range<usize>> {
        let mut of = vec![0..0; samples_count];
        for (row, sample) in self.sample_of.iter().enumerate() {
            if let Some(rows) = sample.and_then(|sample| of.get_mut(sample)) {
                if rows.start == rows.end {
                    rows.start = row;
                }
                rows.end = row + 1;
            }
        }
        of
    }
}

impl<'a> HostTrace<'a> {
    /// Reads the host; `None` if it has no samples in the requested time.
    pub(crate) fn read(
        dataset: &'a Dataset,
        host: &'a str,
        parameters: &Parameters,
        reads: ReadSet,
    ) -> Result<Option<Self>> {
        let span = Span::of(parameters);
        let mut reader = HostReader::new(dataset, host, span);
        // Rows of the span, and of the span's first UTC day before its begin.
        let since_midnight = span.since_midnight();
        let columns = Samples::columns(reads);
        let mut rows = reader.read_in(since_midnight, &SampleRow::TABLE, &columns)?;
        let counts = rows
            .present(TIME)?
            .iter()
            .map(|&time_ms| span.holds(time_ms));
        let counts: Vec<bool> = counts.collect();
        if !counts.contains(&true) {
            return Ok(None);
        }
        let inventory = Inventory::read(&mut reader)?;
        let recorded = recorded_gaps(&mut reader)?;
        let runs_of = |samples: &Samples, recorded| {
            let intervals = Intervals::new(inventory.intervals.clone(), &samples.time_ms);
            (runs(&samples.times(), recorded, &intervals), intervals)
        };
        if counts.contains(&false) {
            let all = Samples::of(&rows, reads, parameters.headroom_share)?;
            let ((runs, _), _) = runs_of(&all, recorded.clone());
            reader.set_lead(Lead::new(all, &runs, &counts));
            rows = rows.filter_rows(&counts)?;
        }
        let samples = Samples::of(&rows, reads, parameters.headroom_share)?;
        let ((segments, gaps), intervals) = runs_of(&samples, span.cut(recorded));
        let arrivals = Arrivals::read(&mut reader)?;
        let nothing = |reader: &HostReader<'_>, table, columns| SampleRows {
            rows: reader.nothing(table, columns),
            sample_of: Vec::new(),
        };
        Ok(Some(Self {
            processes: if reads.processes {
                reader.read_of_samples(&ProcessRow::TABLE, &PROCESS_COLUMNS, &samples)?
            } else {
                nothing(&reader, &ProcessRow::TABLE, &PROCESS_COLUMNS)
            },
            files: if reads.files {
                reader.read_changes(&FileRow::TABLE, &FILE_COLUMNS, &samples)?
            } else {
                nothing(&reader, &FileRow::TABLE, &FILE_COLUMNS)
            },
            reader,
            samples,
            inventory,
            intervals,
            segments,
            gaps,
            arrivals,
        }))
    }

    /// Id of the host.
    pub(crate) fn host(&self) -> &'a str {
        self.reader.host
    }

    /// Time covered by samples.
    pub(crate) fn covered_ms(&self) -> i64 {
        self.segments
            .iter()
            .map(|s| covered_ms(&self.samples.time_ms, s))
            .sum()
    }

    /// Length of the longest run without a gap.
    pub(crate) fn longest_run_ms(&self) -> i64 {
        let runs = self
            .segments
            .iter()
            .map(|s| covered_ms(&self.samples.time_ms, s));
        runs.max().unwrap_or(0)
    }
}
