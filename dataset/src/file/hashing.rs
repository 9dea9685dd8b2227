//! Hashes data while it is written to a file, so that the file need not be read again for its hash.

use std::io::{self, Write};

/// Writes to `inner`. Hashes all data; also hashes, separately, the data since the last
/// [`HashingWriter::part`].
pub(crate) struct HashingWriter<W> {
    inner: W,
    pub(crate) bytes: u64,
    whole: blake3::Hasher,
    part: blake3::Hasher,
    /// Copy of the bytes written since [`HashingWriter::keep`]; absent before that call.
    kept: Option<Vec<u8>>,
}

impl<W: Write> HashingWriter<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self {
            inner,
            bytes: 0,
            whole: blake3::Hasher::new(),
            part: blake3::Hasher::new(),
            kept: None,
        }
    }

    /// Hash of the bytes written since the last call of this method.
    pub(crate) fn part(&mut self) -> String {
        let hash = self.part.finalize().to_string();
        self.part.reset();
        hash
    }

    /// Keeps a copy of all bytes written after this call.
    pub(crate) fn keep(&mut self) {
        self.kept = Some(Vec::new());
    }

    /// Returns the inner writer, the hash of all bytes, and the copy of the bytes written after
    /// [`Self::keep`].
    pub(crate) fn finish(self) -> (W, String, Vec<u8>) {
        let kept = self.kept.unwrap_or_default();
        (self.inner, self.whole.finalize().to_string(), kept)
    }
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let length = self.inner.write(data)?;
        let written = &data[..length];
        self.whole.update(written);
        self.part.update(written);
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(written);
        }
        self.bytes += length as u64;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
