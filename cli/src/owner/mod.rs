//! `gleaner owner`: what the owner of a machine says to its memory server, and what it answers.

pub(crate) mod args;
mod text;

use anyhow::{Context, bail};
use args::{Cap, Command, Owner};
use gleaner_schemas::lending::{OwnerCommand, OwnerReply};
use jiff::tz::TimeZone;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A daemon that runs as root listens there, to everybody.
const SYSTEM_SOCKET: &str = "/run/gleaner/memoryd.sock";
/// All memory is back within much less.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn run(args: &Owner) -> anyhow::Result<()> {
    let socket = args.socket.clone().unwrap_or_else(default_socket);
    let command = match &args.command {
        Command::Pause { length } => OwnerCommand::Pause {
            for_ms: length.map(|length| i64::try_from(length.as_millis()).unwrap_or(i64::MAX)),
        },
        Command::Resume => OwnerCommand::Resume,
        Command::Cap { size: Cap(bytes) } => OwnerCommand::Cap { bytes: *bytes },
        Command::Status => OwnerCommand::Status,
        Command::Log => OwnerCommand::Log,
    };
    let reply = ask(&socket, command)?;
    let zone = TimeZone::system();
    let text = match &reply {
        OwnerReply::Refused(refusal) => bail!("refused: {}", refusal.detail),
        OwnerReply::Lending(lending) if args.json => document(lending)?,
        OwnerReply::Log { given_back } if args.json => document(given_back)?,
        OwnerReply::Log { given_back } => text::log(given_back, &zone),
        OwnerReply::Lending(lending) if matches!(command, OwnerCommand::Status) => {
            text::status(lending, &zone)
        }
        OwnerReply::Lending(lending) => text::done(lending, &zone),
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn document(answer: &impl serde::Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(answer)? + "\n")
}

/// A daemon of the user's own, where there is one, else the system's.
fn default_socket() -> PathBuf {
    let own = std::env::var_os("XDG_RUNTIME_DIR")
        .map(|folder| Path::new(&folder).join("gleaner/memoryd.sock"));
    own.filter(|socket| socket.exists())
        .unwrap_or_else(|| SYSTEM_SOCKET.into())
}

/// Asks the memory server that listens there.
///
/// # Errors
/// That none does, and what to do; or what was wrong with its answer.
pub(crate) fn ask(socket: &Path, command: OwnerCommand) -> anyhow::Result<OwnerReply> {
    const START: &str = "start it with `systemctl start gleaner-memoryd`, or `gleaner-memoryd run`; --socket names another place. \
        Without it nothing is lent";
    let mut stream = match UnixStream::connect(socket) {
        Ok(stream) => stream,
        Err(e) => {
            let why = match e.kind() {
                ErrorKind::NotFound => format!("there is no such socket; {START}"),
                ErrorKind::ConnectionRefused => format!("nobody listens there; {START}"),
                _ => e.to_string(),
            };
            bail!("no gleaner-memoryd at {}: {why}", socket.display());
        }
    };
    let lost = || format!("gleaner-memoryd at {} does not answer", socket.display());
    stream.set_read_timeout(Some(PATIENCE)).with_context(lost)?;
    let mut line = serde_json::to_vec(&command)?;
    line.push(b'\n');
    stream.write_all(&line).with_context(lost)?;
    let mut reply = Vec::new();
    BufReader::new(stream)
        .read_until(b'\n', &mut reply)
        .with_context(lost)?;
    if !reply.ends_with(b"\n") {
        bail!("gleaner-memoryd at {} has ended", socket.display());
    }
    serde_json::from_slice(&reply).with_context(|| {
        format!(
            "gleaner-memoryd at {} says what this version does not know",
            socket.display()
        )
    })
}
