//! The memory server's socket, where every user of the machine may send the owner's commands.

use gleaner_schemas::lending::{OwnerCommand, OwnerReply};
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Timeout of an answer; giving back all memory takes much less.
const PATIENCE: Duration = Duration::from_secs(30);

/// Failure to get an answer from a memory server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The socket does not exist.
    #[error("no gleaner-memoryd at {}: {why}", .socket.display())]
    Missing {
        /// Path of the socket.
        socket: PathBuf,
        /// Reason, and the command that starts a memory server.
        why: String,
    },
    /// The memory server does not answer.
    #[error("gleaner-memoryd at {} does not answer", .socket.display())]
    Silent {
        /// Path of the socket.
        socket: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The connection was closed before the answer was complete.
    #[error("gleaner-memoryd at {} has ended", .socket.display())]
    Ended {
        /// Path of the socket.
        socket: PathBuf,
    },
    /// The answer is of another version, or of another program.
    #[error("gleaner-memoryd at {} sent something that this version does not know", .socket.display())]
    Foreign {
        /// Path of the socket.
        socket: PathBuf,
        /// Error of parsing.
        source: serde_json::Error,
    },
}

/// Sends a command to the memory server that listens at `socket`, and returns its reply.
///
/// # Errors
/// [`AskError`].
pub fn memoryd(socket: &Path, command: OwnerCommand) -> Result<OwnerReply, AskError> {
    const START: &str = "start it with `systemctl start gleaner-memoryd`, or `gleaner-memoryd run`; --socket names another place. \
        Without it nothing is lent";
    let missing = |e: io::Error| AskError::Missing {
        socket: socket.to_owned(),
        why: match e.kind() {
            ErrorKind::NotFound => format!("there is no such socket; {START}"),
            ErrorKind::ConnectionRefused => format!("no program listens there; {START}"),
            _ => e.to_string(),
        },
    };
    let silent = |source| AskError::Silent {
        socket: socket.to_owned(),
        source,
    };
    let mut stream = UnixStream::connect(socket).map_err(missing)?;
    let reply = exchange(&mut stream, command).map_err(silent)?;
    if !reply.ends_with(b"\n") {
        let socket = socket.to_owned();
        return Err(AskError::Ended { socket });
    }
    serde_json::from_slice(&reply).map_err(|source| AskError::Foreign {
        socket: socket.to_owned(),
        source,
    })
}

fn exchange(stream: &mut UnixStream, command: OwnerCommand) -> io::Result<Vec<u8>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_vec(&command)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut reply = Vec::new();
    BufReader::new(stream).read_until(b'\n', &mut reply)?;
    Ok(reply)
}
