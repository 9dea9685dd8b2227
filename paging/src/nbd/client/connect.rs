//! The client's side of the handshake: fixed newstyle, TLS if required, `GO`.

use super::tls::Tls;
use super::wire::Wire;
use crate::nbd::channel::{PlainStream, remaining_time};
use crate::nbd::wire::{
    GREETING, MOST_TEXT_BYTES, OPTION_MAGIC, REPLY_MAGIC, handshake, info, option, reply, take,
};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Maximum length of an answer to an option; a longer answer is an error.
const MOST_ANSWER_BYTES: u32 = MOST_TEXT_BYTES as u32 + 256;
/// Maximum number of replies to one option; a server that sends more is faulty.
const MOST_ANSWERS: usize = 64;

/// Address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Server {
    /// TCP: host name or address, and port.
    Tcp(String),
    /// A Unix socket.
    Unix(PathBuf),
}

impl Server {
    /// Forms of URLs that [`Server::of_url`] parses.
    pub(super) const URLS: &str =
        "nbd://HOST:PORT, nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH";

    /// Returns the server of a lease, at the address that the lease's host announces: `HOST:PORT`, or the path
    /// of a Unix socket, which only a lease of this host itself has.
    #[must_use]
    pub fn of_lease(address: String) -> Self {
        if address.starts_with('/') {
            return Self::Unix(PathBuf::from(address));
        }
        Self::Tcp(address)
    }

    /// Parses a URL as libnbd writes it (doc/uri.md of the NetworkBlockDevice project) into server and export;
    /// `None` for another text.
    pub(super) fn of_url(url: &str) -> Option<(Self, &str)> {
        if let Some(rest) = url.strip_prefix("nbd+unix:///") {
            let (export, socket) = rest.split_once("?socket=")?;
            return Some((Self::Unix(PathBuf::from(socket)), export));
        }
        let rest = url.strip_prefix("nbd://")?;
        let (address, export) = rest.split_once('/').unwrap_or((rest, ""));
        let has_port = address
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        let address = match has_port {
            true => address.to_owned(),
            false if address.is_empty() => return None,
            false => format!("{address}:10809"), // IANA's for NBD
        };
        Some((Self::Tcp(address), export))
    }

    /// Returns true if the connection stays on this machine: a Unix socket, or a loopback address with a
    /// port.
    #[must_use]
    pub fn is_this_machine(&self) -> bool {
        match self {
            Self::Tcp(address) => address
                .parse::<SocketAddr>()
                .is_ok_and(|address| address.ip().is_loopback()),
            Self::Unix(_) => true,
        }
    }
}

/// An export's properties, as its server states them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Name that the server gives the export, or else the requested name.
    pub name: String,
    /// Size of the export, in bytes.
    pub bytes: u64,
    /// Flags of the export ([`crate::nbd::wire::transmission`]).
    pub flags: u16,
}

/// Error that ends an attempt to connect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The network failed, or was too slow.
    #[error("connection: {0}")]
    Io(#[from] io::Error),
    /// The program there does not speak NBD.
    #[error("the server does not speak NBD: {0}")]
    Foreign(&'static str),
    /// The TLS handshake failed, for example because the certificate is another host's.
    #[error("TLS: {0}")]
    Tls(io::Error),
    /// The server refuses, for example because the lease has ended.
    #[error("refused: {0}")]
    Refused(String),
}

/// Connects within `patience` in total. The connection itself has no timeout afterwards; the caller sets one.
///
/// # Errors
/// [`ConnectError`].
pub fn connect(
    server: &Server,
    export: &str,
    tls: Option<&Tls>,
    patience: Duration,
) -> Result<(Wire, Export), ConnectError> {
    let until = Instant::now() + patience;
    let plain = match server {
        Server::Tcp(address) => PlainStream::tcp(tcp(address, until)?)?,
        Server::Unix(path) => PlainStream::Unix(UnixStream::connect(path)?),
    };
    introduce(Wire::plain(plain), export, tls, remaining_time(until)?)
}

/// Negotiates with the server at the other end of `wire`, within `patience` in total.
///
/// # Errors
/// [`ConnectError`].
pub(in crate::nbd) fn introduce(
    wire: Wire,
    export: &str,
    tls: Option<&Tls>,
    patience: Duration,
) -> Result<(Wire, Export), ConnectError> {
    let until = Instant::now() + patience;
    let mut talk = ClientNegotiation { wire, until };
    let greeting = [
        u64::from_be_bytes(talk.receive()?),
        u64::from_be_bytes(talk.receive()?),
    ];
    if greeting != GREETING {
        return Err(ConnectError::Foreign("its greeting is another"));
    }
    let flags = u16::from_be_bytes(talk.receive()?);
    if flags & handshake::FIXED_NEWSTYLE == 0 {
        return Err(ConnectError::Foreign("only an older form of it"));
    }
    talk.send(
        &u32::from(flags & (handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES)).to_be_bytes(),
    )?;
    if let Some(tls) = tls {
        talk.ask(option::STARTTLS, &[])?;
        let (kind, data) = talk.answer(option::STARTTLS)?;
        done(kind, &data)?;
        talk.wire = talk.wire.start_tls(tls, until).map_err(ConnectError::Tls)?;
    }
    let export = talk.go(export)?;
    talk.wire.set_patience(None)?;
    Ok((talk.wire, export))
}

/// Connects to the first of the name's addresses that answers.
fn tcp(address: &str, until: Instant) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "no such name");
    let found: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
    for one in found {
        match TcpStream::connect_timeout(&one, remaining_time(until)?) {
            Ok(stream) => return Ok(stream),
            Err(e) => failed = e,
        }
    }
    Err(failed)
}

