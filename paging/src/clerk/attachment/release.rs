//! Taking apart, in the reverse order of making. Every step looks whether there is anything to do.

use super::failure::AttachError;
use super::folder::Folder;
use super::patience::{Patience, wait_for};
use super::record::{Record, Way};
use super::{fuse, group, kernel, mounts, swap};
use std::cell::Cell;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A device goes when the last who looks at it (udev, say) closes it.
const TO_GO: Duration = Duration::from_secs(10);

/// How it went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Released {
    /// The server did not answer, or was gone.
    pub(crate) is_lost: bool,
    /// What was swapped out when that was found: so much at most was lost.
    pub(crate) lost_bytes: u64,
}

/// Undoes all that was done, and forgets it.
pub(crate) fn release(
    folder: &Folder,
    record: &Record,
    limit: Duration,
) -> Result<Released, AttachError> {
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
        // Who still looks at it is waited for here: that is no reason to cut anything.
        wait_for("the device's end", TO_GO, || {
            Ok((!is_there(&device, record.way.as_ref())).then_some(()))
        })
        .map_err(|_| in_use(&device))?;
    }
    if matches!(record.way, Some(Way::Fuse { .. })) {
        let path = folder.path().to_owned();
        patience.with("unmounting", &still, move || fuse::unmount(&path))??;
        // It sees that, and ends; cut off, it would wait for its server.
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
    Ok(Released {
        is_lost: is_lost || patience.is_cut(),
        lost_bytes: lost_bytes.get(),
    })
}

/// Whatever waits for the server fails from now on.
pub(crate) fn cut(record: &Record) {
    match (&record.way, &record.device) {
        (Some(Way::Fuse { connection }), _) => fuse::cut(*connection, &record.processes),
        (Some(Way::Kernel), Some(device)) => drop(kernel::disconnect(device)),
        _ => {}
    }
}

/// The device, as long as it is still this attachment's.
pub(crate) fn device(folder: &Folder, record: &Record) -> Option<PathBuf> {
    match record.way.as_ref()? {
        // By the file beneath: a number may be another's by now, or not have been kept yet.
        Way::Fuse { .. } => fuse::found_device(folder.path()),
        Way::Kernel => {
            let device = record.device.clone()?;
            kernel::is_connected(&device).then_some(device)
        }
    }
}

fn take_apart(device: &Path, way: Option<&Way>) -> Result<(), AttachError> {
    unused(device)?;
    match way {
        Some(Way::Kernel) => kernel::disconnect(device),
        _ => fuse::release(device),
    }
}

fn is_there(device: &Path, way: Option<&Way>) -> bool {
    match way {
        Some(Way::Kernel) => kernel::is_connected(device),
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
        // What is wrong with it besides is no reason to keep it.
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
