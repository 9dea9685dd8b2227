//! The `gleaner-recruiter` command.

use clap::Parser;
use gleaner_recruiter::args::{Args, Command, Status};
use gleaner_recruiter::config::Config;
use gleaner_recruiter::{adapter, ask, http, run};
use std::io::Write;
use std::process::ExitCode;

/// Exit code of `status`.
const SILENT: u8 = 3;

fn main() -> ExitCode {
    match dispatch(&Args::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("gleaner-recruiter: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve(args) => run::run(&Config::resolve(args)?)?,
        Command::Status(args) => return status(args),
        Command::Openapi => print(&format!("{:#}\n", http::openapi()))?,
        Command::Follow(args) => adapter::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn status(args: &Status) -> anyhow::Result<ExitCode> {
    let url = match &args.url {
        Some(url) => url.clone(),
        None => Config::local_url(args.config.as_deref())?,
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
        // Whoever read it has seen enough.
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(e),
        _ => Ok(()),
    }
}
