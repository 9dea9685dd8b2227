//! A client's connection, with or without TLS, blocking or not.

use super::tls::Tls;
use crate::nbd::channel::{PlainStream, TimedStream};
use crate::nbd::encrypted::EncryptedStream;
use rustls::ClientConnection;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Stream of bytes to and from a server.
#[derive(Debug)]
pub struct Wire(Transport);

#[derive(Debug)]
enum Transport {
    Plain(PlainStream),
    Tls(Box<EncryptedStream<ClientConnection, PlainStream>>),
}

impl Wire {
    pub(in crate::nbd) fn plain(plain: PlainStream) -> Self {
        Self(Transport::Plain(plain))
    }

    /// Makes the client's side of a TLS handshake, which must end by `until`.
    pub(super) fn start_tls(self, tls: &Tls, until: Instant) -> io::Result<Self> {
        let Transport::Plain(mut plain) = self.0 else {
            return Err(io::Error::other("TLS within TLS"));
        };
        let new = ClientConnection::new(tls.config.clone(), tls.name.clone());
        let mut connection = new.map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut TimedStream {
                plain: &mut plain,
                until,
            })?;
        }
        let tls = EncryptedStream::new(connection, plain);
        Ok(Self(Transport::Tls(Box::new(tls))))
    }

    fn socket(&self) -> &PlainStream {
        match &self.0 {
            Transport::Plain(plain) => plain,
            Transport::Tls(tls) => tls.socket(),
        }
    }

    /// Sets the timeout of one read or write; `None`: no timeout.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        self.socket().set_patience(patience)
    }

    /// Makes reads and writes return [`io::ErrorKind::WouldBlock`] instead of waiting.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn set_nonblocking(&self) -> io::Result<()> {
        self.socket().set_nonblocking()
    }

    /// Returns true if written bytes are still buffered: call [`Write::flush`] once the socket is writable.
    #[must_use]
    pub fn wants_write(&self) -> bool {
        match &self.0 {
            Transport::Plain(_) => false,
            Transport::Tls(tls) => tls.connection().wants_write(),
        }
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket().as_fd()
    }
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Transport::Plain(plain) => plain.read(into),
            Transport::Tls(tls) => tls.read(into),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Transport::Plain(plain) => plain.write(from),
            Transport::Tls(tls) => tls.write(from),
        }
    }

    fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.0 {
            Transport::Plain(plain) => plain.write_vectored(from),
            Transport::Tls(tls) => tls.write_vectored(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Transport::Plain(_) => Ok(()),
            Transport::Tls(tls) => tls.flush(),
        }
    }
}
