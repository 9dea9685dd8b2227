//! Block devices through FUSE: this program, started a second time, shows an export as a file
//! ([`crate::export_file`]), and a loop device without a cache is made of that file.

use super::failure::{AttachError, at};
use super::folder::{Folder, gone};
use super::group;
use super::mounts;
use super::process::{self, Process};
use super::program::{self, last_words};
use super::record::{MethodRecord, Record};
use super::timeout::wait_for;
use crate::export_file;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

/// Timeout of connecting and mounting, which takes milliseconds.
const TO_MOUNT: Duration = Duration::from_secs(10);
const CONNECTIONS: &str = "/sys/fs/fuse/connections";

/// Name of the process that shows the export.
pub(crate) const SERVER: &str = "export-file";

/// Folder that the export is mounted at.
pub(crate) fn point(folder: &Path) -> PathBuf {
    folder.join("export")
}

/// Path of the export as a file.
fn file(folder: &Path) -> PathBuf {
    point(folder).join(export_file::FILE)
}

/// Returns what this host lacks for FUSE devices, if anything.
pub(crate) fn missing_prerequisite() -> Option<&'static str> {
    let is_there = fs::exists("/dev/fuse").unwrap_or(false);
    (!is_there).then_some("this kernel has no FUSE (/dev/fuse)")
}

/// Mounts the export. The process that does it runs in its own control group.
pub(crate) fn mount(folder: &Folder, record: &mut Record) -> Result<(), AttachError> {
    record.method = Some(MethodRecord::Fuse { connection: None });
    let point = point(folder.path());
    fs::create_dir(&point).map_err(at(&point))?;
    let door = record.group.as_deref().map(group::door).transpose()?;
    let socket = record.socket.clone();
    let launch = process::Launch {
        program: SERVER,
        path: "/proc/self/exe",
        package: "gleaner-clerk",
        says: Stdio::piped(),
    };
    let args: [&OsStr; 3] = [SERVER.as_ref(), point.as_os_str(), socket.as_os_str()];
    let (mut child, server) = process::start(launch, &args, door.as_ref(), &mut record.notes)?;
    record.processes.push(server);
    folder.keep(record)?;
    let number = wait_for("the export is mounted", TO_MOUNT, || {
        ended(&mut child)?;
        connection(&point)
    })?;
    if !switch(number).exists()
        && let Err(e) = call::mount_switches()
    {
        let note =
            format!("a stuck {SERVER} can only be killed: mount fusectl at {CONNECTIONS}: {e}");
        record.notes.push(note);
    }
    record.method = Some(MethodRecord::Fuse {
        connection: Some(number),
    });
    folder.keep(record)
}

/// Number of the FUSE connection mounted at `point`, if there is one.
fn connection(point: &Path) -> Result<Option<u32>, AttachError> {
    let mounts = mounts::table()?;
    let mount = mounts.iter().rfind(|mount| mount.point == point);
    Ok(mount.map(|mount| mount.device.1))
}

/// Returns the process's error if it has ended.
fn ended(child: &mut Child) -> Result<(), AttachError> {
    let Ok(Some(status)) = child.try_wait() else {
        return Ok(());
    };
    let mut said = Vec::new();
    if let Some(stderr) = &mut child.stderr {
        let _ = stderr.read_to_end(&mut said);
    }
    Err(AttachError::Program {
        program: SERVER,
        said: last_words(&said, &status.to_string()),
    })
}

/// Makes the loop device.
pub(crate) fn device(folder: &Path) -> Result<PathBuf, AttachError> {
    let file = file(folder);
    let options = ["--find", "--show", "--direct-io=on", "--sector-size=4096"];
    let args: Vec<&OsStr> = options
        .iter()
        .map(OsStr::new)
        .chain([file.as_os_str()])
        .collect();
    let device = PathBuf::from(program::run("losetup", "mount", &args)?);
    // Some versions of losetup only warn if direct I/O is refused.
    let is_direct = of_loop(&device, "dio").is_some_and(|is_direct| is_direct == "1");
    if !is_direct {
        return Err(AttachError::Cached(device));
    }
    Ok(device)
}

/// Finds the loop device of the export in the kernel's records.
pub(crate) fn found_device(folder: &Path) -> Option<PathBuf> {
    let file = file(folder);
    let blocks = fs::read_dir("/sys/block").ok()?;
    blocks
        .filter_map(|block| Some(Path::new("/dev").join(block.ok()?.file_name())))
        .find(|device| of_loop(device, "backing_file").is_some_and(|of| Path::new(&of) == file))
}

fn of_loop(device: &Path, fact: &str) -> Option<String> {
    let path = Path::new("/sys/block").join(device.file_name()?);
    let text = fs::read_to_string(path.join("loop").join(fact)).ok()?;
    Some(text.trim_end().to_owned())
}

/// Returns true if the device is a loop device of a file.
pub(crate) fn is_bound(device: &Path) -> bool {
    of_loop(device, "backing_file").is_some()
}

/// Detaches the loop device.
pub(crate) fn release(device: &Path) -> Result<(), AttachError> {
    program::run(
        "losetup",
        "mount",
        &["--detach".as_ref(), device.as_os_str()],
    )?;
    Ok(())
}

/// Unmounts the export; does nothing if it is not mounted.
pub(crate) fn unmount(folder: &Path) -> Result<(), AttachError> {
    let point = point(folder);
    // After it is detached, the loop device releases the file only a moment later.
    let unmounted = wait_for("unmounting", TO_MOUNT, || {
        if connection(&point)?.is_none() {
            return Ok(Some(()));
        }
        match call::unmount(&point, 0) {
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy => Ok(None),
            unmounted => unmounted.map(|()| None).map_err(at(&point)),
        }
    });
    if unmounted.is_err() {
        // Another process has the file open: the mount disappears when that process closes the file.
        call::unmount(&point, libc::MNT_DETACH).map_err(at(&point))?;
    }
    gone(fs::remove_dir(&point)).map_err(at(&point))
}

/// Cuts the FUSE connection: from now on, every process that waits for the server through FUSE gets an error.
pub(crate) fn cut(connection: Option<u32>, processes: &[Process]) {
    let is_cut = connection.is_some_and(|number| fs::write(switch(number), "1").is_ok());
    if !is_cut {
        processes.iter().for_each(Process::kill);
    }
}

fn switch(connection: u32) -> PathBuf {
    Path::new(CONNECTIONS)
        .join(connection.to_string())
        .join("abort")
}

#[allow(unsafe_code)]
mod call {
    use super::CONNECTIONS;
    use std::ffi::CString;
    use std::io;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    fn done(result: i32) -> io::Result<()> {
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    pub(super) fn mount_switches() -> io::Result<()> {
        let point = CString::new(CONNECTIONS)?;
        let kind = c"fusectl".as_ptr();
        // SAFETY: the strings end with a null byte and outlive the call; no data are passed.
        done(unsafe { libc::mount(kind, point.as_ptr(), kind, 0, std::ptr::null()) })
    }

    pub(super) fn unmount(point: &Path, flags: i32) -> io::Result<()> {
        let point = CString::new(point.as_os_str().as_bytes())?;
        // SAFETY: the string ends with a null byte and outlives the call.
        done(unsafe { libc::umount2(point.as_ptr(), flags) })
    }
}
