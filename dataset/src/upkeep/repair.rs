//! Repair: sets damaged files aside, saves their valid rows, and counts the lost ones.

use crate::layout::lock::Lock;
use crate::layout::names::WriterName;
use crate::layout::{self, DAMAGED, LOCK};
use crate::manifest::{FileEntry, Manifest};
use crate::upkeep::rebuild::{entry_of, rebuilt};
use crate::upkeep::salvage::Salvage;
use crate::upkeep::verify::{Problem, ProblemKind, problem};
use crate::{DatasetError, Result, Writer};
use gleaner_schemas::rows::table;
use std::fs;
use std::path::Path;

/// Result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairResult {
    /// True if `manifest.json` was missing or damaged, and was rebuilt from the files.
    pub manifest_rebuilt: bool,
    /// Damaged files; each is now under `.damaged/`.
    pub problems: Vec<Problem>,
    /// Number of rows of the damaged files that were saved into new files.
    pub saved_rows: u64,
    /// Number of saved rows without a hash, because the end of their file was lost. It is only known that
    /// they are complete rows of that day.
    pub unproven_rows: u64,
    /// Rows that could not be saved, by table, day and host.
    pub lost: Vec<LostRows>,
}

/// Rows of one table, day and host that could not be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRows {
    /// Name of the table.
    pub table: String,
    /// UTC day of the rows.
    pub date: String,
    /// Id of the host; absent if the file no longer contains it.
    pub host_id: Option<String>,
    /// Number of rows; absent if unknown.
    pub rows: Option<u64>,
}

/// Repairs the dataset at `root`, which no other program may have open for writing. Does the same as
/// [`Writer::repair`]; also rebuilds a missing or damaged manifest from the files' footers.
///
/// # Errors
/// [`DatasetError::NotADataset`] if there are no files to rebuild a manifest from, [`DatasetError::Locked`],
/// or the system's error. After an error, every file is either repaired or unchanged, and the repair can be repeated.
pub fn repair(root: impl AsRef<Path>) -> Result<RepairResult> {
    let root = root.as_ref();
    layout::check_folder(root)?;
    let nothing = |_| DatasetError::NotADataset {
        root: root.to_owned(),
    };
    let root = fs::canonicalize(root).map_err(nothing)?;
    let mut names = WriterName::with_manifest(&root)?;
    let files = layout::arrow_files(&root)?;
    names.extend(files.iter().map(|path| WriterName::of_file(path)));
    if names.is_empty() && root.join(LOCK).exists() {
        names.insert(WriterName::default()); // a dataset without files
    }
    if names.is_empty() {
        return Err(DatasetError::NotADataset { root });
    }
    let mut repaired = RepairResult::default();
    for name in names {
        let one = repair_of(&root, name)?;
        repaired.manifest_rebuilt |= one.manifest_rebuilt;
        repaired.problems.extend(one.problems);
        repaired.saved_rows += one.saved_rows;
        repaired.unproven_rows += one.unproven_rows;
        repaired.lost.extend(one.lost);
    }
    Ok(repaired)
}

/// Repairs the files of one writer.
fn repair_of(root: &Path, name: WriterName) -> Result<RepairResult> {
    let lock = Lock::take(root, &name)?;
    let (manifest, manifest_rebuilt) = match Manifest::load(root, &name) {
        Ok(manifest) => (manifest, false),
        Err(
            DatasetError::Manifest { .. }
            | DatasetError::ManifestAltered { .. }
            | DatasetError::NotADataset { .. },
        ) => (rebuilt(root, &name)?, true),
        Err(other) => return Err(other),
    };
    let mut writer = Writer::begin(root.to_owned(), name, manifest, lock)?;
    if manifest_rebuilt {
        let place = writer.name.manifest();
        set_aside(root, &place)?;
        if let Some((folder, _)) = place.rsplit_once('/') {
            layout::create_folders(root, folder)?;
        }
        writer.publish(Vec::new(), &[])?;
    }
    let mut repaired = writer.repair()?;
    if manifest_rebuilt {
        writer.drop_repeats()?;
    }
    repaired.manifest_rebuilt = manifest_rebuilt;
    Ok(repaired)
}

impl Writer {
    /// Reads every file completely. A file that differs from the sealed one is kept under `.damaged/`. A new
    /// file replaces it, with those of its record batches whose hashes are right. The dataset then passes
    /// [`crate::Dataset::verify`]. A sender that still has the lost rows can send them again.
    ///
    /// # Errors
    /// The system's error; files that are already repaired stay repaired.
    pub fn repair(&mut self) -> Result<RepairResult> {
        let mut repaired = RepairResult::default();
        for entry in self.manifest.files.clone() {
            let Some(problem) = problem(&self.root, &entry) else {
                continue;
            };
            if matches!(problem.kind, ProblemKind::Entry(_)) {
                self.restate(&entry)?;
            } else {
                self.repair_file(&entry, &mut repaired)?;
            }
            repaired.problems.push(problem);
        }
        if !repaired.problems.is_empty() {
            self.marks = None; // rows may have been lost
            self.unsound.clear();
        }
        Ok(repaired)
    }

