//! A connection: TCP, a Unix socket, or TLS over one of them.

use super::encrypted::{EncryptedStream, Receive};
use super::error::NegotiationError;
use super::strangers::{Place, Strangers};
use gleaner_trust::Peer;
use rustix::buffer::spare_capacity;
use rustix::net::{RecvFlags, recv, sockopt};
use rustls::pki_types::CertificateDer;
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time after which bytes without acknowledgement mean that the peer is dead.
const DEAD_AFTER: Duration = Duration::from_secs(30);

/// A connection without TLS.
#[derive(Debug)]
pub(super) enum PlainStream {
    /// The stream is shared with the [`Line`] by which another thread may close the connection.
    Tcp(Arc<TcpStream>),
    Unix(UnixStream),
}

/// A connection of a client.
#[derive(Debug)]
pub(super) enum Channel {
    Plain(PlainStream),
    Tls(Box<EncryptedStream<ServerConnection, PlainStream>>),
}

impl PlainStream {
    pub(super) fn tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        sockopt::set_socket_keepalive(&stream, true)?;
        sockopt::set_tcp_keepidle(&stream, DEAD_AFTER / 2)?;
        let millis = u32::try_from(DEAD_AFTER.as_millis()).unwrap_or(u32::MAX);
        sockopt::set_tcp_user_timeout(&stream, millis)?;
        Ok(Self::Tcp(Arc::new(stream)))
    }

    /// Registers the connection of a client that is not authenticated yet. Returns `None` at a Unix socket,
    /// whose clients are programs of this machine.
    pub(super) fn stranger(&self, strangers: &Arc<Strangers>) -> io::Result<Option<Place>> {
        match self {
            Self::Tcp(stream) => strangers.enter(stream).map(Some),
            Self::Unix(_) => Ok(None),
        }
    }

    /// Returns a handle by which any thread can close the connection.
    pub(super) fn line(&self) -> io::Result<Line> {
        Ok(match self {
            Self::Tcp(stream) => Line::Tcp(Arc::clone(stream)),
            Self::Unix(stream) => Line::Unix(stream.try_clone()?),
        })
    }

    /// Makes reads and writes return [`io::ErrorKind::WouldBlock`] instead of waiting.
    pub(super) fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nonblocking(true),
            Self::Unix(stream) => stream.set_nonblocking(true),
        }
    }

    pub(super) fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.set_read_timeout(patience)?;
                stream.set_write_timeout(patience)
            }
            Self::Unix(stream) => {
                stream.set_read_timeout(patience)?;
                stream.set_write_timeout(patience)
            }
        }
    }
}

/// Handle on a connection that another thread serves.
#[derive(Debug)]
pub(super) enum Line {
    Tcp(Arc<TcpStream>),
    Unix(UnixStream),
}

impl Line {
    /// Closes the connection, which its thread notices when reading.
    pub(super) fn close_connection(&self) {
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Channel {
    /// Returns the client's certificates and a handle of the connection; `None` without TLS.
    pub(super) fn shown(&self) -> io::Result<Option<(Vec<CertificateDer<'static>>, Line)>> {
        let Self::Tls(tls) = self else {
            return Ok(None);
        };
        let chain = tls.connection().peer_certificates().unwrap_or_default();
        let chain = chain.iter().map(|c| c.clone().into_owned()).collect();
        Ok(Some((chain, tls.socket().line()?)))
    }

    /// Sets the timeout of one read or write; `None`: no timeout.
    pub(super) fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Plain(plain) => plain.set_patience(patience),
            Self::Tls(tls) => tls.socket().set_patience(patience),
        }
    }

    /// Makes the server's side of a TLS handshake, which must end by `until`.
    pub(super) fn start_tls(
        self,
        config: &Arc<ServerConfig>,
        until: Instant,
    ) -> Result<(Self, Peer), NegotiationError> {
        let Self::Plain(mut plain) = self else {
            return Err(NegotiationError::Foreign("TLS within TLS"));
        };
        let failed = |e: rustls::Error| NegotiationError::Tls(io::Error::other(e));
        let mut connection = ServerConnection::new(config.clone()).map_err(failed)?;
        while connection.is_handshaking() {
            connection
                .complete_io(&mut TimedStream {
                    plain: &mut plain,
                    until,
                })
                .map_err(NegotiationError::Tls)?;
        }
        let shown = connection.peer_certificates().and_then(<[_]>::first);
        let certificate = shown.ok_or(NegotiationError::Foreign("no certificate"))?;
        let peer = Peer::of(certificate).map_err(|e| NegotiationError::Tls(io::Error::other(e)))?;
        let tls = EncryptedStream::new(connection, plain);
        Ok((Self::Tls(Box::new(tls)), peer))
    }
}

