//! The server's side of the handshake (fixed newstyle): options are answered until the client starts
//! transmission or closes the connection.
//!
//! Each read takes only the bytes that it needs. So bytes sent before TLS are never mistaken for bytes sent
//! within TLS.

use super::channel::{Channel, PlainStream, remaining_time};
use super::error::NegotiationError;
use super::export::{Caller, Export, ExportRefusal, Exports};
use super::guests::Gate;
use super::wire::{
    self, GREETING, MOST_TEXT_BYTES, OPTION_MAGIC, handshake, info, option, reply, take,
};
use rustls::ServerConfig;
use std::io::ErrorKind::{Interrupted, WouldBlock};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of options in one handshake; no client needs more.
const MOST_OPTIONS: usize = 64;
/// Maximum length of an option's data. Options with longer data are refused.
const MOST_OPTION_BYTES: u32 = MOST_TEXT_BYTES as u32 + 256;
/// Maximum length of refused data. Above it, the connection is closed and the data are not read.
const MOST_DRAINED_BYTES: u32 = 1 << 20;
/// Preferred size of a request, in bytes.
const BEST_BYTES: u32 = 4096;

/// Result of the handshake.
pub(super) enum Outcome<X> {
    /// Transmission begins over this channel, which is a new one if TLS was started.
    Transmit(Channel, X),
    /// The client has disconnected.
    Ended,
}

/// Rules for admitting clients.
#[derive(Clone)]
pub enum Door {
    /// Local programs may connect without a certificate.
    Open,
    /// Clients must show a certificate, by STARTTLS.
    Tls(Arc<dyn Gate>),
}

/// Negotiates with one client, within `patience` in total.
///
/// # Errors
/// [`NegotiationError`]; the caller closes the connection.
pub(super) fn negotiate<E: Exports>(
    channel: Channel,
    exports: &E,
    door: &Door,
    patience: Duration,
) -> Result<Outcome<E::Contents>, NegotiationError> {
    let mut talk = ServerNegotiation {
        channel,
        until: Instant::now() + patience,
        caller: match door {
            Door::Open => Some(Caller::Local),
            Door::Tls(_) => None,
        },
    };
    let mut greeting = Vec::with_capacity(18);
    for word in GREETING {
        greeting.extend(word.to_be_bytes());
    }
    let flags = handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES;
    greeting.extend(flags.to_be_bytes());
    talk.send(&greeting)?;
    let client_flags = u32::from_be_bytes(talk.receive()?);
    if client_flags & !u32::from(flags) != 0 {
        return Err(NegotiationError::Foreign("flags that were not offered"));
    }
    let wants_zeroes = client_flags & u32::from(handshake::NO_ZEROES) == 0;
    for _ in 0..MOST_OPTIONS {
        if u64::from_be_bytes(talk.receive()?) != OPTION_MAGIC {
            return Err(NegotiationError::Foreign("no option"));
        }
        let asked = u32::from_be_bytes(talk.receive()?);
        let bytes = u32::from_be_bytes(talk.receive()?);
        let Some(data) = talk.data(asked, bytes)? else {
            continue;
        };
        match (asked, talk.caller.clone(), door) {
            (option::ABORT, _, _) => {
                // The client may have disconnected without reading the answer.
                let _ = talk.answer(asked, reply::ACK, &[]);
                return Ok(Outcome::Ended);
            }
            (option::STARTTLS, None, Door::Tls(gate)) if data.is_empty() => match gate.settings() {
                Ok(config) => {
                    talk.answer(asked, reply::ACK, &[])?;
                    talk = talk.start_tls(&config)?;
                }
                Err(why) => talk.refuse(asked, reply::ERR_POLICY, &why)?,
            },
            (option::STARTTLS, None, Door::Tls(_)) => {
                talk.refuse(asked, reply::ERR_INVALID, "STARTTLS has no data")?;
            }
            (option::STARTTLS, Some(_), _) => {
                talk.refuse(
                    asked,
                    reply::ERR_POLICY,
                    "no TLS here, or it was started already",
                )?;
            }
            (option::EXPORT_NAME, None, _) => {
                return Err(NegotiationError::Foreign("no TLS, which is needed here"));
            }
            (_, None, _) => {
                talk.refuse(asked, reply::ERR_TLS_REQD, "begin TLS first (STARTTLS)")?
            }
            (option::EXPORT_NAME, Some(caller), _) => {
                let contents = talk.open_by_name(exports, &caller, &data, wants_zeroes)?;
                return Ok(Outcome::Transmit(talk.channel, contents));
            }
            (option::LIST, Some(caller), _) => talk.list(exports, &caller, &data)?,
            (option::INFO | option::GO, Some(caller), _) => {
                if let Some(contents) = talk.answer_info(exports, &caller, asked, &data)? {
                    return Ok(Outcome::Transmit(talk.channel, contents));
                }
            }
            _ => talk.refuse(asked, reply::ERR_UNSUP, "this option is not known here")?,
        }
    }
    Err(NegotiationError::Foreign("too many options"))
}

