//! Stored form of a part: a line of text, the version of the form, and the part in postcard's encoding,
//! compressed by zstd with a checksum.
//!
//! The same part always gives the same bytes. The form holds the inner state of the measures, and its version
//! rises with any change of that state: a part is read only by the version that wrote it.

use super::Part;
use crate::error::{AnalysisError, PartError, Result};
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// First bytes of every part.
const MAGIC: &[u8] = b"gleaner part of an analysis\n";

/// Version of the stored form; it rises with any change of a measure's state.
const PART_VERSION: u32 = 1;

const ZSTD_LEVEL: i32 = 1;

impl Part {
    /// Stored form of the part.
    ///
    /// # Errors
    /// [`AnalysisError::Part`] if memory is short.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(PART_VERSION.to_le_bytes());
        self.encode(bytes).map_err(|source| AnalysisError::Part {
            origin: "the part".to_owned(),
            source: source.into(),
        })
    }

    fn encode(&self, to: Vec<u8>) -> std::io::Result<Vec<u8>> {
        let mut encoder = zstd::Encoder::new(to, ZSTD_LEVEL)?;
        encoder.include_checksum(true)?;
        let encoder = postcard::to_io(self, encoder).map_err(std::io::Error::other)?;
        encoder.finish()
    }

    /// Reads a part from its stored form; `origin` names the file, for errors.
    ///
    /// # Errors
    /// [`AnalysisError::Part`] with the reason.
    pub fn from_bytes(bytes: &[u8], origin: &str) -> Result<Self> {
        decode(bytes).map_err(|source| AnalysisError::Part {
            origin: origin.to_owned(),
            source,
        })
    }

    /// Writes the part into a file, which is complete or absent, never half-written.
    ///
    /// # Errors
    /// [`AnalysisError::Part`] with the file's path.
    pub fn write(&self, path: &Path) -> Result<()> {
        let bytes = self.to_bytes()?;
        let write = || -> std::io::Result<()> {
            let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
            // As any file that a program writes: the umask decides who may read it.
            let mut file = tempfile::Builder::new()
                .permissions(Permissions::from_mode(0o666))
                .tempfile_in(folder.unwrap_or(Path::new(".")))?;
            file.write_all(&bytes)?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            Ok(())
        };
        write().map_err(|error| in_file(path, error))
    }

    /// Reads the part in a file.
    ///
    /// # Errors
    /// [`AnalysisError::Part`] with the file's path.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|error| in_file(path, error))?;
        Self::from_bytes(&bytes, &path.display().to_string())
    }
}

fn in_file(path: &Path, error: std::io::Error) -> AnalysisError {
    AnalysisError::Part {
        origin: path.display().to_string(),
        source: error.into(),
    }
}

fn decode(bytes: &[u8]) -> Result<Part, PartError> {
    let after_magic = bytes.strip_prefix(MAGIC).ok_or(PartError::NotAPart)?;
    let (version, compressed) = after_magic.split_first_chunk().ok_or(PartError::NotAPart)?;
    let found = u32::from_le_bytes(*version);
    if found != PART_VERSION {
        return Err(PartError::Version {
            found,
            known: PART_VERSION,
        });
    }
    let damaged = |reason: String| PartError::Damaged { reason };
    let encoded = zstd::decode_all(compressed).map_err(|e| damaged(e.to_string()))?;
    let (part, rest) = postcard::take_from_bytes(&encoded).map_err(|e| damaged(e.to_string()))?;
    if rest.is_empty() {
        Ok(part)
    } else {
        Err(damaged(format!("{} bytes follow its end", rest.len())))
    }
}
