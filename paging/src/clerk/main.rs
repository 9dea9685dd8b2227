//! The `gleaner-clerk` command.

mod args;
mod attachment;

use args::{Args, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    match dispatch(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gleaner-clerk: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: Args) -> anyhow::Result<()> {
    let runtime = args.global.runtime;
    match args.command {
        Command::Attach { wanted, json } => attachment::tell::attach(&runtime, &wanted, json)?,
        Command::Detach {
            name,
            force,
            patience_s,
            json,
        } => {
            let how = attachment::Detaching {
                is_forced: force,
                patience: std::time::Duration::from_secs(patience_s),
            };
            attachment::tell::detach(&runtime, name.as_deref(), how, json)?;
        }
        Command::Attached { json } => attachment::tell::attached(&runtime, json)?,
    }
    Ok(())
}
