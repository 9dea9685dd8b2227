//! Makes a block device of a server's pages, in steps. Each step is recorded before the next begins.

use super::failure::AttachError;
use super::folder::Folder;
use super::record::{MethodRecord, Record};
use super::release::{self, release};
use super::timeout::StepTimeout;
use super::{clerk, fuse, group, kernel, process, swap};
use crate::args::{AttachArgs, AttachMethod};
use gleaner_paging::nbd::client::{Server, connect};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Timeout of the server's answer; a server on this host answers in microseconds.
const TO_ANSWER: Duration = Duration::from_secs(10);
/// Time limit of one step.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Attaches a device; undoes the finished steps if one fails.
pub(crate) fn attach(runtime: &Path, wanted: &AttachArgs) -> Result<Record, AttachError> {
    if !rustix::process::geteuid().is_root() {
        return Err(AttachError::NotRoot);
    }
    process::lock_memory();
    let folder = Folder::make(runtime, &wanted.name)?;
    let mut record = Record {
        name: wanted.name.clone(),
        socket: PathBuf::new(),
        attached_time_ms: now_ms(),
        size_bytes: 0,
        method: None,
        device: None,
        is_swap: wanted.swap,
        group: None,
        processes: Vec::new(),
        notes: Vec::new(),
    };
    folder.keep(&record)?;
    let Err(why) = steps(&folder, &mut record, wanted) else {
        return Ok(record);
    };
    match release(&folder, &record, TIMEOUT) {
        Ok(_) => Err(why),
        Err(left) => Err(AttachError::Left {
            name: wanted.name.clone(),
            why: Box::new(why),
            left: Box::new(left),
        }),
    }
}

fn steps(folder: &Folder, record: &mut Record, wanted: &AttachArgs) -> Result<(), AttachError> {
    record.group = group::make(&wanted.name, &mut record.notes)?;
    folder.keep(record)?;
    record.socket = match &wanted.socket {
        Some(socket) => absolute(socket)?,
        None => clerk::start(folder, record, &wanted.device)?,
    };
    record.size_bytes = size(&record.socket)?;
    match method(wanted.method)? {
        AttachMethod::Kernel => {
            record.method = Some(MethodRecord::Kernel);
            record.device = Some(kernel::connect(&record.socket, wanted.swap)?);
        }
        AttachMethod::Fuse => {
            fuse::mount(folder, record)?;
            let path = folder.path().to_owned();
            record.device = Some(with_timeout(record, "losetup", move || {
                fuse::device(&path)
            })?);
        }
    }
    folder.keep(record)?;
    if let (true, Some(device)) = (wanted.swap, record.device.clone()) {
        let priority = wanted.priority;
        with_timeout(record, "mkswap and swapon", move || {
            swap::make(&device).and_then(|()| swap::on(&device, priority))
        })?;
    }
    Ok(())
}

/// Asks the server for the size of its export, before any step that needs the server.
fn size(socket: &Path) -> Result<u64, AttachError> {
    let server = Server::Unix(socket.to_owned());
    let failed = |why| AttachError::Server {
        socket: socket.to_owned(),
        why,
    };
    let (_, export) = connect(&server, "", None, TO_ANSWER).map_err(failed)?;
    Ok(export.bytes)
}

fn method(wanted: Option<AttachMethod>) -> Result<AttachMethod, AttachError> {
    let missing_prerequisite = |method| match method {
        AttachMethod::Kernel => kernel::missing_prerequisite(),
        AttachMethod::Fuse => fuse::missing_prerequisite(),
    };
    match wanted {
        Some(method) => {
            missing_prerequisite(method).map_or(Ok(method), |lack| Err(AttachError::NoWay(lack)))
        }
        None if kernel::missing_prerequisite().is_none() => Ok(AttachMethod::Kernel),
        None => fuse::missing_prerequisite()
            .map_or(Ok(AttachMethod::Fuse), |lack| Err(AttachError::NoWay(lack))),
    }
}

fn with_timeout<T: Send + 'static>(
    record: &Record,
    name: &'static str,
    step: impl FnOnce() -> Result<T, AttachError> + Send + 'static,
) -> Result<T, AttachError> {
    let cut = || release::cut(record);
    StepTimeout::new(TIMEOUT, &cut).with(name, &|| 0, step)?
}

fn absolute(socket: &Path) -> Result<PathBuf, AttachError> {
    std::path::absolute(socket).map_err(super::failure::at(socket))
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}
