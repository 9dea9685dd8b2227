//! Taking apart, in the reverse order of making. Every step looks whether there is anything to do.

use super::failure::AttachError;
use super::folder::Folder;
use super::patience::{Patience, wait_for};
use super::record::{DeviceWay, Record};
use super::{fuse, group, kernel, mounts, swap};
use std::cell::Cell;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time until a device disappears: it does when its last user (such as udev) closes it.
const TO_GO: Duration = Duration::from_secs(10);

/// Result of detaching.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReleaseResult {
    /// The server did not answer, or was gone.
    pub(crate) is_lost: bool,
    /// Bytes that were swapped out when the loss was noticed: the most that was lost.
    pub(crate) lost_bytes: u64,
}

/// Undoes all that was done, and forgets it.
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
        // A page that is read in vain counts as used no more.
        lost_bytes.set(used_bytes());
        cut(record);
    };
    let patience = Patience::new(limit, &cut);
    let still = || 0;
    let mut is_lost = false;
    if let Some(device) = device.clone() {
        if let Some(area) = swap::on_device(&device)? {
            let off = device.clone();
            let answers = patience.with("swapoff", &used_bytes, move || {
                // The kernel does not say of which pages it could read none: their programs get a signal when they touch them.
                let answered = swap::answers(&off);
                swap::off(&off).map(|()| answered && swap::answers(&off))
            });
            is_lost = !answers??;
            if is_lost && !patience.is_cut() {
                lost_bytes.set(area.used_bytes);
            }
        }
        let (way, off) = (record.way.clone(), device.clone());
        patience.with("taking the device apart", &still, move || {
            take_apart(&off, way.as_ref())
        })??;
        // Waits for processes that still look at the device: no reason to cut connections.
        wait_for("the device's end", TO_GO, || {
            Ok((!is_there(&device, record.way.as_ref())).then_some(()))
        })
        .map_err(|_| in_use(&device))?;
    }
    if matches!(record.way, Some(DeviceWay::Fuse { .. })) {
        let path = folder.path().to_owned();
        patience.with("unmounting", &still, move || fuse::unmount(&path))??;
        // nbdfuse sees that and ends; after a cut, it would wait for its server.
        for process in record.processes.iter().filter(|p| p.program == "nbdfuse") {
            if patience.is_cut() {
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
        is_lost: is_lost || patience.is_cut(),
        lost_bytes: lost_bytes.get(),
    })
}

/// Makes every process that waits for the server fail from now on.
pub(crate) fn cut(record: &Record) {
    match (&record.way, &record.device) {
        (Some(DeviceWay::Fuse { connection }), _) => fuse::cut(*connection, &record.processes),
        (Some(DeviceWay::Kernel), Some(device)) => drop(kernel::disconnect(device)),
        _ => {}
    }
}

/// The device, as long as it is still this attachment's.
pub(crate) fn device(folder: &Folder, record: &Record) -> Option<PathBuf> {
    match record.way.as_ref()? {
        // Found by the file beneath: the number may be another device's by now, or not be recorded yet.
        DeviceWay::Fuse { .. } => fuse::found_device(folder.path()),
        DeviceWay::Kernel => {
            let device = record.device.clone()?;
            kernel::is_connected(&device).then_some(device)
        }
    }
}

fn take_apart(device: &Path, way: Option<&DeviceWay>) -> Result<(), AttachError> {
    unused(device)?;
    match way {
        Some(DeviceWay::Kernel) => kernel::disconnect(device),
        _ => fuse::release(device),
    }
}

fn is_there(device: &Path, way: Option<&DeviceWay>) -> bool {
    match way {
        Some(DeviceWay::Kernel) => kernel::is_connected(device),
        _ => fuse::is_bound(device),
    }
}

/// The kernel would let go of a device that is mounted later, unasked: better now, asked.
fn unused(device: &Path) -> Result<(), AttachError> {
    let exclusive = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_EXCL)
        .open(device);
    match exclusive {
        Err(e) if e.kind() == io::ErrorKind::ResourceBusy => Err(in_use(device)),
        // Another fault of the device is no reason to keep it.
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