/// A stream of bytes in both directions.
pub(super) trait Stream: Read + Write {
    /// Returns the socket if bytes are sent unchanged and unbuffered, else `None`.
    fn socket(&self) -> Option<BorrowedFd<'_>>;

    /// Returns the underlying Unix socket, if it is one. (Over TCP, it is faster to read all available bytes
    /// at once than to save a copy.)
    fn unix_socket(&self) -> Option<BorrowedFd<'_>>;
}

impl AsFd for PlainStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Stream for PlainStream {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }

    fn unix_socket(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Tcp(_) => None,
            Self::Unix(stream) => Some(stream.as_fd()),
        }
    }
}

impl Stream for Channel {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Plain(plain) => plain.socket(),
            Self::Tls(_) => None,
        }
    }

    fn unix_socket(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Plain(plain) => plain.unix_socket(),
            Self::Tls(_) => None,
        }
    }
}

/// Stream whose reads and writes must all end by `until`, however slow the other side is.
pub(super) struct TimedStream<'a> {
    pub(super) plain: &'a mut PlainStream,
    pub(super) until: Instant,
}

impl TimedStream<'_> {
    fn apply_remaining_time(&self) -> io::Result<()> {
        self.plain.set_patience(Some(remaining_time(self.until)?))
    }
}

/// Returns the time that remains until `until`.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`] once it has passed.
pub(super) fn remaining_time(until: Instant) -> io::Result<Duration> {
    match until.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
        left => Ok(left),
    }
}

impl Read for TimedStream<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.apply_remaining_time()?;
        self.plain.read(into)
    }
}

impl Write for TimedStream<'_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.apply_remaining_time()?;
        self.plain.write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for PlainStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => (&**stream).read(into),
            Self::Unix(stream) => stream.read(into),
        }
    }
}

impl Receive for PlainStream {
    fn receive(&mut self, into: &mut Vec<u8>, may_wait: bool) -> io::Result<usize> {
        let flags = match may_wait {
            true => RecvFlags::empty(),
            false => RecvFlags::DONTWAIT,
        };
        let (count, _) = recv(self.as_fd(), spare_capacity(into), flags)?;
        Ok(count)
    }
}

impl Write for PlainStream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => (&**stream).write(from),
            Self::Unix(stream) => stream.write(from),
        }
    }

    fn write_vectored(&mut self, from: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => (&**stream).write_vectored(from),
            Self::Unix(stream) => stream.write_vectored(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Channel {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(plain) => plain.read(into),
            Self::Tls(tls) => tls.read(into),
        }
    }
}

impl Write for Channel {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(plain) => plain.write(from),
            Self::Tls(tls) => tls.write(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(tls) => tls.flush(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use gleaner_trust::{Authority, Role, ServerPaths, ServerTrust};
    use std::thread;

    #[test]
    fn a_handshake_that_is_drawn_out_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let authority = Authority::init(&file("pki"), "here", 1).unwrap();
        let host_id = "0".repeat(32);
        let issued = authority.issue(&Role::Host { host_id }, 1).unwrap();
        issued.write(&file("crt"), &file("key")).unwrap();
        let trust = ServerTrust::load(&ServerPaths {
            certificate: file("crt"),
            key: file("key"),
            authority: authority.certificate_path(),
            revocation_list: None,
        });
        let (mut theirs, ours) = UnixStream::pair().unwrap();
        // The client sends the head of a record of 4 KiB and then single bytes, so it is never silent for the
        // whole timeout.
        let slow = thread::spawn(move || {
            let mut sent = theirs.write_all(&[0x16, 3, 1, 0x10, 0]);
            while sent.is_ok() {
                thread::sleep(Duration::from_millis(50));
                sent = theirs.write_all(&[1]);
            }
        });
        let began = Instant::now();
        let until = began + Duration::from_millis(300);
        let channel = Channel::Plain(PlainStream::Unix(ours));
        let ended = channel.start_tls(&trust.unwrap().config(), until);
        assert!(matches!(ended, Err(NegotiationError::Tls(_))));
        assert!(began.elapsed() >= Duration::from_millis(300));
        assert!(began.elapsed() < Duration::from_secs(60), "of its 205 s");
        slow.join().unwrap();
    }
}
