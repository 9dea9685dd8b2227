//! Exports of a server, and permissions to use them.

use super::wire::{Fault, transmission};
use gleaner_trust::Peer;

/// An export as clients see it.
pub trait Export: Send + Sync {
    /// Size in bytes.
    fn bytes(&self) -> u64;

    /// Description for people.
    fn description(&self) -> String;

    /// Name that distinguishes the export's contents from its contents at another time; `None`: the requested
    /// name is used.
    fn name(&self) -> Option<String> {
        None
    }

    /// Flags ([`transmission`]): by default all that this server supports; an export may support fewer.
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

/// Contents that are read and written by offset, from any thread.
pub trait Contents: Export {
    /// Reads from `offset` on. After an error, the content of `into` is undefined.
    ///
    /// # Errors
    /// [`Fault`], to be sent to the client.
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Fault>;

    /// Passes the bytes to `look` without copying them; `look` must not wait. Returns false, without calling
    /// `look`, if that is impossible.
    ///
    /// # Errors
    /// [`Fault`], as in [`Self::read`].
    fn show(&self, _offset: u64, _bytes: u64, _look: &mut dyn FnMut(&[u8])) -> Result<bool, Fault> {
        Ok(false)
    }

    /// Writes from `offset` on. After an error, some bytes may have been written.
    ///
    /// # Errors
    /// [`Fault`].
    fn write(&self, offset: u64, from: &[u8]) -> Result<(), Fault>;

    /// Lets `fill`, which must not block, write bytes from `offset` on. `fill` returns the number of bytes
    /// written. Only whole pages count, so the caller must write the remainder again. `fill` is not called if
    /// the range cannot be written.
    ///
    /// # Errors
    /// [`Fault`], as in [`Self::write`].
    fn fill(
        &self,
        _offset: u64,
        _bytes: u64,
        _fill: &mut dyn FnMut(&mut [u8]) -> usize,
    ) -> Result<(), Fault> {
        Ok(())
    }

    /// Replaces bytes by zeroes, and frees their memory if possible.
    ///
    /// # Errors
    /// [`Fault`].
    fn discard(&self, offset: u64, bytes: u64) -> Result<(), Fault>;

    /// Returns once everything written before is as durable as it can be in this export.
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

    /// Opens the export called `name`; the empty name is the default export.
    ///
    /// # Errors
    /// [`ExportRefusal`], to be sent to the client.
    fn open(&self, name: &str, caller: &Caller) -> Result<Self::Contents, ExportRefusal>;

    /// Names that this caller may open.
    fn names(&self, caller: &Caller) -> Vec<String>;
}

/// Reason why an export is refused; the message names the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportRefusal {
    /// No export has this name, or its contents were replaced.
    #[error("{0}")]
    Unknown(String),
    /// The caller may not use the export.
    #[error("{0}")]
    Forbidden(String),
    /// The server is ending.
    #[error("{0}")]
    Ending(String),
}
