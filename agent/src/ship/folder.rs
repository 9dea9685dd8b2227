//! The folder that enrolment fills: what this host needs to speak to its collector.

use crate::Error;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// The collector's address.
pub(crate) const COLLECTOR: &str = "collector.url";

/// The authority's certificate.
pub(crate) const AUTHORITY: &str = "authority.crt";

/// This host's certificate and its private key: in one file, so that both are replaced at once.
pub(crate) const HOST: &str = "host.pem";

/// Key and request of an enrolment that has no answer yet.
pub(crate) const REQUEST: &str = "request.pem";

pub(crate) const SECRET: u32 = 0o600;
pub(crate) const PUBLIC: u32 = 0o644;

/// Makes the folder, for its owner alone.
///
/// # Errors
/// [`Error::Put`].
pub(crate) fn make(folder: &Path) -> Result<(), Error> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(Error::put(folder))
}

/// Puts a file there, whole and durable or not at all: written beside, then renamed.
///
/// # Errors
/// [`Error::Put`].
pub(crate) fn put(path: &Path, content: &str, mode: u32) -> Result<(), Error> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let write = || -> io::Result<()> {
        let _ = std::fs::remove_file(&beside); // left by one who was killed, perhaps with another mode
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&beside)?;
        file.write_all(content.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, path)?;
        path.parent()
            .map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    };
    write().map_err(Error::put(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_are_replaced_whole_and_keys_are_their_owners() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/ship");
        make(&folder).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        let path = folder.join(HOST);
        std::fs::write(folder.join("host.pem.new"), "left behind").unwrap();
        for content in ["one", "two"] {
            put(&path, content, SECRET).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
            assert_eq!(mode(&path), 0o600);
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    }
}
