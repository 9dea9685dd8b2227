//! Messages of the protocol: constants, and structures of fixed form. All integers are big-endian.
//!
//! Source: "The NBD protocol", doc/proto.md of the NetworkBlockDevice project. The names are those of that document,
//! without `NBD_`.

/// The server's greeting, sent before anything else: `NBDMAGIC`, `IHAVEOPT`.
pub const GREETING: [u64; 2] = [0x4e42_444d_4147_4943, OPTION_MAGIC];
/// Number before each option of a client, `IHAVEOPT`.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Number before each answer to an option.
pub const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Number before each request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Number before each simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;

/// Flags of the handshake, the same for both sides.
pub mod handshake {
    /// Options can be negotiated.
    pub const FIXED_NEWSTYLE: u16 = 1;
    /// The answer to `EXPORT_NAME` omits its 124 zeroes.
    pub const NO_ZEROES: u16 = 1 << 1;
}

/// Options of a client before transmission.
pub mod option {
    /// Begins transmission; the server can refuse only by closing the connection.
    pub const EXPORT_NAME: u32 = 1;
    /// Ends the handshake.
    pub const ABORT: u32 = 2;
    /// Lists the exports.
    pub const LIST: u32 = 3;
    /// Switches the connection to TLS.
    pub const STARTTLS: u32 = 5;
    /// Requests the properties of an export.
    pub const INFO: u32 = 6;
    /// Requests the properties of an export, and begins transmission.
    pub const GO: u32 = 7;
}

/// Replies of a server to options.
pub mod reply {
    /// Success: no error.
    pub const ACK: u32 = 1;
    /// Name of one export of a list.
    pub const SERVER: u32 = 2;
    /// A property of an export.
    pub const INFO: u32 = 3;
    /// The server does not know the option.
    pub const ERR_UNSUP: u32 = (1 << 31) + 1;
    /// The server's configuration forbids it.
    pub const ERR_POLICY: u32 = (1 << 31) + 2;
    /// The option's data are malformed.
    pub const ERR_INVALID: u32 = (1 << 31) + 3;
    /// TLS is required first.
    pub const ERR_TLS_REQD: u32 = (1 << 31) + 5;
    /// No export has this name.
    pub const ERR_UNKNOWN: u32 = (1 << 31) + 6;
    /// The server is ending.
    pub const ERR_SHUTDOWN: u32 = (1 << 31) + 7;
    /// The request is too large for the server.
    pub const ERR_TOO_BIG: u32 = (1 << 31) + 9;
}

/// Properties of an export.
pub mod info {
    /// Size and transmission flags.
    pub const EXPORT: u16 = 0;
    /// Full name of the export.
    pub const NAME: u16 = 1;
    /// Description for people.
    pub const DESCRIPTION: u16 = 2;
    /// Minimum, preferred and maximum size of a request.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags of an export.
pub mod transmission {
    /// Flag that is always set.
    pub const HAS_FLAGS: u16 = 1;
    /// The export has `FLUSH`.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// Requests may have the flag `FUA`.
    pub const SEND_FUA: u16 = 1 << 3;
    /// The export has `TRIM`.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// The export has `WRITE_ZEROES`.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// Data flushed on one connection are visible on the others.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// The export has `CACHE`.
    pub const SEND_CACHE: u16 = 1 << 10;
    /// Requests may have the flag `FAST_ZERO`.
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Flags of a request.
pub mod flag {
    /// Answer only once the data are durable.
    pub const FUA: u16 = 1;
    /// Zeroes must be allocated.
    pub const NO_HOLE: u16 = 1 << 1;
    /// Fail if zeroing would be no faster than writing.
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Maximum length of a request that a server must accept without negotiation (32 MiB).
pub const MOST_BYTES: u32 = 32 << 20;
/// Maximum length of an export's name, or of a text for people, in bytes.
pub const MOST_TEXT_BYTES: usize = 4096;

/// Command of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Reads the range.
    Read,
    /// Writes the range; the bytes follow the request.
    Write,
    /// Ends the connection; not answered.
    Disconnect,
    /// Makes everything answered so far durable.
    Flush,
    /// Discards bytes that are no longer needed.
    Trim,
    /// Announces that bytes will be read soon.
    Cache,
    /// Sets bytes to zero.
    WriteZeroes,
    /// An unknown command.
    Unknown(u16),
}

impl Command {
    fn from_number(number: u16) -> Self {
        match number {
            0 => Self::Read,
            1 => Self::Write,
            2 => Self::Disconnect,
            3 => Self::Flush,
            4 => Self::Trim,
            5 => Self::Cache,
            6 => Self::WriteZeroes,
            other => Self::Unknown(other),
        }
    }

