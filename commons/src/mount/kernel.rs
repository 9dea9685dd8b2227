//! System calls and kernel files for mounts.

use super::MountError;
use rustix::fs::{major, minor, stat};
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Readahead of the kernel for a mount, in KiB. FUSE's default is 128 KiB: two blocks.
const READAHEAD_KIB: u32 = 1024;

/// Checks that `point` is a folder, and no mount that a killed daemon left.
pub(super) fn check_mount_point(point: &Path) -> Result<(), MountError> {
    let failed = |source| MountError::Point {
        point: point.to_owned(),
        source,
    };
    match fs::metadata(point) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(failed(io::ErrorKind::NotADirectory.into())),
        Err(e) if e.kind() == io::ErrorKind::NotConnected => Err(MountError::Stale {
            point: point.to_owned(),
        }),
        Err(e) => Err(failed(e)),
    }
}

/// Lets the kernel read further ahead of sequential readers. A FUSE server can only lower the kernel's
/// default itself.
pub(super) fn enlarge_readahead(point: &Path) -> io::Result<()> {
    let device = stat(point)?.st_dev;
    let (major, minor) = (major(device), minor(device));
    let setting = format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb");
    fs::write(setting, READAHEAD_KIB.to_string())
}

/// Removes a mount that is in use from the tree of folders.
pub(super) fn detach(point: &Path) -> io::Result<()> {
    let point = CString::new(point.as_os_str().as_bytes())?;
    // SAFETY: the string ends with a null byte and outlives the call.
    #[allow(unsafe_code)]
    let result = unsafe { libc::umount2(point.as_ptr(), libc::MNT_DETACH) };
    if result == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}
