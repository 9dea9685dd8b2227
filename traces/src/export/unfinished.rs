//! A file under a temporary name, which readers skip, until it is complete.

use crate::{ExportError, Result};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

pub(super) struct UnfinishedFile {
    pub(super) path: PathBuf,
}

impl UnfinishedFile {
    pub(super) fn create(path: PathBuf) -> Result<(Self, File)> {
        let hidden = hidden(&path);
        let file = File::create(&hidden).map_err(ExportError::io("create", hidden))?;
        Ok((Self { path }, file))
    }

    /// Renames the file to its final name; returns its length in bytes.
    pub(super) fn finish(self, file: &File) -> Result<u64> {
        let finish = || -> io::Result<u64> {
            file.sync_all()?;
            fs::rename(hidden(&self.path), &self.path)?;
            Ok(file.metadata()?.len())
        };
        finish().map_err(ExportError::io("finish", &self.path))
    }
}

/// Temporary path of the file.
pub(super) fn hidden(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.unfinished"))
}
