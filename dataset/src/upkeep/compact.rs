//! Compaction: merges small files of one table and day into a few large ones, one step at a time.

use crate::file::arrow_file::ArrowFile;
use crate::layout;
use crate::manifest::FileEntry;
use crate::upkeep::merge::Merge;
use crate::{DatasetError, Result, Writer};
use gleaner_schemas::column::Table;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Maximum number of files merged together; of each file, one decoded batch is in memory.
const FILES_AT_ONCE: usize = 32;

/// Rules for merging files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// Number of files of similar size, of one table and day, that are merged together. A row is then
    /// rewritten about log(rows of a day) times. A file is not rewritten together with smaller files that
    /// have less than 1/`fan` of its rows in total.
    pub fan: usize,
    /// Time without new files after which all files of a past day are merged into one.
    pub quiet: Duration,
    /// Length from which a file is not merged any more. New files end at about this length.
    pub file_bytes: u64,
}

impl Default for Compaction {
    fn default() -> Self {
        Self {
            fan: 8,
            quiet: Duration::from_secs(6 * 3600),
            file_bytes: 512 << 20,
        }
    }
}

/// Result of one step of a compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionStep {
    /// Table whose files were merged.
    pub table: String,
    /// UTC day of the files.
    pub date: String,
    /// Number of files before the step.
    pub merged_files: usize,
    /// Number of files after the step.
    pub files: usize,
    /// Number of rows in the new files.
    pub rows: u64,
    /// Total length of the new files, in bytes.
    pub bytes: u64,
    /// Number of rows that more than one file held.
    pub repeated_rows: u64,
}

impl Writer {
    /// Merges some files of one table and day, durably and atomically; `None` if there is nothing to merge at
    /// the time `now`. One host's rows of that table and day are in memory at a time. Appended rows stay as they are.
    ///
    /// # Errors
    /// The system's error; the dataset is then unchanged. A file that is torn, altered or unreadable is
    /// reported once; later steps leave it out.
    pub fn compact_step(
        &mut self,
        compaction: &Compaction,
        now: SystemTime,
    ) -> Result<Option<CompactionStep>> {
        let Some(files) = self.choose(compaction, now) else {
            return Ok(None);
        };
        let done = self.merge_files(&files, compaction.file_bytes);
        if done.is_err() {
            // This frees disk space. Files that cannot be removed now are removed when the dataset is next
            // opened.
            self.clear_staging();
        }
        done.map(Some)
    }

    /// Chooses the files to merge in the next step.
    fn choose(&self, compaction: &Compaction, now: SystemTime) -> Option<Vec<FileEntry>> {
        let mut days: BTreeMap<(&str, &str), Vec<&FileEntry>> = BTreeMap::new();
        for file in &self.manifest.files {
            if file.bytes < compaction.file_bytes && !self.unsound.contains(&file.path) {
                let day = days.entry((&file.table, &file.date)).or_default();
                day.push(file);
            }
        }
        days.into_values().find_map(|mut files| {
            files.sort_by_key(|f| f.rows);
            let mut chosen = tier(&files, compaction.fan);
            if chosen.is_empty() && files.len() > 1 && self.is_quiet(&files, compaction.quiet, now)
            {
                chosen = merge_candidates(&files, compaction.fan);
            }
            chosen = &chosen[..chosen.len().min(FILES_AT_ONCE)];
            (chosen.len() > 1).then(|| chosen.iter().map(|f| (*f).clone()).collect())
        })
    }

