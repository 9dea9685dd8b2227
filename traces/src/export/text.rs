//! A text file of an export, and the formats of its fields.

use super::unfinished::UnfinishedFile;
use crate::{ExportError, Result};
use std::fmt::{self, Display};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

pub(super) struct TextFile {
    unfinished: UnfinishedFile,
    writer: BufWriter<File>,
    /// Number of lines written.
    pub(super) lines: u64,
}

impl TextFile {
    pub(super) fn create(path: PathBuf) -> Result<Self> {
        let (unfinished, file) = UnfinishedFile::create(path)?;
        Ok(Self {
            unfinished,
            writer: BufWriter::new(file),
            lines: 0,
        })
    }

    pub(super) fn line(&mut self, line: impl Display) -> Result<()> {
        self.lines += 1;
        writeln!(self.writer, "{line}").map_err(ExportError::io("write", &self.unfinished.path))
    }

    /// Renames the file to its final name; returns its length in bytes.
    pub(super) fn finish(self) -> Result<u64> {
        let file = self.writer.into_inner();
        let file =
            file.map_err(|e| ExportError::io("write", &self.unfinished.path)(e.into_error()))?;
        self.unfinished.finish(&file)
    }
}

/// Milliseconds, written as seconds without loss. Whole seconds have no decimal point, because some readers
/// accept none.
pub(super) struct Seconds(pub(super) i64);

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        match ms % 1000 {
            0 => write!(f, "{sign}{}", ms / 1000),
            rest => write!(f, "{sign}{}.{rest:03}", ms / 1000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_exact() {
        let cases = [
            (0, "0"),
            (1, "0.001"),
            (90_000, "90"),
            (1_795_176_000_050, "1795176000.050"),
            (-1_500, "-1.500"),
            (-999, "-0.999"),
            (i64::MIN, "-9223372036854775.808"),
        ];
        for (ms, seconds) in cases {
            assert_eq!(Seconds(ms).to_string(), seconds);
        }
    }
}
