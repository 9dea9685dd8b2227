//! Exports of a server, and who may use them.

use super::wire::{Fault, transmission};
use gleaner_trust::Peer;

/// An export, as clients see it.
pub trait Export: Send + Sync {
    /// Size in bytes.
    fn bytes(&self) -> u64;

    /// Description for people.
    fn description(&self) -> String;

    /// Name of its contents, which distinguishes them from the export's contents at another time; `None`: the
    /// requested name.
    fn name(&self) -> Option<String> {
        None
    }

    /// [`transmission`]: all that this server understands, unless an export can do less.
    fn transmission_flags(&self) -> u16 {
        transmission::HAS_FLAGS
            | transmission::SEND_FLUSH
            | transmission::SEND_FUA
            | transmission::SEND_TRIM
            | transmission::SEND_WRITE_ZEROES
            | transmission::SEND_FAST_ZERO
            | transmission::SEND_CACHE
            | transmission::CAN_MULTI_CONN
    }
}

/// Bytes that are read and written by offset, from any thread.
pub trait Contents: Export {
    /// Reads from `offset` on. After an error, the content of `into` is undefined.
    ///
    /// # Errors
    /// [`Fault`], to be sent to the client.
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Fault>;

    /// Shows what is there without copying it, to `look`, which does not wait; `false`, and nothing is shown, where that cannot be.
    ///
    /// # Errors
    /// [`Fault`], as of [`Self::read`].
    fn show(&self, _offset: u64, _bytes: u64, _look: &mut dyn FnMut(&[u8])) -> Result<bool, Fault> {
        Ok(false)
    }

    /// Writes from `offset` on. On an error, some of it may have been written.
    ///
    /// # Errors
    /// [`Fault`].
    fn write(&self, offset: u64, from: &[u8]) -> Result<(), Fault>;

    /// Lets `fill`, which must not block, write the bytes from `offset` on. It returns the number of bytes
    /// written, of which whole pages count: the remainder is to be written again. It is not called if the
    /// range cannot be written.
    ///
    /// # Errors
    /// [`Fault`], as of [`Self::write`].
    fn fill(
        &self,
        _offset: u64,
        _bytes: u64,
        _fill: &mut dyn FnMut(&mut [u8]) -> usize,
    ) -> Result<(), Fault> {
        Ok(())
    }

    /// Makes zeroes of what is there, and gives its room back where that is possible.
    ///
    /// # Errors
    /// [`Fault`].
    fn discard(&self, offset: u64, bytes: u64) -> Result<(), Fault>;

    /// Returns when everything written before is as durable as it becomes.
    ///
    /// # Errors
    /// [`Fault`].
    fn flush(&self) -> Result<(), Fault>;
}

/// Identity of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A program of this machine, without a certificate.
    Local,
    /// Holder of a client certificate.
    Certified(Peer),
}

/// All exports of a server.
pub trait Exports: Send + Sync {
    /// Contents of one export.
    type Contents: Export;

    /// The export of that name; the empty name is the default one.
    ///
    /// # Errors
    /// [`ExportRefusal`], to be sent to the client.
    fn open(&self, name: &str, caller: &Caller) -> Result<Self::Contents, ExportRefusal>;

    /// Names that this caller may open.
    fn names(&self, caller: &Caller) -> Vec<String>;
}

/// Reason why an export is refused; the text is for people, and names the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportRefusal {
    /// No export has this name, or these contents any more.
    #[error("{0}")]
    Unknown(String),
    /// The caller may not use the export.
    #[error("{0}")]
    Forbidden(String),
    /// The server ends.
    #[error("{0}")]
    Ending(String),
}
