//! A fanotify group that names files by handle (fanotify(7), `FAN_REPORT_FID`, Linux 5.1), and its events.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::io::Errno;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Version of the records (`FANOTIFY_METADATA_VERSION`).
const METADATA_VERSION: u8 = 3;
/// Record that names a file by handle (`FAN_EVENT_INFO_TYPE_FID`).
const INFO_TYPE_FID: u8 = 1;
/// Mask bit of an event that stands for lost events (`FAN_Q_OVERFLOW`).
const QUEUE_OVERFLOW: u64 = 0x4000;

/// A group of watches, whose events are read from its descriptor.
#[derive(Debug)]
pub struct Group(OwnedFd);

impl Group {
    /// Makes a group that blocks no other process: the kernel reports events without waiting.
    ///
    /// # Errors
    /// `PERM` without CAP_SYS_ADMIN, `INVAL` before Linux 5.1, `NOSYS` if the kernel has no fanotify.
    #[allow(unsafe_code)]
    pub fn new() -> Result<Self, Errno> {
        let flags =
            libc::FAN_CLASS_NOTIF | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK | libc::FAN_REPORT_FID;
        // SAFETY: no pointer is passed; the kernel returns a new descriptor that nobody else has.
        unsafe {
            match libc::fanotify_init(flags, libc::O_RDONLY as libc::c_uint) {
                fd if fd >= 0 => Ok(Self(OwnedFd::from_raw_fd(fd))),
                _ => Err(last_error()),
            }
        }
    }

    /// Requests an event for every open in the filesystem mounted at `point`; repeating the request
    /// changes nothing.
    ///
    /// # Errors
    /// `OPNOTSUPP` or `NODEV` for a filesystem that names no files by handle, `XDEV` for a subvolume of
    /// btrfs before Linux 6.8, and the errors of an invalid path.
    #[allow(unsafe_code)]
    pub fn watch_opens(&self, point: &Path) -> Result<(), Errno> {
        let point = CString::new(point.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
        // SAFETY: the path is a string that ends in a zero byte and outlives the call.
        let result = unsafe {
            libc::fanotify_mark(
                self.0.as_raw_fd(),
                libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM,
                libc::FAN_OPEN,
                libc::AT_FDCWD,
                point.as_ptr(),
            )
        };
        if result == 0 {
            Ok(())
        } else {
            Err(last_error())
        }
    }
}

impl AsFd for Group {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// An event of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// An access of a process to a watched file.
    File {
        /// Process that opened the file.
        pid: i32,
        /// File: the id of its filesystem (8 bytes), then its handle as open_by_handle_at(2) takes it.
        file: &'a [u8],
    },
    /// The kernel's queue was full: events were lost.
    Overflow,
}

/// Events of one read, in order; stops at an impossible length.
pub fn events(mut bytes: &[u8]) -> impl Iterator<Item = Event<'_>> {
    std::iter::from_fn(move || {
        loop {
            let length = u32_at(bytes, 0)? as usize;
            let (event, rest) = bytes.split_at_checked(length).filter(|_| length > 0)?;
            bytes = rest;
            if let Some(event) = parse(event) {
                return Some(event);
            }
        }
    })
}

/// Parses a `struct fanotify_event_metadata` and, among the records that follow it, the one that names the
/// file.
fn parse(event: &[u8]) -> Option<Event<'_>> {
    let metadata_length = usize::from(u16_at(event, 6)?);
    let mask = u64::from_ne_bytes(event.get(8..16)?.try_into().ok()?);
    if *event.get(4)? != METADATA_VERSION {
        return None;
    }
    if mask & QUEUE_OVERFLOW != 0 {
        return Some(Event::Overflow);
    }
    let pid = u32_at(event, 20)? as i32;
    let mut records = event.get(metadata_length..)?;
    loop {
        let length = usize::from(u16_at(records, 2)?);
        let (record, rest) = records.split_at_checked(length).filter(|_| length > 0)?;
        if record.first() == Some(&INFO_TYPE_FID) {
            let handle_length = u32_at(record, 12)? as usize;
            let file = record.get(4..20_usize.checked_add(handle_length)?)?;
            return Some(Event::File { pid, file });
        }
        records = rest;
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An event as the kernel writes it, with records of other kinds before the one with the file.
    fn event(version: u8, mask: u64, pid: i32, records: &[(u8, &[u8])]) -> Vec<u8> {
        let records: Vec<u8> = records
            .iter()
            .flat_map(|(kind, file)| {
                let length = (4 + file.len() as u16).to_ne_bytes();
                [&[*kind, 0][..], &length, file].concat()
            })
            .collect();
        let length = (24 + records.len() as u32).to_ne_bytes();
        let head = [&length[..], &[version, 0], &24_u16.to_ne_bytes()];
        let rest = [
            &mask.to_ne_bytes()[..],
            &(-1_i32).to_ne_bytes(),
            &pid.to_ne_bytes(),
            &records,
        ];
        [head.concat(), rest.concat()].concat()
    }

    fn file(inode: u8) -> Vec<u8> {
        let length = 8_u32.to_ne_bytes();
        [&[7; 8][..], &length, &1_u32.to_ne_bytes(), &[inode; 8]].concat()
    }

    #[test]
    fn who_opened_which_file_and_that_events_were_lost() {
        let (first, second) = (file(1), file(2));
        let read = [
            event(3, 0x20, 4321, &[(1, &first)]),
            event(3, QUEUE_OVERFLOW, 0, &[]),
            event(9, 0x20, 1, &[(1, &first)]), // of another version: its contents are unknown
            event(3, 0x20, 77, &[(4, &[0; 9]), (1, &second)]),
        ]
        .concat();
        let opened = |pid, file| Event::File { pid, file };
        let expected = [
            opened(4321, &first[..]),
            Event::Overflow,
            opened(77, &second),
        ];
        assert_eq!(events(&read).collect::<Vec<_>>(), expected);
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..120), length in 0u8..60, cut in 0usize..60) {
            let _ = events(&bytes).count();
            let mut whole = [event(3, 0x20, 1, &[(1, &file(9))]), bytes].concat();
            whole[0] = length;
            let _ = events(&whole[..cut.min(whole.len())]).count();
            let _ = events(&whole).count();
        }
    }
}
