//! Retention: how long rows are kept, and how many samples of a day. It works on whole UTC days, one step at a time.

use crate::file::arrow_file::ArrowFile;
use crate::file::staged::StagedFile;
use crate::layout;
use crate::manifest::FileEntry;
use crate::rows::order;
use crate::upkeep::thin::DayThinning;
use crate::{DatasetError, Result, Writer};
use arrow::compute::concat_batches;
use arrow::record_batch::RecordBatch;
use gleaner_schemas::arrow::schema;
use gleaner_schemas::column::{Row, Table};
use gleaner_schemas::rows::{
    ActivityRow, CgroupRow, FileRow, MissingValueRow, NumaNodeRow, ProcessRow, SampleRow,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::SystemTime;

/// Tables with the details of which `samples` has the sums.
pub const DETAILS: [&str; 4] = [
    ProcessRow::TABLE.name,
    FileRow::TABLE.name,
    NumaNodeRow::TABLE.name,
    CgroupRow::TABLE.name,
];

/// Tables whose rows belong to samples. The other tables (gaps, hosts, events and clocks) are never thinned.
const THINNED: [Table; 7] = [
    SampleRow::TABLE,
    ProcessRow::TABLE,
    FileRow::TABLE,
    ActivityRow::TABLE,
    MissingValueRow::TABLE,
    NumaNodeRow::TABLE,
    CgroupRow::TABLE,
];

/// Rules of a dataset's retention. Days are counted back from today, in UTC. A field that is unset keeps everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Number of days for which each table's rows are kept, by the table's name.
    pub keep_days: BTreeMap<String, u32>,
    /// Number of days for which the [`DETAILS`] are kept.
    pub details_days: Option<u32>,
    /// Number of days for which all samples are kept; later, fewer are.
    pub thin_after_days: Option<u32>,
    /// Interval to which samples are thinned, in ms. Of each such interval, the sample with the least
    /// available memory is kept, and a few more.
    pub thin_to_ms: i64,
}

/// Result of one step of retention, which changes one UTC day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionStep {
    /// UTC day that the step changed.
    pub date: String,
    /// True if the step thinned the day, false if it dropped files.
    pub thinned: bool,
    /// Number of files that the step removed.
    pub files: usize,
    /// Number of rows that the step removed.
    pub rows: u64,
    /// Bytes that are freed on the disk, once the replaced files are no longer kept for readers.
    pub bytes: u64,
}

