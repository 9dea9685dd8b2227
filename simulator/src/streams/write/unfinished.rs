//! A file that is not complete yet.

use crate::streams::StreamError;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// An incomplete file next to its final place. It is removed if it is never finished.
pub(super) struct UnfinishedStream {
    place: PathBuf,
    path: PathBuf,
    is_finished: bool,
}

impl UnfinishedStream {
    /// Begins a file for `place`. Several files for one place have different endings `what`.
    pub(super) fn begin(place: &Path, what: &str) -> Result<(Self, File), StreamError> {
        let mut name = place.file_name().unwrap_or_default().to_owned();
        name.push(what);
        let unfinished = Self {
            place: place.to_owned(),
            path: place.with_file_name(name),
            is_finished: false,
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let file = options.open(&unfinished.path);
        let file = file.map_err(StreamError::io("create", &unfinished.path))?;
        Ok((unfinished, file))
    }

    /// Moves the finished file to its place, and returns its size in bytes.
    pub(super) fn finish(mut self, file: &File) -> Result<u64, StreamError> {
        let io = |action| StreamError::io(action, &self.path);
        file.sync_all().map_err(io("write"))?;
        let bytes = file.metadata().map_err(io("read"))?.len();
        fs::rename(&self.path, &self.place).map_err(StreamError::io("replace", &self.place))?;
        self.is_finished = true;
        Ok(bytes)
    }
}

impl Drop for UnfinishedStream {
    fn drop(&mut self) {
        if !self.is_finished {
            // If removing the file fails, the file stays.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writer to a file, compressed if the name of its place says so.
pub(super) enum Output {
    Plain(BufWriter<File>),
    Compressed(Box<zstd::Encoder<'static, BufWriter<File>>>),
}

/// Default level of zstd, which takes a third of the time of higher levels.
const LEVEL: i32 = 3;
const BUFFER_BYTES: usize = 1 << 17;

impl Output {
    pub(super) fn to(place: &Path, file: File) -> io::Result<Self> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(match is_compressed(place) {
            false => Self::Plain(file),
            true => Self::Compressed(Box::new(zstd::Encoder::new(file, LEVEL)?)),
        })
    }

    /// Finishes writing, and returns the complete file.
    pub(super) fn end(self) -> io::Result<File> {
        let file = match self {
            Self::Plain(file) => file,
            Self::Compressed(encoder) => encoder.finish()?,
        };
        file.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Compressed(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Compressed(encoder) => encoder.flush(),
        }
    }
}

/// Returns true if a file at this path must be compressed.
pub(super) fn is_compressed(place: &Path) -> bool {
    place.extension().is_some_and(|ending| ending == "zst")
}
