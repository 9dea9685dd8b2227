//! The `gleaner-memoryd` command.

mod args;
mod clock;
mod config;
mod core;
mod entrance;
mod itself;
mod link;
mod log;
mod pages;
mod reload;
mod run;
mod serve;
mod standalone;
mod wishes;

use args::{Args, Command};
use clap::Parser;
use config::{Config, DAEMON};
use gleaner_daemon::config::check;
use std::process::ExitCode;

fn main() -> ExitCode {
    match dispatch(Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!(
                "gleaner-memoryd: {}",
                gleaner_daemon::causes::told(error.as_ref())
            );
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Run { standalone, fill } => {
            let measured = standalone.map(|bytes| run::MeasureOptions {
                bytes,
                is_filled: fill,
            });
            run::run(args.global, measured)?;
        }
        Command::Standalone { size, listen, tls } => serve::serve(&listen, size, tls.as_deref())?,
        Command::CheckConfig { json } => {
            let loaded = Config::load(&args.global);
            let found = loaded.as_ref().map(|loaded| &loaded.origin);
            let note = loaded
                .as_ref()
                .ok()
                .and_then(|loaded| loaded.values.serving.note());
            return Ok(check(DAEMON, found).with_notes(note).tell(json)?);
        }
    }
    Ok(ExitCode::SUCCESS)
}
