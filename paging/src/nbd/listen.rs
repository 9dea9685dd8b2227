//! Accepts connections, and serves each in a thread of its own.

use super::channel::{Channel, PlainStream};
use super::error::NegotiationError;
use super::export::{Contents, Export, Exports};
use super::guests::Arrival;
use super::load::Load;
use super::negotiate::{Door, Outcome, negotiate};
use super::strangers::{self, Strangers};
use super::transmit::{TransmissionError, transmit};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use std::{fmt, fs, io};

/// Stack size of a connection's thread; TLS needs most of it.
const STACK_BYTES: usize = 256 << 10;
/// Timeout of the handshake, after which the client is disconnected.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of broken connections logged per minute; strangers must not fill the log.
const MOST_LINES: u32 = 10;
/// Pause after accept(2) fails, for example because no descriptor is left.
const PAUSE: Duration = Duration::from_millis(100);

/// Address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Address and port for TCP.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl Address {
    /// Returns true if only programs of this machine can connect: a Unix socket, or a loopback address.
    #[must_use]
    pub fn is_this_machine(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }

    /// Removes the file of a Unix socket, if it exists.
    pub fn clear(&self) {
        if let Self::Unix(path) = self {
            let _ = fs::remove_file(path);
        }
    }
}

/// Parses an address as on command lines: a path contains a `/`.
impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('/') {
            return Ok(Self::Unix(text.into()));
        }
        let wrong = |_| format!("`{text}` is neither HOST:PORT nor a path with a `/` in it");
        text.parse().map(Self::Tcp).map_err(wrong)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

/// A socket that listens.
#[derive(Debug)]
pub struct Listener(Socket);

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Listens. A leftover Unix socket without a listener is replaced.
    ///
    /// # Errors
    /// The kernel's error; [`io::ErrorKind::AddrInUse`] if another program listens there.
    pub fn open(address: &Address) -> io::Result<Self> {
        let socket = match address {
            Address::Tcp(address) => Socket::Tcp(TcpListener::bind(address)?),
            Address::Unix(path) => Socket::Unix(listen_at(path)?),
        };
        Ok(Self(socket))
    }

    /// Returns the address at which the server listens, with the port that the kernel chose if none was
    /// given; `None` for a Unix socket.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn tcp_address(&self) -> io::Result<Option<SocketAddr>> {
        match &self.0 {
            Socket::Tcp(listener) => listener.local_addr().map(Some),
            Socket::Unix(_) => Ok(None),
        }
    }

    /// Returns the URL for NBD clients, with the port that the kernel chose if none was given.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn url(&self) -> io::Result<String> {
        Ok(match &self.0 {
            Socket::Tcp(listener) => format!("nbd://{}", listener.local_addr()?),
            Socket::Unix(listener) => {
                let address = listener.local_addr()?;
                let path = address.as_pathname().unwrap_or(Path::new(""));
                format!("nbd+unix:///?socket={}", path.display())
            }
        })
    }

    fn accept(&self) -> io::Result<PlainStream> {
        match &self.0 {
            Socket::Tcp(listener) => PlainStream::tcp(listener.accept()?.0),
            Socket::Unix(listener) => Ok(PlainStream::Unix(listener.accept()?.0)),
        }
    }

    /// Serves until the process ends. While `most_connections` clients are served, a further client is
    /// disconnected after it has named its export.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn serve<E>(
        self,
        exports: Arc<E>,
        door: Door,
        load: Arc<Load>,
        most_connections: u64,
    ) -> io::Result<thread::JoinHandle<()>>
    where
        E: Exports<Contents: Contents> + 'static,
    {
        let journal = Arc::new(Journal::default());
        let strangers = Arc::new(Strangers::default());
        let serve = move || {
            loop {
                match self.accept() {
                    Ok(plain) => {
                        let Ok(place) = plain.stranger(&strangers) else {
                            continue;
                        };
                        let visitor = Visitor {
                            exports: exports.clone(),
                            door: door.clone(),
                            load: load.clone(),
                            most_connections,
                            journal: journal.clone(),
                        };
                        // If no thread can be started, the connection is dropped and so closed.
                        let _ = named("pages").spawn(move || visitor.serve(plain, place));
                    }
                    Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(_) => thread::sleep(PAUSE),
                }
            }
        };
        named("listen").spawn(serve)
    }
}