    /// Recomputes the manifest's entry of a sound file from the file.
    fn restate(&mut self, entry: &FileEntry) -> Result<()> {
        let restated = entry_of(&self.root, &entry.path)?;
        let files = self.manifest.files.iter_mut();
        for file in files.filter(|file| file.path == entry.path) {
            restated.clone_into(file);
        }
        self.publish(Vec::new(), &[])
    }

    fn repair_file(&mut self, entry: &FileEntry, repaired: &mut RepairResult) -> Result<()> {
        let Some(table) = table(&entry.table) else {
            return Ok(()); // a table that this program does not know
        };
        let mut lost = |host_id: Option<&str>, rows: Option<u64>| {
            if rows != Some(0) {
                repaired.lost.push(LostRows {
                    table: entry.table.clone(),
                    date: entry.date.clone(),
                    host_id: host_id.map(str::to_owned),
                    rows,
                });
            }
        };
        let known_rows = (!entry.footer_blake3.is_empty()).then_some(entry.rows);
        let mut staged = None;
        if let Some(salvage) = Salvage::open(&self.root, entry, &table) {
            let file = self.staged_file(0, &table, &entry.date)?;
            let mut file = file.thinned_to(entry.thinned_to_ms);
            let saved = salvage.save(&table, &entry.date, &mut file)?;
            staged = file.finish()?;
            repaired.saved_rows += saved.rows;
            repaired.unproven_rows += saved.unproven_rows;
            match &salvage.index {
                Some(index) => {
                    for host in index.hosts().filter_map(Result::ok) {
                        let saved = saved.by_host.get(&host.host_id).copied().unwrap_or(0);
                        lost(Some(&host.host_id), Some(host.rows.saturating_sub(saved)));
                    }
                }
                None => lost(None, known_rows.map(|rows| rows.saturating_sub(saved.rows))),
            }
        } else {
            lost(None, known_rows);
        }
        set_aside(&self.root, &entry.path)?;
        self.publish(
            staged.into_iter().collect(),
            std::slice::from_ref(&entry.path),
        )
    }

    /// Merges the files of each table and day whose records overlap. A writer that died in a compaction
    /// leaves the old files and the merged one; only the lost manifest stated which of them are valid.
    fn drop_repeats(&mut self) -> Result<()> {
        let mut days: Vec<(String, String)> = Vec::new();
        days.extend(
            self.manifest
                .files
                .iter()
                .map(|f| (f.table.clone(), f.date.clone())),
        );
        days.dedup();
        for (table, date) in days {
            let files = self.manifest.files.iter();
            let files: Vec<FileEntry> = files
                .filter(|f| f.table == table && f.date == date)
                .cloned()
                .collect();
            if files.len() > 1 && self.overlap(&files)? {
                self.merge_files(&files, u64::MAX)?;
            }
        }
        Ok(())
    }

    fn overlap(&self, entries: &[FileEntry]) -> Result<bool> {
        let mut bounds: Vec<(String, String, i64, i64)> = Vec::new();
        for entry in entries {
            for host in self.files.open(&self.root, entry)?.hosts() {
                let host = host?;
                bounds.extend(host.databases.into_iter().map(|d| {
                    let id = host.host_id.clone();
                    (id, d.database_id, d.first_sequence, d.last_sequence)
                }));
            }
        }
        bounds.sort();
        Ok(bounds
            .windows(2)
            .any(|w| (&w[0].0, &w[0].1) == (&w[1].0, &w[1].1) && w[1].2 <= w[0].3))
    }
}

/// Keeps a copy of the file at `relative` under `.damaged/`; earlier copies stay. The file itself stays in
/// its place until the manifest no longer names it.
fn set_aside(root: &Path, relative: &str) -> Result<()> {
    let from = root.join(relative);
    if !from.exists() {
        return Ok(());
    }
    let folder = relative.rsplit_once('/').map_or("", |(folder, _)| folder);
    let folder = format!("{DAMAGED}/{folder}");
    layout::create_folders(root, folder.trim_end_matches('/'))?;
    let mut to = root.join(DAMAGED).join(relative);
    for number in 2.. {
        if !to.exists() {
            break;
        }
        to = root.join(DAMAGED).join(format!("{relative}.{number}"));
    }
    fs::hard_link(&from, &to)
        .or_else(|_| fs::copy(&from, &to).map(|_| ())) // for file systems without hard links
        .map_err(DatasetError::io("set a damaged file aside as", &to))?;
    to.parent().map_or(Ok(()), layout::sync_folder)
}
