//! What a server has to offer: exports, and who may have them.

use super::wire::{Fault, transmission};
use gleaner_trust::Peer;

/// What is offered, as a client is told of it.
pub trait Export: Send + Sync {
    /// How many bytes there are.
    fn bytes(&self) -> u64;

    /// What it is, for people.
    fn description(&self) -> String;

    /// Its own name, which tells its contents from others that the same export may have at another time; `None`: as it was asked for.
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
    /// Reads from `offset` on. On an error, what `into` holds means nothing.
    ///
    /// # Errors
    /// [`Fault`], which goes to the client.
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

    /// Has `fill`, which does not wait, write what is there, from `offset` on; it says how many bytes it wrote, of
    /// which whole pages count: the rest is to be written again. It is not called where that cannot be.
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

/// Who is at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A program of this machine, without a certificate.
    Local,
    /// Whoever the certificate names.
    Certified(Peer),
}

/// All exports of a server.
pub trait Exports: Send + Sync {
    /// Of one export.
    type Contents: Export;

    /// The export of that name; the empty name is the default one.
    ///
    /// # Errors
    /// [`Refused`], which the client is told.
    fn open(&self, name: &str, caller: &Caller) -> Result<Self::Contents, Refused>;

    /// Names that this caller may open.
    fn names(&self, caller: &Caller) -> Vec<String>;
}

/// Why an export cannot be had; the text is for people, and says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is none of that name, or no longer with those contents.
    #[error("{0}")]
    Unknown(String),
    /// Not for this caller.
    #[error("{0}")]
    Forbidden(String),
    /// The server ends.
    #[error("{0}")]
    Ending(String),
}