    fn number(self) -> u16 {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Disconnect => 2,
            Self::Flush => 3,
            Self::Trim => 4,
            Self::Cache => 5,
            Self::WriteZeroes => 6,
            Self::Unknown(number) => number,
        }
    }
}

/// A request, without the bytes to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Flags of the request ([`flag`]).
    pub flags: u16,
    /// Command of the request.
    pub command: Command,
    /// Identifies the request in its answer.
    pub cookie: u64,
    /// First byte of the range.
    pub offset: u64,
    /// Length of the range, in bytes.
    pub bytes: u32,
}

impl Request {
    /// Length of a request on the wire.
    pub const BYTES: usize = 28;

    /// Parses a request. Returns `None` if the bytes are no request: then no later request can be found
    /// either.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let mut rest = &bytes[..];
        if u32::from_be_bytes(take(&mut rest)?) != REQUEST_MAGIC {
            return None;
        }
        Some(Self {
            flags: u16::from_be_bytes(take(&mut rest)?),
            command: Command::from_number(u16::from_be_bytes(take(&mut rest)?)),
            cookie: u64::from_be_bytes(take(&mut rest)?),
            offset: u64::from_be_bytes(take(&mut rest)?),
            bytes: u32::from_be_bytes(take(&mut rest)?),
        })
    }

    /// Checks the request for an export of `export_bytes`. A flag that the server did not offer is a fault,
    /// so that no client relies on it. [`flag::FUA`] is always allowed.
    ///
    /// # Errors
    /// Fault to answer with. The bytes of a write follow nevertheless.
    pub fn check(&self, export_bytes: u64) -> Result<(), Fault> {
        let known = match self.command {
            Command::WriteZeroes => flag::FUA | flag::NO_HOLE | flag::FAST_ZERO,
            _ => flag::FUA,
        };
        let end = self.offset.checked_add(u64::from(self.bytes));
        let is_beyond = end.is_none_or(|end| end > export_bytes);
        match self.command {
            Command::Read if self.bytes > MOST_BYTES => Err(Fault::TooLarge),
            _ if self.flags & !known != 0 => Err(Fault::Invalid),
            Command::Write | Command::WriteZeroes if is_beyond => Err(Fault::NoSpace),
            Command::Read | Command::Trim | Command::Cache if is_beyond => Err(Fault::Invalid),
            Command::Flush if self.bytes != 0 || self.offset != 0 => Err(Fault::Invalid),
            Command::Unknown(_) => Err(Fault::Invalid),
            _ => Ok(()),
        }
    }

    /// Encodes the request for sending.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.command.number().to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_be_bytes());
        bytes[24..].copy_from_slice(&self.bytes.to_be_bytes());
        bytes
    }
}

/// Answer to one request, without the bytes read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimpleReply {
    /// Error number; 0: success.
    pub error: u32,
    /// Cookie of the request.
    pub cookie: u64,
}

impl SimpleReply {
    /// Length of a simple reply on the wire.
    pub const BYTES: usize = 16;

