//! Hashes in place of ids and paths, which must not leave the host.

use crate::state_files::{beside, open_no_follow};
use gleaner_schemas::units::stored;
use gleaner_trust::{hex, random};
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Key of the hashes of files: 32 random bytes in a file of mode 0600 beside the database, so that a copy of
/// the database alone does not reveal which files were in use.
#[derive(Clone)]
pub struct FileIdKey([u8; 32]);

impl FileIdKey {
    /// Creates a random key.
    ///
    /// # Errors
    /// The kernel gives no random bytes.
    pub fn random() -> gleaner_trust::Result<Self> {
        Ok(Self(random::bytes()?))
    }

    /// Reads the key from the file at `path`. If there is no file, creates it with a random key: under
    /// another name first, then renamed, so that an agent killed in between leaves no partial key.
    ///
    /// # Errors
    /// The file can neither be read nor created, or is not 32 bytes long.
    pub fn load_or_create(path: &Path) -> io::Result<Self> {
        match open_no_follow(path, OpenOptions::new().read(true)) {
            Ok(mut file) => {
                let mut key = [0; 32];
                file.read_exact(&mut key)?;
                Ok(Self(key))
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let key = Self::random().map_err(io::Error::other)?;
                let unfinished = beside(path, ".new");
                // An unfinished file was left by a killed agent, or is a link that another user put there.
                match std::fs::remove_file(&unfinished) {
                    Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                    _ => {}
                }
                let mut options = OpenOptions::new();
                options.write(true).create_new(true).mode(0o600);
                let mut file = open_no_follow(&unfinished, &mut options)?;
                file.write_all(&key.0)?;
                file.sync_all()?;
                std::fs::rename(&unfinished, path)?;
                Ok(key)
            }
            Err(e) => Err(e),
        }
    }

    /// Returns the hash (63 bits) that stands for the file with this device and inode.
    #[must_use]
    pub fn file_id(&self, device: u64, inode: u64) -> i64 {
        self.hash(&[device.to_le_bytes(), inode.to_le_bytes()].concat())
    }

    /// Returns the hash (63 bits) that stands for the control group with this path.
    #[must_use]
    pub fn cgroup_id(&self, path: &str) -> i64 {
        self.hash(path.as_bytes())
    }

    fn hash(&self, secret: &[u8]) -> i64 {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(secret);
        let mut first = [0; 8];
        hasher.finalize_xof().fill(&mut first);
        stored(u64::from_le_bytes(first) >> 1)
    }
}

/// Hash of the kernel's boot id, which identifies a boot.
#[must_use]
pub fn boot_id(boot_id: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(boot_id).ok()?.trim();
    (!text.is_empty()).then(|| derived("gleaner boot id v1", text))
}

/// Returns a random name of 128 bits.
///
/// # Errors
/// The kernel gives no random bytes.
pub fn random_id() -> gleaner_trust::Result<String> {
    Ok(hex::encode(&random::bytes::<16>()?))
}

fn derived(context: &str, secret: &str) -> String {
    hex::encode(&blake3::derive_key(context, secret.trim().as_bytes())[..16])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_key_is_made_once_and_only_its_owner_may_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let first = FileIdKey::load_or_create(&path).unwrap().file_id(1, 2);
        assert_eq!(
            FileIdKey::load_or_create(&path).unwrap().file_id(1, 2),
            first
        );
        assert_ne!(FileIdKey::random().unwrap().file_id(1, 2), first);
        assert!(first >= 0);
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn names_do_not_show_what_they_were_made_of() {
        let uuid = "3d1219c7-c4c5-404a-aa1f-6d2a48adfda4\n";
        let id = boot_id(uuid.as_bytes()).unwrap();
        assert_eq!(id.len(), 32);
        assert_eq!(Some(&id), boot_id(uuid.trim().as_bytes()).as_ref());
        assert_ne!(id, uuid.replace('-', ""));
        assert_eq!(boot_id(b"\n"), None);
    }
}
