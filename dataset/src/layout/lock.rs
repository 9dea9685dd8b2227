//! Lock that allows one writer per name at a time.

use super::names::WriterName;
use crate::{DatasetError, Result};
use std::fs::{File, TryLockError};
use std::path::Path;

/// A lock, held until it is dropped or the process ends in any way.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Lock {
    /// Locks the files that writer `name` writes in the dataset at `root`; returns an error immediately if
    /// another writer holds the lock.
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
    /// Unlocks explicitly, since closing is not enough: a child process that another thread is just starting
    /// has the file open too, until it executes its program.
    fn drop(&mut self) {
        let _ = self.0.unlock(); // if unlocking fails, the end of the process unlocks
    }
}