/// Listens at a Unix socket. The file of a dead server is replaced.
///
/// # Errors
/// The kernel's error; [`io::ErrorKind::AddrInUse`] if another program listens there.
pub fn listen_at(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(e) if e.kind() == io::ErrorKind::AddrInUse => match UnixStream::connect(path) {
            Err(dead) if dead.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(path)?;
                UnixListener::bind(path)
            }
            _ => Err(e),
        },
        other => other,
    }
}

fn named(name: &str) -> thread::Builder {
    thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK_BYTES)
}

/// Connection of one client, with the server's shared data.
struct Visitor<E> {
    exports: Arc<E>,
    door: Door,
    load: Arc<Load>,
    most_connections: u64,
    journal: Arc<Journal>,
}

/// Reason why a connection ended other than by the client's request.
#[derive(Debug, thiserror::Error)]
enum BrokenConnection {
    #[error(transparent)]
    Negotiating(#[from] NegotiationError),
    #[error(transparent)]
    Transmitting(#[from] TransmissionError),
}

impl BrokenConnection {
    /// Returns false if the client has only closed the connection (a probe of the port, or a killed client).
    fn is_news(&self) -> bool {
        let (Self::Negotiating(NegotiationError::Io(e))
        | Self::Transmitting(TransmissionError::Io(e))) = self
        else {
            return true;
        };
        !matches!(
            e.kind(),
            io::ErrorKind::UnexpectedEof
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::BrokenPipe
        )
    }
}

impl<E: Exports<Contents: Contents>> Visitor<E> {
    fn serve(self, plain: PlainStream, place: Option<strangers::Place>) {
        match self.talk(plain, place) {
            Err(broken) if broken.is_news() => self.journal.tell(&broken.to_string()),
            _ => {}
        }
    }

    fn talk(
        &self,
        plain: PlainStream,
        place: Option<strangers::Place>,
    ) -> Result<(), BrokenConnection> {
        let channel = Channel::Plain(plain);
        let Outcome::Transmit(channel, contents) =
            negotiate(channel, &*self.exports, &self.door, PATIENCE)?
        else {
            return Ok(());
        };
        drop(place);
        let _guest = self.admit(&channel, &contents)?;
        let Some(_counted) = CountedConnection::of(&self.load, self.most_connections) else {
            return Ok(());
        };
        channel.set_patience(None).map_err(TransmissionError::Io)?;
        match channel {
            // The stream's type is known here, so that the compiler can inline the socket's calls.
            Channel::Plain(plain) => transmit(plain, &contents, &self.load)?,
            tls @ Channel::Tls(_) => transmit(tls, &contents, &self.load)?,
        }
        Ok(())
    }
}

impl<E: Exports<Contents: Contents>> Visitor<E> {
    /// Has the gate admit a client that has shown a certificate.
    fn admit(
        &self,
        channel: &Channel,
        contents: &E::Contents,
    ) -> Result<Option<Box<dyn Send>>, NegotiationError> {
        let (Door::Tls(gate), Some((certificates, line))) = (&self.door, channel.shown()?) else {
            return Ok(None);
        };
        let arrival = Arrival {
            certificates,
            export: contents.name().unwrap_or_default(),
            line,
        };
        let admitted = gate.admit(arrival);
        let refused = |why| NegotiationError::Tls(io::Error::other(why));
        admitted.map(Some).map_err(refused)
    }
}

/// A serving connection, counted until it is dropped.
struct CountedConnection<'a>(&'a Load);

impl<'a> CountedConnection<'a> {
    /// Counts a connection; returns `None` if the limit of connections is reached.
    fn of(load: &'a Load, most: u64) -> Option<Self> {
        load.connect(most).then_some(Self(load))
    }
}

impl Drop for CountedConnection<'_> {
    fn drop(&mut self) {
        self.0.disconnect();
    }
}

/// Log of broken connections with a limited number of lines per minute.
#[derive(Debug, Default)]
struct Journal(Mutex<Option<(Instant, u32)>>);

impl Journal {
    fn tell(&self, why: &str) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, lines) = told.get_or_insert((Instant::now(), 0));
        if since.elapsed() > Duration::from_secs(60) {
            (*since, *lines) = (Instant::now(), 0);
        }
        *lines += 1;
        match *lines {
            ..MOST_LINES => eprintln!("pages: a connection was closed: {why}"),
            MOST_LINES => {
                eprintln!("pages: a connection was closed: {why}; no more of that for a minute")
            }
            _ => {}
        }
    }
}
