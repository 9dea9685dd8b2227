//! A client's connection: with TLS or without, waiting or not.

use super::tls::Tls;
use crate::nbd::channel::{InTime, Plain};
use rustls::ClientConnection;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Bytes to and from a server.
#[derive(Debug)]
pub struct Wire {
    plain: Plain,
    tls: Option<Box<ClientConnection>>,
}

impl Wire {
    pub(in crate::nbd) fn plain(plain: Plain) -> Self {
        Self { plain, tls: None }
    }

    pub(super) fn start_tls(mut self, tls: &Tls, until: Instant) -> io::Result<Self> {
        let new = ClientConnection::new(tls.config.clone(), tls.name.clone());
        let mut connection = new.map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut InTime {
                plain: &mut self.plain,
                until,
            })?;
        }
        self.tls = Some(Box::new(connection));
        Ok(self)
    }

    /// How long one read or write may take; `None`: for ever.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        self.plain.set_patience(patience)
    }

    /// From here on, [`io::ErrorKind::WouldBlock`] instead of waiting.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn set_nonblocking(&self) -> io::Result<()> {
        self.plain.set_nonblocking()
    }

    /// Whether something that was written lies here still: [`Write::flush`] once the socket takes more.
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