impl Writer {
    /// Applies `policy` to one UTC day at the time `now`, durably and atomically; `None` if all days obey the
    /// policy. Rows that are added to such a day later are dropped or thinned by a further step.
    ///
    /// # Errors
    /// The system's error, or a file that is torn or altered; the dataset is then unchanged.
    pub fn retain_step(
        &mut self,
        policy: &Policy,
        now: SystemTime,
    ) -> Result<Option<RetentionStep>> {
        let since_1970 = now
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let today = layout::day(i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX));
        let first_kept = |days: u32| layout::date(today.saturating_sub(i64::from(days)));
        let is_dropped = |file: &FileEntry| {
            let details = policy
                .details_days
                .filter(|_| DETAILS.contains(&file.table.as_str()));
            let days = policy.keep_days.get(&file.table).copied();
            let days = days.into_iter().chain(details).min();
            days.and_then(first_kept)
                .is_some_and(|first| file.date < first)
        };
        let first = self.manifest.files.iter().filter(|f| is_dropped(f));
        if let Some(date) = first.map(|f| f.date.clone()).min() {
            let files = self.manifest.files.iter();
            let dropped = files.filter(|f| f.date == date && is_dropped(f));
            let dropped: Vec<FileEntry> = dropped.cloned().collect();
            let paths: Vec<String> = dropped.iter().map(|f| f.path.clone()).collect();
            self.publish(Vec::new(), &paths)?;
            return Ok(Some(RetentionStep {
                date,
                thinned: false,
                files: dropped.len(),
                rows: dropped.iter().map(|f| f.rows).sum(),
                bytes: dropped.iter().map(|f| f.bytes).sum(),
            }));
        }
        let Some(before) = policy.thin_after_days.and_then(first_kept) else {
            return Ok(None);
        };
        let is_due = |file: &&FileEntry| {
            let is_sparse = file.thinned_to_ms.is_some_and(|ms| ms >= policy.thin_to_ms);
            file.date < before && !is_sparse && THINNED.iter().any(|t| t.name == file.table)
        };
        let due = self.manifest.files.iter().filter(is_due);
        let Some(date) = due.map(|f| f.date.clone()).min() else {
            return Ok(None);
        };
        let thinned = self.thin_day(&date, policy.thin_to_ms);
        if thinned.is_err() {
            // This frees disk space. Files that cannot be removed now are removed when the dataset is next
            // opened.
            self.clear_staging();
        }
        thinned.map(Some)
    }

    /// Thins all tables of a day together, host by host.
    fn thin_day(&mut self, date: &str, to_ms: i64) -> Result<RetentionStep> {
        let mut replaced: Vec<FileEntry> = Vec::new();
        let mut tables: Vec<(Table, Vec<Arc<ArrowFile>>, StagedFile)> = Vec::new();
        let mut hosts: BTreeSet<String> = BTreeSet::new();
        for (at, table) in THINNED.iter().enumerate() {
            let files = self.manifest.files.iter();
            let entries = files.filter(|f| f.table == table.name && f.date == date);
            let mut files = Vec::new();
            for entry in entries {
                let file = self.files.open(&self.root, entry)?;
                for host in file.hosts() {
                    hosts.insert(host?.host_id);
                }
                files.push(file);
                replaced.push(entry.clone());
            }
            let staged = self.staged_file(at, table, date)?.thinned_to(to_ms);
            tables.push((*table, files, staged));
        }
        for host in &hosts {
            let mut thinning: Option<DayThinning> = None;
            for (table, files, staged) in &mut tables {
                let rows = rows_of(table, files, host)?;
                let kept = match &thinning {
                    None if table.name == SampleRow::TABLE.name => {
                        let found = DayThinning::of(&rows, to_ms);
                        let found = found.map_err(DatasetError::rows(table.name))?;
                        thinning.insert(found).samples.clone()
                    }
                    None => rows,
                    Some(thinning) => thinning
                        .rows(table, &rows)
                        .and_then(|rows| order::sorted_once(table, &rows, &[]))
                        .map_err(DatasetError::rows(table.name))?,
                };
                staged.add_host(&kept)?;
            }
        }
        let mut staged = Vec::new();
        for (_, _, file) in tables {
            staged.extend(file.finish()?);
        }
        let sum = |of: fn(&FileEntry) -> u64| -> u64 {
            let before: u64 = replaced.iter().map(of).sum();
            before.saturating_sub(staged.iter().map(|(_, entry)| of(entry)).sum())
        };
        let done = RetentionStep {
            date: date.to_owned(),
            thinned: true,
            files: replaced.len(),
            rows: sum(|f| f.rows),
            bytes: sum(|f| f.bytes),
        };
        let paths: Vec<String> = replaced.into_iter().map(|f| f.path).collect();
        self.publish(staged, &paths)?;
        Ok(done)
    }
}

/// The host's rows in `files`, sorted and without repetitions.
fn rows_of(table: &Table, files: &[Arc<ArrowFile>], host: &str) -> Result<RecordBatch> {
    let wanted = Arc::new(schema(table));
    let mut batches = Vec::new();
    for file in files {
        if let Some(rows) = file.host(host)? {
            batches.extend(file.read(&rows, &wanted)?);
        }
    }
    let rows = concat_batches(&wanted, &batches);
    let rows = if files.len() > 1 {
        rows.and_then(|rows| order::sorted_once(table, &rows, &[]))
    } else {
        rows
    };
    rows.map_err(DatasetError::rows(table.name))
}