    /// Parses a reply; returns `None` if the bytes are no reply.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let mut rest = &bytes[..];
        if u32::from_be_bytes(take(&mut rest)?) != SIMPLE_REPLY_MAGIC {
            return None;
        }
        Some(Self {
            error: u32::from_be_bytes(take(&mut rest)?),
            cookie: u64::from_be_bytes(take(&mut rest)?),
        })
    }

    /// Encodes the reply for sending.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.error.to_be_bytes());
        bytes[8..].copy_from_slice(&self.cookie.to_be_bytes());
        bytes
    }
}

/// Fault of a request, with the protocol's numbers, which are Linux's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The export is read-only.
    #[error("not permitted")]
    NotPermitted,
    /// Reading or writing failed.
    #[error("input or output error")]
    Io,
    /// No memory is available now.
    #[error("out of memory")]
    NoMemory,
    /// The request is malformed, or beyond the end.
    #[error("invalid request")]
    Invalid,
    /// No space is left, or the write goes beyond the end.
    #[error("no space left")]
    NoSpace,
    /// The request is too large to be answered.
    #[error("request too large")]
    TooLarge,
    /// The request is not supported in this form.
    #[error("not supported")]
    Unsupported,
    /// The contents are lost; the server no longer serves this export.
    #[error("the export is over")]
    Shutdown,
}

impl Fault {
    /// Number of the fault on the wire.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            Self::NotPermitted => 1,
            Self::Io => 5,
            Self::NoMemory => 12,
            Self::Invalid => 22,
            Self::NoSpace => 28,
            Self::TooLarge => 75,
            Self::Unsupported => 95,
            Self::Shutdown => 108,
        }
    }

    /// Returns the fault of a number; an unknown one counts as [`Fault::Invalid`], as the protocol requires.
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        match number {
            1 => Self::NotPermitted,
            5 => Self::Io,
            12 => Self::NoMemory,
            28 => Self::NoSpace,
            75 => Self::TooLarge,
            95 => Self::Unsupported,
            108 => Self::Shutdown,
            _ => Self::Invalid,
        }
    }
}

/// Takes the next `N` bytes; returns `None` if fewer remain.
pub(super) fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_judged_by_its_kind_flags_and_bounds() {
        use Command::{Cache, Flush, Read, Trim, Unknown, Write, WriteZeroes};
        let judged = |command, flags, offset, bytes| {
            let request = Request {
                flags,
                command,
                cookie: 1,
                offset,
                bytes,
            };
            request.check(1 << 40).err()
        };
        let end = 1 << 40;
        for (command, beyond) in [
            (Read, Fault::Invalid),
            (Write, Fault::NoSpace),
            (WriteZeroes, Fault::NoSpace),
            (Trim, Fault::Invalid),
            (Cache, Fault::Invalid),
        ] {
            assert_eq!(judged(command, 0, end - 4096, 4096), None);
            assert_eq!(judged(command, flag::FUA, 0, 0), None);
            assert_eq!(judged(command, 0, end - 4096, 4097), Some(beyond));
            assert_eq!(judged(command, 0, u64::MAX, 1), Some(beyond));
            assert_eq!(judged(command, 1 << 15, 0, 1), Some(Fault::Invalid));
            let zeroes = flag::NO_HOLE | flag::FAST_ZERO;
            let expected = (command != WriteZeroes).then_some(Fault::Invalid);
            assert_eq!(judged(command, zeroes, 0, 1), expected, "{command:?}");
        }
        assert_eq!(judged(Read, 0, 0, MOST_BYTES), None);
        assert_eq!(judged(Read, 0, 0, MOST_BYTES + 1), Some(Fault::TooLarge));
        assert_eq!(judged(Trim, 0, 0, MOST_BYTES + 1), None);
        assert_eq!(judged(Flush, flag::FUA, 0, 0), None);
        assert_eq!(judged(Flush, 0, 1, 0), Some(Fault::Invalid));
        assert_eq!(judged(Flush, 0, 0, 1), Some(Fault::Invalid));
        assert_eq!(judged(Unknown(9), 0, 0, 0), Some(Fault::Invalid));
    }
}
