//! The folder of an export: whose it is, and what is left of the export before.

use crate::export::Format;
use crate::{ExportError, Result};
use gleaner_schemas::rows::DATASET_TABLES;
use std::fs;
use std::io;
use std::path::Path;

/// The file that tells an export from somebody's folder.
const MARK: &str = "gleaner-export.json";

/// Makes `out_dir` ready: creates it, or removes the export that it holds; refuses anything else.
pub(crate) fn begin(out_dir: &Path, format: Format) -> Result<()> {
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

/// Says in the folder what it is.
pub(crate) fn mark(out_dir: &Path, format: Format, is_whole: bool) -> Result<()> {
    let path = out_dir.join(MARK);
    let text = serde_json::json!({ "format": format.ending(), "is_whole": is_whole });
    fs::write(&path, format!("{text:#}\n")).map_err(ExportError::io("write", path))
}

/// Removes files that an export makes, and folders that are empty then; nothing else.
fn remove_export(out_dir: &Path) -> io::Result<()> {
    for table in &DATASET_TABLES {
        let folder = out_dir.join(table.name);
        if !folder.is_dir() {
            continue;
        }
        for date in fs::read_dir(&folder)? {
            let date = date?.path();
            let files = Format::ALL.map(|format| format!("{}.{}", table.name, format.ending()));
            for name in files
                .into_iter()
                .chain([format!(".{}.unfinished", table.name)])
            {
                let path = date.join(name);
                if path.is_file() {
                    fs::remove_file(path)?;
                }
            }
            remove_if_empty(&date)?;
        }
        remove_if_empty(&folder)?;
    }
    Ok(())
}

fn remove_if_empty(folder: &Path) -> io::Result<()> {
    if folder.is_dir() && fs::read_dir(folder)?.next().is_none() {
        fs::remove_dir(folder)?;
    }
    Ok(())
}
