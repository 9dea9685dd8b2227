//! Lock for one writer of a name at a time.

use super::names::WriterName;
use crate::{DatasetError, Result};
use std::fs::{File, TryLockError};
use std::path::Path;

/// Held until it is dropped or the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Lock {
    /// Locks the part of the dataset at `root` that `name` writes, or tells at once that another writer has it.
    pub(crate) fn take(root: &Path, name: &WriterName) -> Result<Self> {
        let path = root.join(name.lock());
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(DatasetError::io("open", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(DatasetError::Locked {
                root: root.to_owned(),
            }),
            Err(TryLockError::Error(source)) => Err(DatasetError::io("lock", path)(source)),
        }
    }
}

impl Drop for Lock {
    /// Closing alone would not do: a process that another thread is just starting has the file open too,
    /// until it executes its program.
    fn drop(&mut self) {
        let _ = self.0.unlock(); // what fails here is undone when the process ends
    }
}
