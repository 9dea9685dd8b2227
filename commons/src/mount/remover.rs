//! A second process, which removes the service's mounts when the service ends, however it ends: the service has
//! given up the privilege to unmount.
//!
//! Its standard input is a pipe from the service, whose end shows the service's end. The pipe carries a line
//! for each mount: its device number, a space, its folder, and a null byte.

use super::{MountError, kernel};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Running remover. Dropping this value lets it remove the mounts, and waits for it.
pub struct Remover(Child);

impl Remover {
    /// Starts the remover, and waits until signals for the service do not end it.
    ///
    /// # Errors
    /// [`MountError::System`].
    pub fn start() -> Result<Self, MountError> {
        let started = Command::new("/proc/self/exe")
            .arg("remove-mounts")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn();
        let mut remover = Self(started.map_err(MountError::System)?);
        if let Some(mut ready) = remover.0.stdout.take() {
            ready.read_exact(&mut [0]).map_err(MountError::System)?;
        }
        Ok(remover)
    }

    /// Names a mount to be removed.
    pub(super) fn add(&mut self, device: (u32, u32), point: &Path) -> io::Result<()> {
        let Some(list) = &mut self.0.stdin else {
            return Ok(()); // it is always there until the value is dropped
        };
        let mut line = format!("{}:{} ", device.0, device.1).into_bytes();
        line.extend(point.as_os_str().as_bytes());
        line.push(0);
        list.write_all(&line)
    }

    /// Lets the remover remove the mounts, and waits for it.
    ///
    /// # Errors
    /// [`MountError::Left`], [`MountError::System`].
    pub fn end(mut self) -> Result<(), MountError> {
        drop(self.0.stdin.take());
        let status = self.0.wait().map_err(MountError::System)?;
        if status.success() {
            return Ok(());
        }
        Err(MountError::Left { status })
    }
}

impl Drop for Remover {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait(); // after `end`, it returns the same again
    }
}

/// Waits for the end of standard input, then removes the mounts that it names, the newest first. A mount that
/// was unmounted meanwhile is left out, even if another is at its place.
///
/// # Errors
/// [`MountError::Unmount`] with the last mount that cannot be removed, [`MountError::System`].
pub fn run() -> Result<(), MountError> {
    // The service manager sends its signals to all processes of the service.
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))
            .map_err(MountError::System)?;
    }
    let mut stdout = io::stdout().lock();
    let ready = stdout.write_all(b"\n").and_then(|()| stdout.flush());
    ready.map_err(MountError::System)?;
    let mut list = Vec::new();
    // A fault of the pipe means the service's end, too.
    let _ = io::stdin().lock().read_to_end(&mut list);
    let mut result = Ok(());
    for (device, point) in list.split(|byte| *byte == 0).rev().filter_map(parse) {
        if kernel::device(point).ok() != Some(device) {
            continue;
        }
        if let Err(source) = kernel::unmount(point) {
            let point = point.to_owned();
            result = Err(MountError::Unmount { point, source });
        }
    }
    result
}

/// Device number and folder of a mount.
fn parse(line: &[u8]) -> Option<((u32, u32), &Path)> {
    let space = line.iter().position(|byte| *byte == b' ')?;
    let (device, point) = line.split_at(space);
    let (major, minor) = std::str::from_utf8(device).ok()?.split_once(':')?;
    let device = (major.parse().ok()?, minor.parse().ok()?);
    Some((device, Path::new(OsStr::from_bytes(&point[1..]))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_device_and_a_folder_of_any_bytes() {
        let folder = Path::new(OsStr::from_bytes(b"/mnt/a b\xff\n"));
        assert_eq!(parse(b"0:53 /mnt/a b\xff\n"), Some(((0, 53), folder)));
        for wrong in [&b""[..], b"0:53", b"0 /mnt", b"a:b /mnt"] {
            assert_eq!(parse(wrong), None);
        }
    }
}
