//! Small disks for tests.
#![allow(clippy::unwrap_used)]

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Fills the disk that holds `folder` until only `free_bytes` are free; returns the path of the file that
/// fills it.
///
/// # Panics
/// If the file cannot be created.
#[must_use]
#[track_caller]
pub fn fill(folder: &Path, free_bytes: u64) -> PathBuf {
    let ballast = folder.join("ballast");
    let found = statvfs(folder).unwrap();
    let available = found.f_bavail * found.f_frsize;
    let file = File::create(&ballast).unwrap();
    let length = available.saturating_sub(free_bytes);
    fallocate(&file, FallocateFlags::empty(), 0, length).unwrap();
    ballast
}
