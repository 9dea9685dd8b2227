//! Undoes an attachment in reverse order. Every step checks first whether there is anything to undo.

use super::failure::AttachError;
use super::folder::Folder;
use super::record::{MethodRecord, Record};
use super::timeout::{StepTimeout, wait_for};
use super::{fuse, group, kernel, mounts, swap};
use std::cell::Cell;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time limit for a device to disappear, which happens when its last user (such as udev) closes it.
const TO_GO: Duration = Duration::from_secs(10);

/// Result of detaching.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReleaseResult {
    /// True if the server did not answer, or had ended.
    pub(crate) was_server_unreachable: bool,
    /// Bytes that were swapped out when the server's loss was noticed: an upper bound of the lost bytes.
    pub(crate) lost_bytes: u64,
}

/// Undoes all steps, and removes the record.
pub(crate) fn release(
    folder: &Folder,
    record: &Record,
    limit: Duration,
) -> Result<ReleaseResult, AttachError> {
    let device = device(folder, record);
    let used_bytes = || {
        let area = device.as_deref().map(swap::on_device);
        let area = area.and_then(Result::ok).flatten();
        area.map_or(0, |area| area.used_bytes)
    };
    let lost_bytes = Cell::new(0);
    let cut = || {
        // Read before the connection is cut: afterwards, a page that cannot be read no longer counts as used.
        lost_bytes.set(used_bytes());
        cut(record);
    };
    let timeout = StepTimeout::new(limit, &cut);
    let still = || 0;
    let mut was_unreachable = false;
    if let Some(device) = device.clone() {
        if let Some(area) = swap::on_device(&device)? {
            let off = device.clone();
            let answers = timeout.with("swapoff", &used_bytes, move || {
                // The kernel does not report which pages it failed to read. The programs that own them get a
                // signal when they touch them.
                let answered = swap::answers(&off);
                swap::off(&off).map(|()| answered && swap::answers(&off))
            });
            was_unreachable = !answers??;
            if was_unreachable && !timeout.is_cut() {
                lost_bytes.set(area.used_bytes);
            }
        }
        let (method, off) = (record.method.clone(), device.clone());
        timeout.with("taking the device apart", &still, move || {
            disconnect_device(&off, method.as_ref())
        })??;
        // Other processes may still have the device open. Waiting for them is no reason to cut the
        // connection.
        wait_for("the device's end", TO_GO, || {
            Ok((!is_there(&device, record.method.as_ref())).then_some(()))
        })
        .map_err(|_| in_use(&device))?;
    }
    if matches!(record.method, Some(MethodRecord::Fuse { .. })) {
        let path = folder.path().to_owned();
        timeout.with("unmounting", &still, move || fuse::unmount(&path))??;
        // The process notices the unmount and ends. But after a cut it would wait for its server.
        for process in record
            .processes
            .iter()
            .filter(|p| p.program == fuse::SERVER)
        {
            if timeout.is_cut() {
                process.kill();
            }
            process.await_end();
        }
    }
    for process in record.processes.iter().rev() {
        process.end()?;
    }
    if let Some(group) = &record.group {
        group::remove(group)?;
    }
    folder.remove()?;
    Ok(ReleaseResult {
        was_server_unreachable: was_unreachable || timeout.is_cut(),
        lost_bytes: lost_bytes.get(),
    })
}

/// Cuts the connection to the server: from now on, every process that waits for the server gets an error.
pub(crate) fn cut(record: &Record) {
    match (&record.method, &record.device) {
        (Some(MethodRecord::Fuse { connection }), _) => fuse::cut(*connection, &record.processes),
        (Some(MethodRecord::Kernel), Some(device)) => drop(kernel::disconnect(device)),
        _ => {}
    }
}

/// Returns the device, if it still belongs to this attachment.
pub(crate) fn device(folder: &Folder, record: &Record) -> Option<PathBuf> {
    match record.method.as_ref()? {
        // The device is found by its backing file: its number may not be recorded, or may belong to another
        // device by now.
        MethodRecord::Fuse { .. } => fuse::found_device(folder.path()),
        MethodRecord::Kernel => {
            let device = record.device.clone()?;
            kernel::is_connected(&device).then_some(device)
        }
    }
}

fn disconnect_device(device: &Path, method: Option<&MethodRecord>) -> Result<(), AttachError> {
    unused(device)?;
    match method {
        Some(MethodRecord::Kernel) => kernel::disconnect(device),
        _ => fuse::release(device),
    }
}

fn is_there(device: &Path, method: Option<&MethodRecord>) -> bool {
    match method {
        Some(MethodRecord::Kernel) => kernel::is_connected(device),
        _ => fuse::is_bound(device),
    }
}

/// Checks that the device is unused. The kernel would delay the detaching of a mounted device without an error.
fn unused(device: &Path) -> Result<(), AttachError> {
    let exclusive = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_EXCL)
        .open(device);
    match exclusive {
        Err(e) if e.kind() == io::ErrorKind::ResourceBusy => Err(in_use(device)),
        // Any other fault of the device is no reason to keep it attached.
        _ => Ok(()),
    }
}

fn in_use(device: &Path) -> AttachError {
    let mounts = mounts::table().unwrap_or_default();
    let mount = mounts.iter().find(|mount| mount.source == device);
    AttachError::InUse {
        device: device.to_owned(),
        where_: mount.map_or_else(String::new, |m| format!(" at {}", m.point.display())),
    }
}
