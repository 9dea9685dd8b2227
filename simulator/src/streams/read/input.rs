//! Reads the bytes of a file, decompressed if the file's name says that it is compressed.

use crate::streams::StreamError;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// An open file.
pub(super) struct Input {
    pub(super) path: PathBuf,
    bytes: Box<dyn Read + Send>,
}

impl Input {
    /// Opens a file.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn open(path: &Path) -> Result<Self, StreamError> {
        let file = File::open(path).map_err(StreamError::io("open", path))?;
        let bytes: Box<dyn Read + Send> = if is_compressed(path) {
            let decoder = zstd::Decoder::new(file);
            Box::new(decoder.map_err(StreamError::io("decompress", path))?)
        } else {
            Box::new(file)
        };
        Ok(Self {
            path: path.to_owned(),
            bytes,
        })
    }

    /// Bytes of the file, read in large pieces.
    pub(super) fn buffered(self) -> (PathBuf, BufReader<Box<dyn Read + Send>>) {
        (self.path, BufReader::with_capacity(1 << 17, self.bytes))
    }

    #[cfg(test)]
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self {
            path: PathBuf::from("stream"),
            bytes: Box::new(io::Cursor::new(bytes.to_vec())),
        }
    }
}

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.bytes.read(into)
    }
}

/// Returns true for compressed files, by the endings that libCacheSim's public traces use.
fn is_compressed(path: &Path) -> bool {
    decompressed(&name(path)).is_some()
}

/// Name of a file, without its folders.
pub(super) fn name(path: &Path) -> Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

/// Name of the decompressed file; `None` if the name does not say that the file is compressed.
pub(super) fn decompressed(name: &str) -> Option<&str> {
    let before = name.strip_suffix(".zst");
    before.or_else(|| name.strip_suffix(".zst.22"))
}
