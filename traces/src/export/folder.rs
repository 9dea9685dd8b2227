//! The folder of an export: the file that identifies it as an export, and the removal of an earlier export.

use super::unfinished::hidden;
use super::{Format, names};
use crate::{ExportError, Result};
use gleaner_dataset::Dataset;
use gleaner_schemas::rows::DATASET_TABLES;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// File that distinguishes an export from any other folder.
const MARK: &str = "gleaner-export.json";

/// Prepares `out_dir`: creates the folder, or removes the export in it. Rejects a folder with other files.
pub(super) fn begin(out_dir: &Path, format: &str) -> Result<()> {
    let cannot = |action| ExportError::io::<io::Error>(action, out_dir);
    fs::create_dir_all(out_dir).map_err(cannot("create folder"))?;
    let is_empty = fs::read_dir(out_dir)
        .map_err(cannot("list folder"))?
        .next()
        .is_none();
    if !is_empty && !out_dir.join(MARK).is_file() {
        return Err(ExportError::NotEmpty {
            folder: out_dir.to_owned(),
        });
    }
    mark(out_dir, format, false)?;
    remove_export(out_dir).map_err(cannot("remove the export before from"))
}

/// Writes the file that identifies the folder as an export.
pub(super) fn mark(out_dir: &Path, format: &str, is_whole: bool) -> Result<()> {
    let path = out_dir.join(MARK);
    let text = serde_json::json!({ "format": format, "is_whole": is_whole });
    fs::write(&path, format!("{text:#}\n")).map_err(ExportError::io("write", path))
}

/// Adds the meaning of imported hosts' figures to a finished export's description, if the dataset
/// has imported hosts.
///
/// # Errors
/// Errors of reading or writing.
pub fn describe_sources(dataset: &Dataset, out_dir: &Path) -> Result<()> {
    let sources = &dataset.manifest().sources;
    if sources.is_empty() {
        return Ok(());
    }
    let path = out_dir.join(MARK);
    let text = fs::read(&path).map_err(ExportError::io("read", &path))?;
    let mark: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(&text).map_err(ExportError::io("read", &path))?;
    let mut mark = serde_json::Value::Object(mark);
    mark["sources"] = serde_json::json!(sources);
    fs::write(&path, format!("{mark:#}\n")).map_err(ExportError::io("write", path))
}

/// Removes an export's files and the folders left empty; nothing else.
fn remove_export(out_dir: &Path) -> io::Result<()> {
    for table in &DATASET_TABLES {
        let folder = out_dir.join(table.name);
        for date in entries(&folder)? {
            for format in Format::ALL {
                remove(&date.join(format!("{}.{}", table.name, format.ending())))?;
            }
            remove_if_empty(&date)?;
        }
        remove_if_empty(&folder)?;
    }
    let columns = names::AVAILABILITY
        .iter()
        .flat_map(|name| Format::ALL.map(|format| format!("{name}.{}", format.ending())));
    let texts = names::FTA.into_iter().chain([names::PLATFORM]);
    for name in columns.chain(texts.map(str::to_owned)) {
        remove(&out_dir.join(name))?;
    }
    let profiles = out_dir.join(names::PROFILES);
    for path in entries(&profiles)? {
        // Incomplete files have one more suffix.
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(".unfinished").unwrap_or(&name);
        let is_ours = |ending: &str| name.rsplit_once('.').is_some_and(|(_, e)| e == ending);
        if names::ENDINGS.into_iter().any(is_ours) {
            fs::remove_file(&path)?;
        }
    }
    remove_if_empty(&profiles)
}

/// Entries of a folder; none if it does not exist.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect()
}

/// Removes a file, complete or not.
fn remove(path: &Path) -> io::Result<()> {
    for path in [path, &hidden(path)] {
        if path.is_file() {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

fn remove_if_empty(folder: &Path) -> io::Result<()> {
    if folder.is_dir() && fs::read_dir(folder)?.next().is_none() {
        fs::remove_dir(folder)?;
    }
    Ok(())
}
