//! Swap on a block device.

use super::failure::{AttachError, at};
use super::program;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const PATH: &str = "/proc/swaps";

/// A swap area of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    /// Path of the device.
    pub(crate) device: PathBuf,
    /// Bytes in use.
    pub(crate) used_bytes: u64,
    /// Priority: areas of higher priority are filled first.
    pub(crate) priority: i32,
}

/// All swap areas.
pub(crate) fn areas() -> Result<Vec<Area>, AttachError> {
    let text = std::fs::read_to_string(PATH).map_err(at(PATH))?;
    Ok(parse(&text))
}

/// Swap area on a device, if there is one.
pub(crate) fn on_device(device: &Path) -> Result<Option<Area>, AttachError> {
    Ok(areas()?.into_iter().find(|area| area.device == device))
}

fn parse(text: &str) -> Vec<Area> {
    let area = |line: &str| {
        let mut words = line.split_whitespace();
        Some(Area {
            device: words.next()?.into(),
            used_bytes: words.nth(2)?.parse::<u64>().ok()? << 10,
            priority: words.next()?.parse().ok()?,
        })
    };
    text.lines().skip(1).filter_map(area).collect()
}

/// Writes the swap header.
pub(crate) fn make(device: &Path) -> Result<(), AttachError> {
    program::run("mkswap", "util-linux", &[device]).map(drop)
}

/// Turns swap on, with discards: the kernel reports to the device every page that it no longer
/// needs.
pub(crate) fn on(device: &Path, priority: u16) -> Result<(), AttachError> {
    call::swapon(device, priority).map_err(failed("swapon", device))
}

/// Turns swap off, which brings all pages back into memory.
pub(crate) fn off(device: &Path) -> Result<(), AttachError> {
    call::swapoff(device).map_err(failed("swapoff", device))
}

/// Reads the swap header past every cache; returns true if the device still has it.
pub(crate) fn answers(device: &Path) -> bool {
    const PAGE_BYTES: usize = 4096;
    let mut room = vec![0; 2 * PAGE_BYTES];
    // Direct I/O needs a page-aligned buffer.
    let begin = room.as_ptr().align_offset(PAGE_BYTES);
    let page = room.get_mut(begin..begin + PAGE_BYTES);
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(device);
    page.is_some_and(|page| opened.is_ok_and(|mut device| device.read_exact(page).is_ok()))
}

fn failed(call: &'static str, device: &Path) -> impl FnOnce(std::io::Error) -> AttachError {
    let device = device.to_owned();
    move |why| AttachError::Call { call, device, why }
}

#[allow(unsafe_code)]
mod call {
    use std::ffi::CString;
    use std::io;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    // linux/swap.h; the C library's header does not define DISCARD.
    const PREFER: i32 = 0x8000;
    const DISCARD: i32 = 0x10000;

    fn text(path: &Path) -> io::Result<CString> {
        CString::new(path.as_os_str().as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
    }

    fn done(result: i32) -> io::Result<()> {
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    pub(super) fn swapon(device: &Path, priority: u16) -> io::Result<()> {
        let device = text(device)?;
        // SAFETY: the string ends with a null byte and outlives the call.
        done(unsafe { libc::swapon(device.as_ptr(), PREFER | DISCARD | i32::from(priority)) })
    }

    pub(super) fn swapoff(device: &Path) -> io::Result<()> {
        let device = text(device)?;
        // SAFETY: the string ends with a null byte and outlives the call.
        done(unsafe { libc::swapoff(device.as_ptr()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read() {
        let text = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
            /dev/vda2                               partition\t1048572\t\t12\t\t-2\n\
            /dev/loop3                              partition\t262140\t\t65536\t\t100\n";
        let area = |device: &str, used_bytes, priority| Area {
            device: device.into(),
            used_bytes,
            priority,
        };
        let expected = [
            area("/dev/vda2", 12 << 10, -2),
            area("/dev/loop3", 64 << 20, 100),
        ];
        assert_eq!(parse(text), expected);
        assert!(parse("Filename\n").is_empty());
    }
}
