//! The kernel's notices of short memory (PSI, Documentation/accounting/psi.rst), and the check of such a
//! notice.

use gleaner_schemas::units::kib_to_bytes;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

const FILE: &str = "/proc/pressure/memory";
/// Trigger of notices: tasks waited for memory for 100 ms within 2 s, the shortest window that needs no
/// privilege.
const TRIGGER: &[u8] = b"some 100000 2000000\0";

/// Descriptor that reports an urgent event (POLLPRI) when memory runs short, at most once per window.
#[derive(Debug)]
pub(super) struct Pressure(File);

impl Pressure {
    /// Requests notices from the kernel.
    ///
    /// # Errors
    /// The kernel lacks PSI, or denies access.
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

/// Figures of /proc/meminfo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MeminfoFigures {
    pub(super) available_bytes: u64,
    pub(super) total_bytes: u64,
}

impl MeminfoFigures {
    /// Reads the figures; `None` if that fails.
    pub(super) fn read() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/meminfo").ok()?)
    }

    fn parse(meminfo: &str) -> Option<Self> {
        let bytes = |key: &str| {
            let line = meminfo.lines().find_map(|line| line.strip_prefix(key))?;
            line.split_whitespace()
                .next()?
                .parse()
                .ok()
                .map(kib_to_bytes)
        };
        Some(Self {
            available_bytes: bytes("MemAvailable:")?,
            total_bytes: bytes("MemTotal:")?,
        })
    }

    /// Returns true if giving memory back would help. Tasks may also wait for memory when enough is
    /// available: while the kernel assembles huge pages such as those of leases, or within the limit of a
    /// control group.
    pub(super) fn is_short(self) -> bool {
        self.available_bytes < self.total_bytes / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_short_below_a_quarter() {
        let of = |available: u64| {
            format!("MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable:  {available} kB\n")
        };
        let is_short = |available| MeminfoFigures::parse(&of(available)).unwrap().is_short();
        assert_eq!([is_short(249), is_short(250)], [true, false]);
        assert_eq!(MeminfoFigures::parse("MemTotal: 1 kB\n"), None);
        assert!(MeminfoFigures::read().is_some());
    }
}
