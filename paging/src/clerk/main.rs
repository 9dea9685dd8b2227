//! The `gleaner-clerk` command.

mod args;
mod attachment;
mod export_file;
mod limited;
mod run;

use args::{Args, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    match dispatch(Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!(
                "gleaner-clerk: {}",
                gleaner_daemon::causes::told(error.as_ref())
            );
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: Args) -> anyhow::Result<ExitCode> {
    let runtime = args.global.runtime;
    match args.command {
        Command::Attach { wanted, json } => attachment::commands::attach(&runtime, &wanted, json)?,
        Command::Detach {
            name,
            force,
            timeout,
            json,
        } => {
            let how = attachment::DetachOptions {
                is_forced: force,
                timeout,
            };
            attachment::commands::detach(&runtime, name.as_deref(), how, json)?;
        }
        Command::Attachments { json } => attachment::commands::attachments(&runtime, json)?,
        Command::Run { args, limited } => match limited.local {
            Some(local_bytes) => return Ok(limited::run(&limited, local_bytes, &runtime)),
            None => run::run(&args)?,
        },
        Command::ExportFile { point, socket } => export_file::run(&point, &socket)?,
        Command::RemoveGroup { group } => limited::remove_group(&group)?,
        Command::Status {
            status_socket,
            json,
        } => {
            let beside =
                || gleaner_daemon::folders::runtime().map(|at| at.join("clerk-status.sock"));
            let at = status_socket.or_else(beside);
            let at = at.ok_or_else(|| {
                anyhow::anyhow!("XDG_RUNTIME_DIR is not set: name the socket with --status-socket")
            })?;
            print!("{}", run::ask_status(&at, json)?);
        }
        Command::CheckConfig { config, json } => {
            let mut args = args::RunArgs::default();
            args.device.config = config;
            let loaded = run::Config::load(&args);
            let found = loaded.as_ref().map(|loaded| &loaded.origin);
            return Ok(gleaner_daemon::config::check(run::DAEMON, found).tell(json)?);
        }
    }
    Ok(ExitCode::SUCCESS)
}
