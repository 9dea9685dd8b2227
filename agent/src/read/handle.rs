//! open_by_handle_at(2): opens a file by its handle within its filesystem.

use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno;

/// Maximum length of a handle (`MAX_HANDLE_SZ`) with the two numbers before it.
const LONGEST: usize = 8 + 128;

/// A handle, aligned for the kernel's `struct file_handle`.
#[repr(C, align(4))]
struct AlignedHandle([u8; LONGEST]);

/// Opens the file that `handle` names (a `struct file_handle`: length, kind, bytes) in the filesystem of
/// `mount`. Needs CAP_DAC_READ_SEARCH.
///
/// # Errors
/// `STALE` if the file no longer exists, `PERM` without the capability, `INVAL` for bytes that are no handle.
pub fn open_by_handle(mount: impl AsFd, handle: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut aligned = AlignedHandle([0; LONGEST]);
    let length = handle.get(..4).and_then(|l| l.try_into().ok());
    let length = length.map(u32::from_ne_bytes).ok_or(Errno::INVAL)?;
    if handle.len() > LONGEST || handle.len() != 8 + length as usize {
        return Err(Errno::INVAL);
    }
    aligned.0[..handle.len()].copy_from_slice(handle);
    let flags = flags | OFlags::CLOEXEC;
    system_call(mount, &mut aligned, flags)
}

#[allow(unsafe_code)]
fn system_call(
    mount: impl AsFd,
    handle: &mut AlignedHandle,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let mount = mount.as_fd().as_raw_fd();
    let handle = std::ptr::from_mut(handle).cast();
    // SAFETY: the descriptor is open while it is borrowed; the handle is aligned like the struct, holds as
    // many bytes as its first number says (checked by the caller) and outlives the call. The kernel returns a
    // new descriptor that nobody else has.
    unsafe {
        match libc::open_by_handle_at(mount, handle, flags.bits() as i32) {
            fd if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd)),
            _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_handle_never_reaches_the_kernel() {
        let root = std::fs::File::open("/").unwrap();
        let length = |n: u32| n.to_ne_bytes();
        for handle in [
            vec![],
            vec![0; 7],
            [length(9), [0; 4], [0; 4]].concat(), // shorter than it says
            [&length(u32::MAX)[..], &[0; 4]].concat(),
            [&length(200)[..], &[0; 204]].concat(), // longer than any handle
        ] {
            let opened = open_by_handle(&root, &handle, OFlags::PATH);
            assert_eq!(opened.err(), Some(Errno::INVAL), "{handle:?}");
        }
    }
}