    /// Returns true if the day of `files` is over, and none of them was added within the last `quiet`.
    fn is_quiet(&self, files: &[&FileEntry], quiet: Duration, now: SystemTime) -> bool {
        let Some(before) = now.checked_sub(quiet) else {
            return false;
        };
        let since_1970 = before.duration_since(SystemTime::UNIX_EPOCH);
        let before_ms = since_1970.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX));
        let today = layout::date(layout::day(before_ms));
        let is_over = |f: &FileEntry| Some(&f.date) < today.as_ref();
        let is_old = |f: &FileEntry| {
            let modified = fs::metadata(self.root.join(&f.path)).and_then(|m| m.modified());
            modified.is_ok_and(|at| at <= before)
        };
        files.iter().all(|f| is_over(f) && is_old(f))
    }

    pub(crate) fn merge_files(
        &mut self,
        entries: &[FileEntry],
        file_bytes: u64,
    ) -> Result<CompactionStep> {
        let [first, ..] = entries else {
            return Err(wrong("", "nothing to merge"));
        };
        let table = gleaner_schemas::rows::table(&first.table)
            .ok_or_else(|| wrong(&first.table, "no table"))?;
        let mut files: Vec<Arc<ArrowFile>> = Vec::new();
        for entry in entries {
            match self.files.open(&self.root, entry) {
                Ok(file) => files.push(file),
                Err(error) => {
                    self.unsound.insert(entry.path.clone());
                    return Err(error);
                }
            }
        }
        // The merged file counts as thinned only if all files were, and then to the shortest of their intervals.
        let thinned_to_ms = entries.iter().map(|e| e.thinned_to_ms).min().flatten();
        let staged = self.write_merged(&table, &first.date, &files, file_bytes, thinned_to_ms);
        let staged = staged.inspect_err(|error| {
            // The error has an absolute path, but the manifest's paths are relative.
            if let DatasetError::Altered { path, .. } = error
                && let Some(entry) = entries.iter().find(|e| self.root.join(&e.path) == *path)
            {
                self.unsound.insert(entry.path.clone());
            }
        })?;
        let rows_before: u64 = entries.iter().map(|e| e.rows).sum();
        let rows: u64 = staged.iter().map(|(_, entry)| entry.rows).sum();
        let done = CompactionStep {
            table: first.table.clone(),
            date: first.date.clone(),
            merged_files: entries.len(),
            files: staged.len(),
            rows,
            bytes: staged.iter().map(|(_, entry)| entry.bytes).sum(),
            repeated_rows: rows_before.saturating_sub(rows),
        };
        let replaced: Vec<String> = entries.iter().map(|e| e.path.clone()).collect();
        self.publish(staged, &replaced)?;
        Ok(done)
    }

    /// Writes the rows of `files`, host by host, into files of about `file_bytes`.
    fn write_merged(
        &self,
        table: &Table,
        date: &str,
        files: &[Arc<ArrowFile>],
        file_bytes: u64,
        thinned_to_ms: Option<i64>,
    ) -> Result<Vec<(PathBuf, FileEntry)>> {
        let mut staged = Vec::new();
        let mut next = None;
        for rows in Merge::new(table, files) {
            let mut file = match next.take() {
                Some(file) => file,
                None => self
                    .staged_file(staged.len(), table, date)?
                    .thinned_to(thinned_to_ms),
            };
            file.add_host(&rows?)?;
            if file.bytes() < file_bytes {
                next = Some(file);
            } else {
                staged.extend(file.finish()?);
            }
        }
        if let Some(file) = next {
            staged.extend(file.finish()?);
        }
        Ok(staged)
    }
}

/// Returns `fan` files of similar size, or none if there are not so many; `files` are ordered by number of rows.
fn tier<'a, 'b>(files: &'a [&'b FileEntry], fan: usize) -> &'a [&'b FileEntry] {
    let fan = fan.max(2);
    let mut windows = files.windows(fan);
    let same =
        windows.find(|w| w[fan - 1].rows.saturating_mul(2) <= w[0].rows.saturating_mul(fan as u64));
    same.unwrap_or_default()
}

/// Returns the files up to the last one that has at most `fan` times as many rows as all smaller ones
/// together. A much larger file is thus not rewritten for a few late rows. `files` are ordered by number of rows.
fn merge_candidates<'a, 'b>(files: &'a [&'b FileEntry], fan: usize) -> &'a [&'b FileEntry] {
    let mut before = 0_u64;
    let mut end = 0;
    for (at, file) in files.iter().enumerate() {
        if file.rows <= before.saturating_mul(fan as u64) {
            end = at + 1;
        }
        before = before.saturating_add(file.rows);
    }
    &files[..end]
}

fn wrong(table: &str, detail: &str) -> DatasetError {
    DatasetError::WrongSchema {
        table: table.to_owned(),
        detail: detail.to_owned(),
    }
}
