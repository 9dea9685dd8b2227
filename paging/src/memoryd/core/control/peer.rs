//! User at the other end of a Unix socket, as the kernel reports it.

use rustix::net::sockopt::socket_peercred;
use std::io;
use std::os::fd::AsFd;

/// A local user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::core) struct Peer {
    pub(in crate::core) uid: u32,
    /// Primary and supplementary groups.
    pub(in crate::core) groups: Vec<u32>,
}

impl Peer {
    /// Identifies the connected user.
    ///
    /// # Errors
    /// The error of the system.
    pub(super) fn of(socket: impl AsFd) -> io::Result<Self> {
        let credentials = socket_peercred(&socket)?;
        let mut groups = call::groups(socket.as_fd())?;
        groups.push(credentials.gid.as_raw());
        Ok(Self {
            uid: credentials.uid.as_raw(),
            groups,
        })
    }

    /// Returns true for users who may use every command: root, the daemon's own user, and members of the
    /// socket's group.
    pub(in crate::core) fn is_privileged(&self, group: u32) -> bool {
        let own = rustix::process::geteuid().as_raw();
        self.uid == 0 || self.uid == own || self.groups.contains(&group)
    }
}

#[allow(unsafe_code)]
mod call {
    use std::io;
    use std::os::fd::{AsRawFd, BorrowedFd};

    /// Maximum number of groups of a process (NGROUPS_MAX).
    const MOST: usize = 65_536;

    /// Supplementary groups at the time of connecting (SO_PEERGROUPS, Linux 4.13); rustix lacks this call.
    pub(super) fn groups(socket: BorrowedFd<'_>) -> io::Result<Vec<u32>> {
        let mut groups: Vec<libc::gid_t> = vec![0; 64];
        loop {
            let mut length = (groups.len() * size_of::<libc::gid_t>()) as libc::socklen_t;
            // SAFETY: the kernel writes at most `length` bytes, the vector's size, and sets `length`.
            let failed = unsafe {
                libc::getsockopt(
                    socket.as_raw_fd(),
                    libc::SOL_SOCKET,
                    libc::SO_PEERGROUPS,
                    groups.as_mut_ptr().cast(),
                    &raw mut length,
                )
            };
            let count = length as usize / size_of::<libc::gid_t>();
            if failed == 0 {
                groups.truncate(count);
                return Ok(groups);
            }
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::ERANGE) || count > MOST {
                return Err(error);
            }
            groups.resize(count, 0);
        }
    }
}
