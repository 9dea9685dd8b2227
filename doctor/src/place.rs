//! Paths of files on this host, or in captured trees and tests.

use super::daemon::Daemon;
use super::user::User;
use std::path::{Path, PathBuf};

/// Folder in which the daemons look for their configuration by default.
pub(super) const CONFIGURATION: &str = "/etc/gleaner";
const STATE: &str = "/var/lib/gleaner";
const RUNTIME: &str = "/run/gleaner";
/// Folders with programs that may be missing in a user's PATH.
const PROGRAMS: [&str; 5] = ["/usr/bin", "/usr/local/bin", "/usr/sbin", "/bin", "/sbin"];

/// Paths that the doctor examines, and the user who runs it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) configuration: PathBuf,
    pub(super) programs: Option<PathBuf>,
    pub(super) proc_root: PathBuf,
    pub(super) sys_root: PathBuf,
    pub(super) me: User,
}

impl Place {
    /// Finds a program: in the folder given by `--programs`, in the PATH, or in the folders where packages
    /// install programs.
    pub(super) fn program(&self, name: &str) -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = self.programs.iter().cloned();
        let folders = folders.chain(std::env::split_paths(&path));
        let folders = folders.chain(PROGRAMS.iter().map(PathBuf::from));
        let mut files = folders.map(|folder| folder.join(name));
        files.find(|file| {
            rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok() && file.is_file()
        })
    }

    /// Returns true if systemd runs this host (sd_booted(3)).
    pub(super) fn has_systemd(&self) -> bool {
        let stands_in = self
            .programs
            .as_ref()
            .map(|folder| folder.join("systemctl"));
        stands_in.is_some_and(|file| file.exists()) || Path::new("/run/systemd/system").is_dir()
    }

    /// Path of a daemon's configuration, which need not exist.
    pub(super) fn configuration_of(&self, daemon: Daemon) -> PathBuf {
        self.configuration.join(daemon.file())
    }

    /// Returns true if the configuration is in the folder where daemons look for it by default.
    pub(super) fn is_usual(&self) -> bool {
        self.configuration == Path::new(CONFIGURATION)
    }

    /// Command line of a daemon's program. It names the examined configuration if that is not in the default
    /// folder.
    pub(super) fn line(&self, daemon: Daemon, command: &str) -> String {
        let program = match &self.programs {
            Some(folder) if folder.join(daemon.program()).is_file() => {
                quoted(&folder.join(daemon.program()))
            }
            _ => daemon.program().to_owned(),
        };
        let configuration = match self.is_usual() {
            true => String::new(),
            false => format!(" --config {}", quoted(&self.configuration_of(daemon))),
        };
        format!("{program} {command}{configuration}")
    }

    /// Command line of `gleaner` itself with this command.
    pub(super) fn gleaner(&self, command: &str) -> String {
        format!("gleaner {command}")
    }

    /// Path of a file in the daemons' state folder: the system's folder, or the one in the user's home for a
    /// user's own daemon.
    pub(super) fn state(&self, file: &str) -> PathBuf {
        let home =
            || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".local/state");
        let own = std::env::var_os("XDG_STATE_HOME").map_or_else(home, PathBuf::from);
        self.one_of(
            Path::new(STATE).join(file),
            Some(own.join("gleaner").join(file)),
        )
    }

    /// Path of a socket: the system's, or the user's for a user's own daemon.
    pub(super) fn runtime(&self, file: &str) -> PathBuf {
        let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        self.one_of(
            Path::new(RUNTIME).join(file),
            own.map(|own| own.join("gleaner").join(file)),
        )
    }

    /// Returns `own` if that file exists, `system` does not, and the user is not root; otherwise `system`.
    fn one_of(&self, system: PathBuf, own: Option<PathBuf>) -> PathBuf {
        let is_gone = |path: &Path| {
            std::fs::symlink_metadata(path).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound)
        };
        match own {
            Some(own) if self.me.uid != 0 && is_gone(&system) && own.exists() => own,
            _ => system,
        }
    }
}

/// A path quoted for a shell.
pub(super) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_a_shell() {
        assert_eq!(quoted(Path::new("/a/b.c-d")), "/a/b.c-d");
        assert_eq!(quoted(Path::new("/a b/it's;rm")), "'/a b/it'\\''s;rm'");
        assert_eq!(quoted(Path::new("")), "''");
    }
}
