//! The kernel's word that memory runs short (PSI, Documentation/accounting/psi.rst).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

const FILE: &str = "/proc/pressure/memory";
/// Some task waited for memory for 100 ms of 2 s: the shortest window that everybody may ask for.
const TRIGGER: &[u8] = b"some 100000 2000000\0";

/// Becomes urgent (POLLPRI) when memory runs short, once a window at most.
#[derive(Debug)]
pub(super) struct Pressure(File);

impl Pressure {
    /// Asks the kernel to tell.
    ///
    /// # Errors
    /// Where it cannot, or may not.
    pub(super) fn watch() -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        let mut file = options.open(FILE)?;
        file.write_all(TRIGGER)?;
        Ok(Self(file))
    }
}

impl AsFd for Pressure {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
