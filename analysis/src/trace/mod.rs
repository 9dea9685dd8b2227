//! One host's trace as it was recorded, and what follows from it alone: runs without gaps, idle periods, the
//! hour of the week of each sample. Every measure reads a [`HostTrace`], which one pass reads once.

pub(crate) mod arrivals;
pub(crate) mod calendar;
mod carried;
pub(crate) mod frame;
pub(crate) mod inventory;
pub(crate) mod reader;
pub(crate) mod samples;
pub(crate) mod span;
pub(crate) mod standing;
pub(crate) mod time_by_hour;

use crate::error::Result;
use crate::owner::busy::{self, BusyPeriod};
use crate::owner::live_files::LiveFiles;
use arrivals::Arrivals;
use calendar::Calendar;
use frame::Frame;
use gleaner_dataset::Dataset;
use gleaner_hosts::derived::{Idleness, Return, returns};
use gleaner_hosts::recorded::{Gap, Intervals, covered_ms, runs};
use gleaner_policy::idle::IdleRule;
use gleaner_schemas::column::Row;
use gleaner_schemas::findings::Parameters;
use gleaner_schemas::rows::{FileRow, ProcessRow};
use inventory::{Inventory, recorded_gaps};
use reader::{HostReader, TIME};
use samples::Samples;
use span::{Lead, Span};
use std::ops::Range;

/// Columns of `processes` that [`HostTrace::processes`] has.
const PROCESS_COLUMNS: [&str; 7] = [
    "pid",
    "started_ms",
    "name",
    "cpu_ms",
    "anon_bytes",
    "shmem_bytes",
    "file_bytes",
];
/// Findings that rest on `processes`: where none of them is wanted, they are not read.
const PROCESS_USERS: [&str; 6] = [
    "top_processes",
    "dip_processes",
    "memory_context",
    "notions",
    "owner_cost",
    "what_if",
];
/// Findings that rest on `files`.
const FILE_USERS: [&str; 5] = [
    "top_files",
    "live_file_cache",
    "memory_usage",
    "memory_usage_by_hour",
    "notions",
];
/// Columns of `files` that [`HostTrace::files`] has.
const FILE_COLUMNS: [&str; 7] = [
    "file_id",
    "path",
    "open_count",
    "mapped_count",
    "cached_bytes",
    "mapped_cached_bytes",
    "opened_count",
];

/// One host of a dataset, with at least one sample.
pub(crate) struct HostTrace<'a> {
    pub(crate) reader: HostReader<'a>,
    pub(crate) samples: Samples,
    pub(crate) inventory: Inventory,
    pub(crate) intervals: Intervals,
    /// Runs of samples without a gap between them.
    pub(crate) segments: Vec<Range<usize>>,
    /// Recorded and seen, in order.
    pub(crate) gaps: Vec<Gap>,
    pub(crate) arrivals: Arrivals,
    pub(crate) rule: IdleRule,
    pub(crate) idleness: Idleness,
    pub(crate) busy_periods: Vec<BusyPeriod>,
    pub(crate) returns: Vec<Return>,
    /// Hour of the week of each sample in the fleet's time zone: 0 is Monday's first, 167 Sunday's last.
    pub(crate) hours_of_week: Vec<u8>,
    /// Active processes in the order of recording.
    pub(crate) processes: SampleRows,
    /// Changes of files in the order of recording.
    pub(crate) files: SampleRows,
    /// What of the page cache is used again soon.
    pub(crate) live_files: LiveFiles,
}

/// Rows that belong to samples.
pub(crate) struct SampleRows {
    pub(crate) rows: Frame,
    /// The sample of each row; `None` for a row without one.
    pub(crate) sample_of: Vec<Option<usize>>,
}

impl SampleRows {
    /// The rows of each sample, which stand together.
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
    /// Reads the host; `None` when it has no samples in the span of time that is asked for.
    pub(crate) fn read(
        dataset: &'a Dataset,
        host: &'a str,
        parameters: &Parameters,
        calendar: &Calendar,
    ) -> Result<Option<Self>> {
        let span = Span::of(parameters);
        let mut reader = HostReader::new(dataset, host, span);
        let mut rows = Samples::rows(&mut reader, parameters)?;
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
            let all = Samples::of(&rows, parameters)?;
            let ((runs, _), _) = runs_of(&all, recorded.clone());
            reader.set_lead(Lead::new(all, &runs, &counts));
            rows = rows.kept(&counts)?;
        }
        let samples = Samples::of(&rows, parameters)?;
        let ((segments, gaps), intervals) = runs_of(&samples, span.cut(recorded));
        let rule = IdleRule {
            idle_after_ms: (parameters.idle_after_s * 1000.0) as i64,
            load_limit: parameters.load_limit,
        };
        let arrivals = Arrivals::read(&mut reader)?;
        let idleness = Idleness::of(&samples.observations(), &segments, &rule);
        let window_ms = (parameters.return_window_s * 1000.0) as i64;
        let nothing = |reader: &HostReader<'_>, table, columns| SampleRows {
            rows: reader.nothing(table, columns),
            sample_of: Vec::new(),
        };
        let mut trace = Self {
            processes: if parameters.wants(&PROCESS_USERS) {
                reader.read_of_samples(&ProcessRow::TABLE, &PROCESS_COLUMNS, &samples)?
            } else {
                nothing(&reader, &ProcessRow::TABLE, &PROCESS_COLUMNS)
            },
            files: if parameters.wants(&FILE_USERS) {
                reader.read_changes(&FileRow::TABLE, &FILE_COLUMNS, &samples)?
            } else {
                nothing(&reader, &FileRow::TABLE, &FILE_COLUMNS)
            },
            busy_periods: busy::periods(&samples, &segments, &idleness, &rule),
            returns: returns(&samples.time_ms, &segments, &idleness, window_ms),
            idleness,
            hours_of_week: calendar.hours_of_week(&samples.time_ms),
            reader,
            samples,
            inventory,
            intervals,
            segments,
            gaps,
            arrivals,
            rule,
            live_files: LiveFiles::default(),
        };
        trace.live_files = LiveFiles::of(&trace)?;
        Ok(Some(trace))
    }

    /// Host id.
    pub(crate) fn host(&self) -> &'a str {
        self.reader.host
    }

    /// Time that samples cover.
    pub(crate) fn covered_ms(&self) -> i64 {
        self.segments
            .iter()
            .map(|s| covered_ms(&self.samples.time_ms, s))
            .sum()
    }

    /// The longest time without a gap.
    pub(crate) fn longest_run_ms(&self) -> i64 {
        let runs = self
            .segments
            .iter()
            .map(|s| covered_ms(&self.samples.time_ms, s));
        runs.max().unwrap_or(0)
    }

    /// Whether it can be told at any time that the host was idle.
    pub(crate) fn idle_can_be_told(&self) -> bool {
        !self.idleness.is_unknown() && self.longest_run_ms() >= self.rule.idle_after_ms
    }
}