/// Negotiates with a local program; `None` if it disconnected before transmission.
///
/// # Errors
/// [`NegotiationError`]; the caller closes the connection.
pub fn greet<E: Exports>(
    stream: UnixStream,
    exports: &E,
    patience: Duration,
) -> Result<Option<(UnixStream, E::Contents)>, NegotiationError> {
    let channel = Channel::Plain(PlainStream::Unix(stream));
    match negotiate(channel, exports, &Door::Open, patience)? {
        Outcome::Transmit(Channel::Plain(PlainStream::Unix(stream)), contents) => {
            stream.set_read_timeout(None)?;
            stream.set_write_timeout(None)?;
            Ok(Some((stream, contents)))
        }
        _ => Ok(None),
    }
}

/// Negotiation with one client before transmission.
struct ServerNegotiation {
    channel: Channel,
    until: Instant,
    /// Identity of the client; `None` before TLS.
    caller: Option<Caller>,
}

impl ServerNegotiation {
    fn receive<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, into: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while filled < into.len() {
            self.channel
                .set_patience(Some(remaining_time(self.until)?))?;
            match self.channel.read(&mut into[filled..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => filled += count,
                // The loop checks whether time remains.
                Err(e) if matches!(e.kind(), Interrupted | WouldBlock) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.channel
            .set_patience(Some(remaining_time(self.until)?))?;
        self.channel.write_all(bytes)?;
        self.channel.flush()
    }

    /// Reads an option's data. Returns `None` if they were too long: then the option is refused already.
    fn data(&mut self, asked: u32, bytes: u32) -> Result<Option<Vec<u8>>, NegotiationError> {
        if bytes <= MOST_OPTION_BYTES {
            let mut data = vec![0; bytes as usize];
            self.fill(&mut data)?;
            return Ok(Some(data));
        }
        if bytes > MOST_DRAINED_BYTES || asked == option::EXPORT_NAME {
            return Err(NegotiationError::Foreign("an option of absurd length"));
        }
        let mut left = bytes as usize;
        let mut scrap = [0; 4096];
        while left > 0 {
            let part = left.min(scrap.len());
            self.fill(&mut scrap[..part])?;
            left -= part;
        }
        self.refuse(asked, reply::ERR_TOO_BIG, "shorter data would do")?;
        Ok(None)
    }

    fn answer(&mut self, asked: u32, kind: u32, data: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(20 + data.len());
        bytes.extend(wire::REPLY_MAGIC.to_be_bytes());
        bytes.extend(asked.to_be_bytes());
        bytes.extend(kind.to_be_bytes());
        bytes.extend(u32::try_from(data.len()).unwrap_or(0).to_be_bytes());
        bytes.extend(data);
        self.send(&bytes)
    }

    /// Refuses an option; the text is for people.
    fn refuse(&mut self, asked: u32, kind: u32, text: &str) -> io::Result<()> {
        let most = text.floor_char_boundary(MOST_TEXT_BYTES);
        self.answer(asked, kind, &text.as_bytes()[..most])
    }

    fn start_tls(self, config: &Arc<ServerConfig>) -> Result<Self, NegotiationError> {
        let (channel, peer) = self.channel.start_tls(config, self.until)?;
        Ok(Self {
            channel,
            caller: Some(Caller::Certified(peer)),
            ..self
        })
    }

    fn open_by_name<E: Exports>(
        &mut self,
        exports: &E,
        caller: &Caller,
        name: &[u8],
        wants_zeroes: bool,
    ) -> Result<E::Contents, NegotiationError> {
        let name = str::from_utf8(name)
            .map_err(|_| NegotiationError::Foreign("a name that is no text"))?;
        let refused = |source| NegotiationError::Refused {
            name: name.to_owned(),
            source,
        };
        let contents = exports.open(name, caller).map_err(refused)?;
        let mut answer = facts(&contents);
        if wants_zeroes {
            answer.extend([0; 124]);
        }
        self.send(&answer)?;
        Ok(contents)
    }

    fn list<E: Exports>(&mut self, exports: &E, caller: &Caller, data: &[u8]) -> io::Result<()> {
        if !data.is_empty() {
            return self.refuse(option::LIST, reply::ERR_INVALID, "LIST has no data");
        }
        for name in exports.names(caller) {
            let mut entry = u32::try_from(name.len())
                .unwrap_or(0)
                .to_be_bytes()
                .to_vec();
            entry.extend(name.as_bytes());
            self.answer(option::LIST, reply::SERVER, &entry)?;
        }
        self.answer(option::LIST, reply::ACK, &[])
    }

    /// Answers `INFO` and `GO`; returns the export that `GO` opened.
    fn answer_info<E: Exports>(
        &mut self,
        exports: &E,
        caller: &Caller,
        asked: u32,
        data: &[u8],
    ) -> io::Result<Option<E::Contents>> {
        let Some((name, wanted)) = parse_info_request(data) else {
            self.refuse(asked, reply::ERR_INVALID, "the option's data are malformed")?;
            return Ok(None);
        };
        let contents = match exports.open(name, caller) {
            Ok(contents) => contents,
            Err(why) => {
                let kind = match why {
                    ExportRefusal::Unknown(_) => reply::ERR_UNKNOWN,
                    ExportRefusal::Forbidden(_) => reply::ERR_POLICY,
                    ExportRefusal::Ending(_) => reply::ERR_SHUTDOWN,
                };
                self.refuse(asked, kind, &why.to_string())?;
                return Ok(None);
            }
        };
        let mut tell = |kind: u16, fact: &[u8]| {
            let mut bytes = kind.to_be_bytes().to_vec();
            bytes.extend(fact);
            self.answer(asked, reply::INFO, &bytes)
        };
        tell(info::EXPORT, &facts(&contents))?;
        for kind in wanted {
            match kind {
                info::NAME => match contents.name() {
                    Some(own) => tell(kind, own.as_bytes())?,
                    None => tell(kind, name.as_bytes())?,
                },
                info::DESCRIPTION => tell(kind, contents.description().as_bytes())?,
                info::BLOCK_SIZE => {
                    let sizes = [1, BEST_BYTES, wire::MOST_BYTES];
                    tell(kind, sizes.map(u32::to_be_bytes).as_flattened())?;
                }
                _ => {} // unknown properties are left out
            }
        }
        // After `INFO`, the export is released before the answer, together with the client's place among the
        // connections: the client may need the place immediately.
        let contents = (asked == option::GO).then_some(contents);
        self.answer(asked, reply::ACK, &[])?;
        Ok(contents)
    }
}

/// Returns size and flags, as sent for `EXPORT_NAME` and `INFO`.
fn facts<X: Export>(contents: &X) -> Vec<u8> {
    let mut bytes = contents.bytes().to_be_bytes().to_vec();
    bytes.extend(contents.transmission_flags().to_be_bytes());
    bytes
}

/// Parses the data of `INFO` and `GO`: a name, and the requested properties.
fn parse_info_request(data: &[u8]) -> Option<(&str, Vec<u16>)> {
    let mut rest = data;
    let name_bytes = u32::from_be_bytes(take(&mut rest)?) as usize;
    let (name, mut rest) = rest.split_at_checked(name_bytes)?;
    let name = str::from_utf8(name).ok()?;
    let count = usize::from(u16::from_be_bytes(take(&mut rest)?));
    let (kinds, []) = rest.as_chunks::<2>() else {
        return None;
    };
    (kinds.len() == count).then(|| {
        (
            name,
            kinds.iter().map(|kind| u16::from_be_bytes(*kind)).collect(),
        )
    })
}
