//! Privileges of the service. It mounts with them, and gives all of them up before it reads a certificate or
//! listens.

use gleaner_daemon::accounts::Account;
use rustix::process::{Gid, Uid, getegid, geteuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use std::fs;
use std::io;

/// Privileges that the service gives up once it has mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Privileges {
    /// Privileges of root, who becomes this user.
    Root(Account),
    /// CAP_SYS_ADMIN of another user than root, as a unit with `AmbientCapabilities=` gives it.
    Capability,
}

/// Reason why the service cannot give its privileges up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivilegeError {
    /// The user does not exist.
    #[error("user: /etc/passwd has no user {name:?}")]
    NoUser {
        /// Name in the configuration.
        name: String,
    },
    /// The user is root.
    #[error("user: {name:?} is root itself; name another user, or remove the key")]
    IsRoot {
        /// Name in the configuration.
        name: String,
    },
    /// The service was not started by root.
    #[error(
        "user: only root may become the user {name:?}; start the service as root, or remove the key"
    )]
    NotRoot {
        /// Name in the configuration.
        name: String,
    },
    /// There are other threads, which would keep the privileges.
    #[error("{threads_count} threads hold privileges; this is a fault of gleaner-commons")]
    Threads {
        /// Number of threads of the process.
        threads_count: usize,
    },
    /// The system rejects the change.
    #[error(
        "cannot give up privileges: {source}; becoming another user needs CAP_SETUID and CAP_SETGID"
    )]
    System {
        /// Error of the system.
        source: io::Error,
    },
}

/// Returns true if this process may mount without fusermount3.
#[must_use]
pub fn may_mount() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN))
}

impl Privileges {
    /// Privileges of this process that must be given up; `None` for an unprivileged user, who mounts by
    /// fusermount3, and for root if no `user` is configured.
    ///
    /// # Errors
    /// [`PrivilegeError::NoUser`], [`PrivilegeError::IsRoot`], [`PrivilegeError::NotRoot`].
    pub fn of_this_process(user: Option<&str>) -> Result<Option<Self>, PrivilegeError> {
        let is_root = geteuid().is_root();
        let Some(user) = user else {
            return Ok((!is_root && may_mount()).then_some(Self::Capability));
        };
        let name = user.to_owned();
        let Some(account) = Account::find(|found, _| found == user) else {
            return Err(PrivilegeError::NoUser { name });
        };
        if account.uid == 0 {
            return Err(PrivilegeError::IsRoot { name });
        }
        if !is_root {
            return Err(PrivilegeError::NotRoot { name });
        }
        Ok(Some(Self::Root(account)))
    }

    /// User and group that the process has after [`Self::give_up`].
    #[must_use]
    pub fn owner(&self) -> (u32, u32) {
        match self {
            Self::Root(account) => (account.uid, account.gid),
            Self::Capability => (geteuid().as_raw(), getegid().as_raw()),
        }
    }

    /// Gives up all capabilities, and becomes the configured user with that user's groups. Programs that the
    /// process starts from now on gain no privileges either.
    ///
    /// # Errors
    /// [`PrivilegeError::Threads`], [`PrivilegeError::System`].
    pub fn give_up(&self) -> Result<(), PrivilegeError> {
        // The system calls below change the calling thread alone.
        let threads = fs::read_dir("/proc/self/task").map_err(failed)?;
        let threads_count = threads.count();
        if threads_count != 1 {
            return Err(PrivilegeError::Threads { threads_count });
        }
        if let Self::Root(account) = self {
            let (user, group) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
            let others = account.groups.iter().map(|gid| Gid::from_raw(*gid));
            let groups: Vec<Gid> = std::iter::once(group).chain(others).collect();
            set_thread_groups(&groups).map_err(failed)?;
            set_thread_res_gid(group, group, group).map_err(failed)?;
            set_thread_res_uid(user, user, user).map_err(failed)?;
        }
        let none = CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        };
        // Ambient capabilities end with the permitted ones.
        set_capabilities(None, none).map_err(failed)?;
        set_no_new_privs(true).map_err(failed)
    }
}

fn failed(source: impl Into<io::Error>) -> PrivilegeError {
    PrivilegeError::System {
        source: source.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_that_cannot_be_become_is_an_error_with_its_name() {
        let said = |name: &str| {
            let result = Privileges::of_this_process(Some(name));
            result.map_err(|e| e.to_string()).unwrap_err()
        };
        assert!(said("no such user").contains("no user \"no such user\""));
        assert!(said("root").contains("is root itself"));
    }
}