struct ClientNegotiation {
    wire: Wire,
    until: Instant,
}

impl ClientNegotiation {
    fn receive<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, mut into: &mut [u8]) -> io::Result<()> {
        while !into.is_empty() {
            self.wire.set_patience(Some(remaining_time(self.until)?))?;
            match self.wire.read(into) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => into = &mut into[count..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.wire.set_patience(Some(remaining_time(self.until)?))?;
        self.wire.write_all(bytes)?;
        self.wire.flush()
    }

    fn ask(&mut self, asked: u32, data: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(16 + data.len());
        bytes.extend(OPTION_MAGIC.to_be_bytes());
        bytes.extend(asked.to_be_bytes());
        bytes.extend(u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend(data);
        self.send(&bytes)
    }

    fn answer(&mut self, asked: u32) -> Result<(u32, Vec<u8>), ConnectError> {
        if u64::from_be_bytes(self.receive()?) != REPLY_MAGIC {
            return Err(ConnectError::Foreign("no answer to an option"));
        }
        if u32::from_be_bytes(self.receive()?) != asked {
            return Err(ConnectError::Foreign("an answer to another option"));
        }
        let kind = u32::from_be_bytes(self.receive()?);
        let bytes = u32::from_be_bytes(self.receive()?);
        if bytes > MOST_ANSWER_BYTES {
            return Err(ConnectError::Foreign("an answer without end"));
        }
        let mut data = vec![0; bytes as usize];
        self.fill(&mut data)?;
        Ok((kind, data))
    }

    fn go(&mut self, name: &str) -> Result<Export, ConnectError> {
        if name.len() > MOST_TEXT_BYTES {
            return Err(ConnectError::Foreign("the name of the export is too long"));
        }
        let mut data = Vec::with_capacity(6 + name.len());
        data.extend(u32::try_from(name.len()).unwrap_or(u32::MAX).to_be_bytes());
        data.extend(name.as_bytes());
        data.extend(1u16.to_be_bytes());
        data.extend(info::NAME.to_be_bytes()); // the server sends size and flags in any case
        self.ask(option::GO, &data)?;
        let (mut facts, mut name) = (None, name.to_owned());
        for _ in 0..MOST_ANSWERS {
            let (kind, data) = self.answer(option::GO)?;
            if kind != reply::INFO {
                done(kind, &data)?;
                let (bytes, flags) =
                    facts.ok_or(ConnectError::Foreign("an export without a size"))?;
                return Ok(Export { name, bytes, flags });
            }
            facts = size_and_flags(&data).or(facts);
            if let Some(own) = own_name(&data) {
                name = own;
            }
        }
        Err(ConnectError::Foreign("facts without end"))
    }
}

fn size_and_flags(data: &[u8]) -> Option<(u64, u16)> {
    let mut rest = fact(data, info::EXPORT)?;
    let bytes = u64::from_be_bytes(take(&mut rest)?);
    Some((bytes, u16::from_be_bytes(take(&mut rest)?)))
}

fn own_name(data: &[u8]) -> Option<String> {
    let name = fact(data, info::NAME)?;
    String::from_utf8(name.to_vec()).ok()
}

/// Returns the property `kind` of the reply, if it is there.
fn fact(data: &[u8], kind: u16) -> Option<&[u8]> {
    let mut rest = data;
    let is_it = u16::from_be_bytes(take(&mut rest)?) == kind;
    is_it.then_some(rest)
}

fn done(kind: u32, data: &[u8]) -> Result<(), ConnectError> {
    match kind {
        reply::ACK => Ok(()),
        _ if data.is_empty() => Err(ConnectError::Refused(format!("error {kind:#x}"))),
        // Escaped for display: a server's text may contain any characters.
        _ => Err(ConnectError::Refused(
            String::from_utf8_lossy(data).escape_debug().to_string(),
        )),
    }
}
