//! System calls and kernel files for mounts.

use super::MountError;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxFlags, stat, statx};
use rustix::io::Errno;
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
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
    // The kernel knows the type of a killed daemon's mount for a while without asking: it must ask.
    match statx(CWD, point, AtFlags::STATX_FORCE_SYNC, StatxFlags::TYPE) {
        Ok(found) if FileType::from_raw_mode(found.stx_mode.into()).is_dir() => Ok(()),
        Ok(_) => Err(failed(io::ErrorKind::NotADirectory.into())),
        Err(Errno::NOTCONN) => Err(MountError::Stale {
            point: point.to_owned(),
        }),
        Err(e) => Err(failed(e.into())),
    }
}

/// Makes a mount that no session serves yet, and returns its connection to the kernel. `owner` is the user and
/// group that will serve it.
pub(super) fn mount(point: &Path, owner: (u32, u32), allows_others: bool) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let device = rustix::fs::open("/dev/fuse", flags, Mode::empty())?;
    let (fd, mode, (user, group)) = (device.as_raw_fd(), stat(point)?.st_mode, owner);
    let others = if allows_others { ",allow_other" } else { "" };
    let options = CString::new(format!(
        "fd={fd},rootmode={mode:o},user_id={user},group_id={group},default_permissions{others}"
    ))?;
    let point = CString::new(point.as_os_str().as_bytes())?;
    let flags = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOATIME;
    // SAFETY: all strings end with a null byte and outlive the call.
    #[allow(unsafe_code)]
    let result = unsafe {
        libc::mount(
            c"gleaner-commons".as_ptr(),
            point.as_ptr(),
            c"fuse".as_ptr(),
            flags,
            options.as_ptr().cast(),
        )
    };
    if result == 0 {
        return Ok(device);
    }
    Err(io::Error::last_os_error())
}

/// Device number (major, minor) of the file system at `point`. The kernel answers without asking the session.
pub(super) fn device(point: &Path) -> io::Result<(u32, u32)> {
    let found = statx(
        CWD,
        point,
        AtFlags::STATX_DONT_SYNC,
        StatxFlags::empty(), // FUSE tells root no more than the device, unless root may read
    )?;
    Ok((found.stx_dev_major, found.stx_dev_minor))
}

/// Opens the setting of the kernel's readahead for a mount. Only root may.
pub(super) fn readahead((major, minor): (u32, u32)) -> io::Result<File> {
    let setting = format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb");
    OpenOptions::new().write(true).open(setting)
}

/// Lets the kernel read further ahead of sequential readers. A FUSE server can only lower the kernel's
/// default itself.
pub(super) fn enlarge_readahead(setting: io::Result<File>) {
    let enlarged =
        setting.and_then(|mut file| file.write_all(READAHEAD_KIB.to_string().as_bytes()));
    if let Err(e) = enlarged {
        eprintln!(
            "gleaner-commons: the kernel's readahead is small ({e}): large reads are slower until root raises it, as gleaner-commons.service does"
        );
    }
}

/// Unmounts. A mount that is in use is removed from the tree of folders.
pub(super) fn unmount(point: &Path) -> io::Result<()> {
    match umount2(point, 0) {
        Err(e) if e.kind() == io::ErrorKind::ResourceBusy => {
            detach(point)?;
            eprintln!(
                "gleaner-commons: {} was in use: programs that have files open there get errors from now on",
                point.display()
            );
            Ok(())
        }
        result => result,
    }
}

/// Removes a mount from the tree of folders, also if it is in use.
pub(super) fn detach(point: &Path) -> io::Result<()> {
    umount2(point, libc::MNT_DETACH)
}

fn umount2(point: &Path, flags: libc::c_int) -> io::Result<()> {
    let point = CString::new(point.as_os_str().as_bytes())?;
    // SAFETY: the string ends with a null byte and outlives the call.
    #[allow(unsafe_code)]
    let result = unsafe { libc::umount2(point.as_ptr(), flags) };
    if result == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}
