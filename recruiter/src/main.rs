//! The `gleaner-recruiter` command.

use clap::Parser;
use gleaner_daemon::causes;
use gleaner_daemon::config::check;
use gleaner_recruiter::args::{Args, CheckConfig, Command, RunArgs, Status};
use gleaner_recruiter::config::{Config, DAEMON};
use gleaner_recruiter::{Error, adapter, ask, http, run};
use std::io::Write;
use std::process::ExitCode;

/// Exit code of `status` if the recruiter does not answer.
const SILENT: u8 = 3;

fn main() -> ExitCode {
    match dispatch(&Args::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("gleaner-recruiter: {}", causes::told(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(args) => run::run(args)?,
        Command::CheckConfig(args) => return check_config(args),
        Command::Status(args) => return status(args),
        Command::Openapi => print(&format!("{:#}\n", http::openapi()))?,
        Command::Follow(args) => adapter::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn check_config(args: &CheckConfig) -> anyhow::Result<ExitCode> {
    let args_of_run = RunArgs {
        config: args.config.clone(),
        ..RunArgs::default()
    };
    let loaded = Config::load(&args_of_run);
    let found = loaded.as_ref().map(|loaded| &loaded.origin);
    Ok(check(DAEMON, found).tell(args.json)?)
}

fn status(args: &Status) -> anyhow::Result<ExitCode> {
    let url = match &args.url {
        Some(url) => url.clone(),
        None => Config::local_url(args.config.as_deref())?.ok_or(Error::NoLocalAddress)?,
    };
    match ask::ask(&url, args.json) {
        Ok(text) => print(&text)?,
        Err(error) => {
            eprintln!("gleaner-recruiter: {error}");
            return Ok(ExitCode::from(SILENT));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print(text: &str) -> std::io::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        // The reader closed the pipe.
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(e),
        _ => Ok(()),
    }
}
