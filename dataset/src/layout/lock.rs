//! Lock by which only one program at a time writes under a writer's name.

use super::names::WriterName;
use crate::{DatasetError, Result};
use std::fs::{File, TryLockError};
use std::path::Path;

/// A lock. It is held until it is dropped, or until the process ends in any way.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Lock {
    /// Locks the files of the writer `name` in the dataset at `root`. If another program holds the lock,
    /// returns an error immediately.
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
    /// Unlocks explicitly, because closing the file is not enough. Another thread may just be starting a
    /// child process, which has the file open, too, until it executes its program.
    fn drop(&mut self) {
        let _ = self.0.unlock(); // if unlocking fails, the end of the process unlocks
    }
}
