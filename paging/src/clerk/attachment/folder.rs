//! An attachment's folder: its record, and the lock held by the process that works on it.

use super::clerk;
use super::failure::{AttachError, at};
use super::record::Record;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

const RECORD: &str = "attachment.json";

/// Folder of one attachment, locked while this lives.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Makes the folder of a new attachment.
    pub(crate) fn make(runtime: &Path, name: &str) -> Result<Self, AttachError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(runtime)
            .map_err(at(runtime))?;
        own(runtime)?;
        let path = runtime.join(name);
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(at(&path)(e)),
            _ => {}
        }
        let folder = Self::lock(path, name)?;
        if folder.path.join(RECORD).exists() {
            return Err(AttachError::Attached(name.to_owned()));
        }
        Ok(folder)
    }

    /// Opens the folder of an attachment, with its record.
    pub(crate) fn open(runtime: &Path, name: &str) -> Result<(Self, Record), AttachError> {
        let nothing = || AttachError::Nothing(name.to_owned());
        if !runtime.join(name).exists() {
            return Err(nothing());
        }
        own(runtime)?;
        let folder = Self::lock(runtime.join(name), name)?;
        let record = read(runtime, name)?.ok_or_else(nothing)?;
        Ok((folder, record))
    }

    fn lock(path: PathBuf, name: &str) -> Result<Self, AttachError> {
        own(&path)?;
        let lock = File::open(&path).map_err(at(&path))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| AttachError::AtWork(name.to_owned()))?;
        Ok(Self { path, _lock: lock })
    }

    /// Path of the folder, for its other files.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the record atomically.
    pub(crate) fn keep(&self, record: &Record) -> Result<(), AttachError> {
        let (path, beside) = (
            self.path.join(RECORD),
            self.path.join("attachment.json.new"),
        );
        let text = serde_json::to_string_pretty(record).map_err(|why| AttachError::Record {
            path: path.clone(),
            why,
        })?;
        let written = File::create(&beside).and_then(|mut file| file.write_all(text.as_bytes()));
        written
            .and_then(|()| fs::rename(&beside, &path))
            .map_err(at(&path))
    }

    /// Removes the folder after everything is detached.
    pub(crate) fn remove(&self) -> Result<(), AttachError> {
        let own_clerks = [clerk::LOG, clerk::SOCKET, clerk::STATUS];
        for name in own_clerks
            .into_iter()
            .chain(["attachment.json.new", RECORD])
        {
            gone(fs::remove_file(self.path.join(name))).map_err(at(self.path.join(name)))?;
        }
        gone(fs::remove_dir(&self.path)).map_err(at(&self.path))
    }
}

/// Returns the record of the attachment `name`, if it exists. This needs no lock, since records are replaced
/// atomically.
pub(crate) fn read(runtime: &Path, name: &str) -> Result<Option<Record>, AttachError> {
    let path = runtime.join(name).join(RECORD);
    let text = match fs::read(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(at(&path))?,
    };
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|why| AttachError::Record { path, why })
}

/// Names of the attachments.
pub(crate) fn names(runtime: &Path) -> Result<Vec<String>, AttachError> {
    let entries = match fs::read_dir(runtime) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(at(runtime))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(at(runtime))?.file_name();
        names.extend(name.into_string().ok());
    }
    names.retain(|name| runtime.join(name).join(RECORD).exists());
    names.sort();
    Ok(names)
}

/// Treats a file that did not exist as removed.
pub(crate) fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Checks that only root can write to `path`: /run/gleaner is open to the daemons' group, whose members must
/// not feed root data.
fn own(path: &Path) -> Result<(), AttachError> {
    let found = fs::symlink_metadata(path).map_err(at(path))?;
    let is_own = found.is_dir()
        && found.uid() == rustix::process::geteuid().as_raw()
        && found.mode() & 0o022 == 0;
    if !is_own {
        return Err(AttachError::Foreign(path.to_owned()));
    }
    Ok(())
}
