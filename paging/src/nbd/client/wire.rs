//! A client's connection, with or without TLS, blocking or not.

use super::tls::Tls;
use crate::nbd::channel::{PlainStream, TimedStream};
use rustls::ClientConnection;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Stream of bytes to and from a server.
#[derive(Debug)]
pub struct Wire {
    plain: PlainStream,
    tls: Option<Box<ClientConnection>>,
}

impl Wire {
    pub(in crate::nbd) fn plain(plain: PlainStream) -> Self {
        Self { plain, tls: None }
    }

    pub(super) fn start_tls(mut self, tls: &Tls, until: Instant) -> io::Result<Self> {
        let new = ClientConnection::new(tls.config.clone(), tls.name.clone());
        let mut connection = new.map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut TimedStream {
                plain: &mut self.plain,
                until,
            })?;
        }
        self.tls = Some(Box::new(connection));
        Ok(self)
    }

    /// Sets the timeout of one read or write; `None`: no timeout.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        self.plain.set_patience(patience)
    }

    /// Makes reads and writes return [`io::ErrorKind::WouldBlock`] instead of waiting.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn set_nonblocking(&self) -> io::Result<()> {
        self.plain.set_nonblocking()
    }

    /// Returns true if written bytes are still buffered: call [`Write::flush`] once the socket is writable.
    #[must_use]
    pub fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.plain.as_fd()
    }
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.plain.read(into),
            Some(tls) => rustls::Stream::new(&mut **tls, &mut self.plain).read(into),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.plain.write(from),
            Some(tls) => rustls::Stream::new(&mut **tls, &mut self.plain).write(from),
        }
    }

    fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.plain.write_vectored(from),
            Some(tls) => rustls::Stream::new(&mut **tls, &mut self.plain).write_vectored(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            None => Ok(()),
            Some(tls) => rustls::Stream::new(&mut **tls, &mut self.plain).flush(),
        }
    }
}
