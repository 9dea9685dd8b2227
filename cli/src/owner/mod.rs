//! `gleaner owner`: the owner's commands to their machine's memory server, and its answers.

pub(crate) mod args;
mod text;

use anyhow::bail;
use args::{Cap, Command, Owner};
use gleaner_paging::ask;
use gleaner_schemas::lending::{OwnerCommand, OwnerReply};
use jiff::tz::TimeZone;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Socket of a daemon that runs as root; everybody may connect.
const SYSTEM_SOCKET: &str = "/run/gleaner/memoryd.sock";

pub(crate) fn run(args: &Owner) -> anyhow::Result<()> {
    let socket = args.socket.clone().unwrap_or_else(default_socket);
    let command = match &args.command {
        Command::Pause { length } => OwnerCommand::Pause {
            duration_ms: length.map(|length| i64::try_from(length.as_millis()).unwrap_or(i64::MAX)),
        },
        Command::Resume => OwnerCommand::Resume,
        Command::Cap { size: Cap(bytes) } => OwnerCommand::Cap { bytes: *bytes },
        Command::Status => OwnerCommand::Status,
        Command::Log => OwnerCommand::Log,
    };
    let reply = ask::memoryd(&socket, command)?;
    let zone = TimeZone::system();
    let text = match &reply {
        OwnerReply::Refused(refusal) => bail!("refused: {}", refusal.detail),
        OwnerReply::Lending(lending) if args.json => document(lending)?,
        OwnerReply::Log { reclaims } if args.json => document(reclaims)?,
        OwnerReply::Log { reclaims } => text::log(reclaims, &zone),
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

/// Socket of the user's own daemon if it exists, otherwise of the system's.
fn default_socket() -> PathBuf {
    let own = std::env::var_os("XDG_RUNTIME_DIR")
        .map(|folder| Path::new(&folder).join("gleaner/memoryd.sock"));
    own.filter(|socket| socket.exists())
        .unwrap_or_else(|| SYSTEM_SOCKET.into())
}
