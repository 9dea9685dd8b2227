//! A writer's part of a dataset at one moment, for copying it elsewhere.

use crate::layout;
use crate::layout::names::WriterName;
use crate::layout::retired;
use crate::{DatasetError, FileEntry, Manifest, Result};
use std::fs::File;
use std::path::{Path, PathBuf};

/// A writer's manifest at one moment, and the files that it names.
///
/// Files that are replaced meanwhile stay readable for an hour, as with [`crate::Dataset`].
#[derive(Clone, Debug)]
pub struct Snapshot {
    root: PathBuf,
    name: WriterName,
    text: Vec<u8>,
    files: Vec<FileEntry>,
}

impl Snapshot {
    /// Takes a snapshot of the files of the writer `writer` in the dataset at `root`; `None`: its only or first writer.
    ///
    /// # Errors
    /// [`DatasetError::NotADataset`] if the writer has written nothing, [`DatasetError::WriterName`], or an
    /// unreadable manifest.
    pub fn open(root: &Path, writer: Option<&str>) -> Result<Self> {
        let name = writer.map(WriterName::new).transpose()?.unwrap_or_default();
        let text = Manifest::text(root, &name)?;
        let files = Manifest::parse(root.join(name.manifest()), &text)?.files;
        Ok(Self {
            root: root.to_owned(),
            name,
            text,
            files,
        })
    }

    /// Path of the manifest, relative to the dataset.
    #[must_use]
    pub fn manifest_path(&self) -> String {
        self.name.manifest()
    }

    /// The manifest's bytes.
    #[must_use]
    pub fn manifest_text(&self) -> &[u8] {
        &self.text
    }

    /// The files that the manifest names.
    #[must_use]
    pub fn files(&self) -> &[FileEntry] {
        &self.files
    }

    /// Opens one of [`Self::files`].
    ///
    /// # Errors
    /// [`DatasetError::Missing`] if the file was replaced more than an hour ago; [`DatasetError::Torn`] if
    /// its length differs.
    pub fn open_file(&self, entry: &FileEntry) -> Result<File> {
        let file = retired::open(&self.root, &entry.path)?;
        let path = self.root.join(&entry.path);
        let found = file
            .metadata()
            .map_err(DatasetError::io("look at", &path))?;
        if found.len() != entry.bytes {
            return Err(DatasetError::Torn {
                path,
                expected: entry.bytes,
                found: found.len(),
            });
        }
        Ok(file)
    }

    /// Returns true if `path`, which is relative to a copy of the dataset, is a file of this writer. The
    /// manifest need not name it.
    #[must_use]
    pub fn is_of_writer(&self, path: &str) -> bool {
        layout::table_and_date(path).is_some()
            && path.ends_with(".arrow")
            && WriterName::of_file(path) == self.name
    }
}
