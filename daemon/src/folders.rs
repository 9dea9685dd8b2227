//! Folders for state, sockets and configuration.
//!
//! Folders that the service manager made for a service have precedence: `STATE_DIRECTORY`,
//! `RUNTIME_DIRECTORY` and `CONFIGURATION_DIRECTORY` of systemd.exec(5), each a list separated by colons. So
//! a daemon without root finds its folders. Otherwise root uses the system's folders, and another user those
//! of the XDG Base Directory Specification. Both ways lead root to the same places: a command that an
//! administrator runs as root finds the service's files.

use std::ffi::OsString;
use std::fs::{File, metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

/// Name of Gleaner's folder within each of the folders below.
const NAME: &str = "gleaner";
const SYSTEM_STATE: &str = "/var/lib";
const SYSTEM_RUNTIME: &str = "/run";
const SYSTEM_CONFIGURATION: &str = "/etc/gleaner";

/// State folder of this daemon; `own` is the folder's name. The agent's name is "": its folder contains those
/// of all others.
#[must_use]
pub fn state(own: &str) -> PathBuf {
    FolderFacts::now().state(own)
}

/// State folder of another daemon than this one; `of` is the folder's name.
#[must_use]
pub fn state_of_another(of: &str) -> PathBuf {
    FolderFacts::now().state_of_another(of)
}

/// Folder of the sockets; `None` for a user without a runtime folder.
#[must_use]
pub fn runtime() -> Option<PathBuf> {
    FolderFacts::now().runtime()
}

/// Folder of the configuration files.
#[must_use]
pub fn configuration() -> PathBuf {
    FolderFacts::now().configuration()
}

/// Gives a file just made at `path` to the owner of its folder: the service must be able to use files that an
/// administrator's command creates there. Does nothing if this process is not root.
///
/// # Errors
/// The system's error.
pub fn chown_to_folder_owner(made: &File, path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let owner = metadata(folder.unwrap_or(Path::new(".")))?;
    let ours = made.metadata()?;
    if (ours.uid(), ours.gid()) == (owner.uid(), owner.gid()) {
        return Ok(());
    }
    match fchown(made, Some(owner.uid()), Some(owner.gid())) {
        // Only root can give files away; for other users the file stays their own.
        Err(e) if e.kind() == ErrorKind::PermissionDenied => Ok(()),
        other => other,
    }
}

/// Facts that determine the folders.
struct FolderFacts<F> {
    is_root: bool,
    variable: F,
}

impl FolderFacts<fn(&str) -> Option<OsString>> {
    fn now() -> Self {
        Self {
            is_root: rustix::process::geteuid().is_root(),
            variable: |name| std::env::var_os(name),
        }
    }
}

impl<F: Fn(&str) -> Option<OsString>> FolderFacts<F> {
    fn state(&self, own: &str) -> PathBuf {
        let given = self.given("STATE_DIRECTORY");
        let name = if own.is_empty() { NAME } else { own };
        if let Some(folder) = given.iter().find(|folder| folder.ends_with(name)) {
            return folder.clone();
        }
        match given.into_iter().next() {
            Some(all) if all.ends_with(NAME) => all.join(own),
            Some(folder) => folder,
            None => joined(self.default_state(), own),
        }
    }

    fn state_of_another(&self, of: &str) -> PathBuf {
        let given = self.given("STATE_DIRECTORY");
        let all = |folder: &PathBuf| {
            let all = folder.ancestors().find(|folder| folder.ends_with(NAME));
            all.map(Path::to_owned)
        };
        let found = given.iter().find_map(all);
        found.unwrap_or_else(|| self.default_state()).join(of)
    }

    fn runtime(&self) -> Option<PathBuf> {
        let given = self.given("RUNTIME_DIRECTORY").into_iter().next();
        given.or_else(|| {
            let folder = if self.is_root {
                Some(PathBuf::from(SYSTEM_RUNTIME))
            } else {
                let of_service = || self.is_service().then(|| PathBuf::from(SYSTEM_RUNTIME));
                self.folder("XDG_RUNTIME_DIR").or_else(of_service)
            };
            folder.map(|folder| folder.join(NAME))
        })
    }

    fn configuration(&self) -> PathBuf {
        let given = self.given("CONFIGURATION_DIRECTORY").into_iter().next();
        given.unwrap_or_else(|| SYSTEM_CONFIGURATION.into())
    }

    fn default_state(&self) -> PathBuf {
        let folder = if self.is_root || self.is_service() {
            PathBuf::from(SYSTEM_STATE)
        } else {
            let home = || self.folder("HOME").unwrap_or_default().join(".local/state");
            self.folder("XDG_STATE_HOME").unwrap_or_else(home)
        };
        folder.join(NAME)
    }

    /// Returns true for a system service: one of its folders lies in `/var` or `/run/gleaner`.
    fn is_service(&self) -> bool {
        let given = self.given("STATE_DIRECTORY").into_iter();
        let mut all = given.chain(self.given("RUNTIME_DIRECTORY"));
        all.any(|folder| folder.starts_with("/var") || folder.starts_with("/run/gleaner"))
    }

    fn given(&self, name: &str) -> Vec<PathBuf> {
        let list = (self.variable)(name).unwrap_or_default();
        let folders = std::env::split_paths(&list);
        folders.filter(|path| path.is_absolute()).collect()
    }

    fn folder(&self, name: &str) -> Option<PathBuf> {
        let folder = (self.variable)(name).filter(|value| !value.is_empty());
        folder.map(PathBuf::from)
    }
}

fn joined(folder: PathBuf, name: &str) -> PathBuf {
    if name.is_empty() {
        folder // no slash at the end
    } else {
        folder.join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Variables = &'static [(&'static str, &'static str)];

    fn here(is_root: bool, variables: Variables) -> FolderFacts<impl Fn(&str) -> Option<OsString>> {
        FolderFacts {
            is_root,
            variable: move |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            },
        }
    }

    const HOME: (&str, &str) = ("HOME", "/home/ann");

    #[test]
    fn a_service_and_the_administrator_beside_it_find_the_same() {
        let services: [(Variables, bool); 7] = [
            // In order: the common state folder; memoryd's own; both folders; memoryd's own and a runtime
            // folder; only a runtime folder; root without variables; root with a user's variables.
            (&[("STATE_DIRECTORY", "/var/lib/gleaner")], false),
            (&[("STATE_DIRECTORY", "/var/lib/gleaner/memoryd")], false),
            (
                &[("STATE_DIRECTORY", "/var/lib/gleaner:/var/lib/gleaner/ship")],
                false,
            ),
            (
                &[
                    ("STATE_DIRECTORY", "/var/lib/gleaner/memoryd"),
                    ("RUNTIME_DIRECTORY", "/run/gleaner"),
                ],
                false,
            ),
            (&[("RUNTIME_DIRECTORY", "/run/gleaner"), HOME], false),
            (&[], true),
            (&[HOME, ("XDG_RUNTIME_DIR", "/run/user/0")], true),
        ];
        for (variables, is_root) in services {
            let here = here(is_root, variables);
            let own = here.state("memoryd");
            assert_eq!(own, Path::new("/var/lib/gleaner/memoryd"), "{variables:?}");
            let ship = here.state_of_another("ship");
            assert_eq!(ship, Path::new("/var/lib/gleaner/ship"), "{variables:?}");
            let runtime = here.runtime().unwrap();
            assert_eq!(runtime, Path::new("/run/gleaner"), "{variables:?}");
            assert_eq!(here.configuration(), Path::new("/etc/gleaner"));
        }
        for (variables, is_root) in [services[0], services[2], services[5]] {
            let state = here(is_root, variables).state("");
            assert_eq!(state.as_os_str(), "/var/lib/gleaner", "{variables:?}");
        }
    }

    #[test]
    fn the_service_managers_word_wins_wherever_it_points() {
        let elsewhere = &[
            ("STATE_DIRECTORY", "/srv/x:/srv/y"),
            ("RUNTIME_DIRECTORY", "/run/x:/run/y"),
            ("CONFIGURATION_DIRECTORY", "/etc/x"),
        ];
        let here = here(true, elsewhere);
        assert_eq!(here.state("memoryd"), Path::new("/srv/x"));
        assert_eq!(here.state(""), Path::new("/srv/x"));
        assert_eq!(here.runtime().unwrap(), Path::new("/run/x"));
        assert_eq!(here.configuration(), Path::new("/etc/x"));
    }

    #[test]
    fn a_user_has_folders_of_their_own() {
        let at_home = here(false, &[HOME, ("XDG_STATE_HOME", "")]);
        let state = Path::new("/home/ann/.local/state/gleaner");
        assert_eq!(at_home.state("").as_os_str(), state.as_os_str());
        assert_eq!(at_home.state("memoryd"), state.join("memoryd"));
        assert_eq!(at_home.state_of_another("ship"), state.join("ship"));
        assert_eq!(at_home.runtime(), None);
        let xdg: Variables = &[
            HOME,
            ("XDG_STATE_HOME", "/s"),
            ("XDG_RUNTIME_DIR", "/run/user/7"),
            // The user's own service manager sets this variable; the relative path in it is ignored.
            ("STATE_DIRECTORY", "relative:/s/gleaner"),
        ];
        let xdg = here(false, xdg);
        assert_eq!(xdg.state(""), Path::new("/s/gleaner"));
        assert_eq!(xdg.state_of_another("ship"), Path::new("/s/gleaner/ship"));
        let runtime = xdg.runtime().unwrap();
        assert_eq!(runtime, Path::new("/run/user/7/gleaner"));
    }
}
