//! The `gleaner-clerk` command.

mod args;
mod attachment;
mod serve;

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
        Command::Attach { wanted, json } => attachment::tell::attach(&runtime, &wanted, json)?,
        Command::Detach {
            name,
            force,
            patience_s,
            json,
        } => {
            let how = attachment::DetachOptions {
                is_forced: force,
                patience: std::time::Duration::from_secs(patience_s),
            };
            attachment::tell::detach(&runtime, name.as_deref(), how, json)?;
        }
        Command::Attached { json } => attachment::tell::attached(&runtime, json)?,
        Command::Serve { serving } => serve::serve(&serving)?,
        Command::Status { status, json } => {
            let beside =
                || gleaner_daemon::folders::runtime().map(|at| at.join("clerk-status.sock"));
            let at = status.or_else(beside);
            let at = at.ok_or_else(|| {
                anyhow::anyhow!("XDG_RUNTIME_DIR is not set: name the socket with --status")
            })?;
            print!("{}", serve::ask_status(&at, json)?);
        }
        Command::CheckConfig { config, json } => {
            let mut serving = args::ServeArgs::default();
            serving.device.config = config;
            let loaded = serve::Config::load(&serving);
            let found = loaded.as_ref().map(|loaded| &loaded.origin);
            return Ok(gleaner_daemon::config::check(serve::DAEMON, found).tell(json)?);
        }
    }
    Ok(ExitCode::SUCCESS)
}
