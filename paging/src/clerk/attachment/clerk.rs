//! The clerk that belongs to an attachment: this program, started a second time to serve the
//! device.

use super::failure::{AttachError, at};
use super::folder::Folder;
use super::group;
use super::process::{self, Launch};
use super::program::last_words;
use super::record::Record;
use super::timeout::wait_for;
use crate::args::DeviceArgs;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

/// Name of the clerk's socket, in the attachment's folder.
pub(crate) const SOCKET: &str = "clerk.sock";
pub(crate) const STATUS: &str = "clerk-status.sock";
pub(crate) const LOG: &str = "clerk.log";

/// Timeout of the start. The clerk first allocates its disk space, which some file systems do by
/// writing.
const TO_BEGIN: Duration = Duration::from_secs(60);

/// Starts the clerk in a control group of its own; returns the path of its socket.
pub(crate) fn start(
    folder: &Folder,
    record: &mut Record,
    device: &DeviceArgs,
) -> Result<PathBuf, AttachError> {
    let [socket, status, log] = [SOCKET, STATUS, LOG].map(|name| folder.path().join(name));
    let mut args: Vec<OsString> = vec!["run".into()];
    let mut option = |name: &str, value: &OsStr| args.extend([name.into(), value.to_owned()]);
    option("--listen", socket.as_os_str());
    option("--status-socket", status.as_os_str());
    if let Some(size) = device.size {
        option("--size", format!("{size}B").as_ref());
    }
    if let Some(copies) = device.copies {
        option("--copies", copies.to_string().as_ref());
    }
    if let Some(eviction) = device.eviction {
        option("--eviction", eviction.name().as_ref());
    }
    for (name, path) in [
        ("--config", &device.config),
        ("--disk-folder", &device.disk_folder),
    ] {
        if let Some(path) = path {
            // The clerk is started in another folder, so that paths must be absolute.
            let is_path = path.as_os_str() != "none";
            let path = if is_path {
                std::path::absolute(path).map_err(at(path))?
            } else {
                path.clone()
            };
            option(name, path.as_os_str());
        }
    }
    for url in &device.server {
        option("--server", url.as_ref());
    }
    for url in &device.recruiter {
        option("--recruiter", url.as_ref());
    }
    let clerk = Launch {
        program: "gleaner-clerk",
        path: "/proc/self/exe",
        package: "gleaner-clerk",
        // The clerk outlives the attaching command, whose pipe would break.
        says: Stdio::from(File::create(&log).map_err(at(&log))?),
    };
    let door = record.group.as_deref().map(group::door).transpose()?;
    let (mut child, process) = process::start(clerk, &args, door.as_ref(), &mut record.notes)?;
    record.processes.push(process);
    folder.keep(record)?;
    wait_for("the clerk begins to serve", TO_BEGIN, || {
        if let Ok(Some(ended)) = child.try_wait() {
            let said = fs::read(&log).unwrap_or_default();
            return Err(AttachError::Program {
                program: "gleaner-clerk",
                said: last_words(&said, &ended.to_string()),
            });
        }
        Ok(UnixStream::connect(&socket).is_ok().then_some(()))
    })?;
    Ok(socket)
}
