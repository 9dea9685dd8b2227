//! Block devices of the kernel's nbd module. nbd-client makes the connection and hands it over to the kernel.

use super::failure::{AttachError, at};
use super::program;
use super::timeout::wait_for;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PROGRAM: &str = "nbd-client";
/// Time without an answer after which the kernel closes the connection; reads and writes fail then.
const ANSWERS_WITHIN_S: u64 = 30;
const TO_CONNECT: Duration = Duration::from_secs(10);
const DEVICES_TRIED: usize = 3;

/// Returns what this host lacks for devices of the nbd module, if anything.
pub(crate) fn missing_prerequisite() -> Option<&'static str> {
    if program::run(PROGRAM, PROGRAM, &["-V"]).is_err() {
        return Some("nbd-client is not installed");
    }
    let is_there = || fs::exists("/sys/module/nbd").unwrap_or(false);
    if !is_there() {
        let _ = program::run("modprobe", "kmod", &["nbd"]);
        // Waits for udev, which opens each new device to inspect it.
        let _ = program::run("udevadm", "udev", &["settle", "--timeout=10"]);
    }
    (!is_there()).then_some("this kernel has no nbd module")
}

/// Connects the first free device. The kernel refuses a device that another process has open ("check dmesg"),
/// so a few are tried.
pub(crate) fn connect(socket: &Path, is_swap: bool) -> Result<PathBuf, AttachError> {
    let mut failure = AttachError::NoWay("every nbd device is in use");
    for device in free()?.into_iter().take(DEVICES_TRIED) {
        match program::run(PROGRAM, PROGRAM, &connecting(socket, &device, is_swap)) {
            Ok(_) => {
                wait_for("the connection", TO_CONNECT, || {
                    Ok(is_connected(&device).then_some(()))
                })?;
                return Ok(device);
            }
            Err(e) => failure = e,
        }
    }
    Err(failure)
}

/// Returns nbd-client's arguments. They lack `-persist`: reconnecting would not restore pages that a server has lost.
fn connecting(socket: &Path, device: &Path, is_swap: bool) -> Vec<OsString> {
    let timeout = ANSWERS_WITHIN_S.to_string();
    let mut args: Vec<OsString> = vec!["-unix".into(), socket.into(), device.into()];
    args.extend(["-block-size", "4096", "-timeout", &timeout].map(Into::into));
    args.extend(is_swap.then(|| "-swap".into()));
    args
}

fn free() -> Result<Vec<PathBuf>, AttachError> {
    const BLOCKS: &str = "/sys/block";
    let mut names: Vec<OsString> = Vec::new();
    for entry in fs::read_dir(BLOCKS).map_err(at(BLOCKS))? {
        let name = entry.map_err(at(BLOCKS))?.file_name();
        names.extend(name.to_string_lossy().starts_with("nbd").then_some(name));
    }
    names.sort();
    let devices = names.iter().map(|name| Path::new("/dev").join(name));
    Ok(devices.filter(|device| !is_connected(device)).collect())
}

/// Returns true if the device is connected, which shows in its size.
pub(crate) fn is_connected(device: &Path) -> bool {
    let name = device.file_name().unwrap_or_default();
    let size = fs::read_to_string(Path::new("/sys/block").join(name).join("size"));
    size.is_ok_and(|size| size.trim() != "0")
}

/// Disconnects the device; processes that wait for the server fail.
pub(crate) fn disconnect(device: &Path) -> Result<(), AttachError> {
    program::run(PROGRAM, PROGRAM, &["-d".as_ref(), device.as_os_str()])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nbd_client_is_told_all_of_it() {
        let args = |is_swap| {
            let args = connecting(Path::new("/run/a b.sock"), Path::new("/dev/nbd3"), is_swap);
            let args: Vec<String> = args.iter().map(|a| a.to_string_lossy().into()).collect();
            args.join("|")
        };
        let device = "-unix|/run/a b.sock|/dev/nbd3|-block-size|4096|-timeout|30";
        assert_eq!(args(false), device);
        assert_eq!(args(true), format!("{device}|-swap"));
    }
}
