//! The `gleaner-collector` command.

use anyhow::Context;
use clap::Parser;
use gleaner_collector::args::{Args, Command};
use gleaner_collector::config::{Config, DAEMON};
use gleaner_collector::upkeep::{self, DatasetCheck};
use gleaner_collector::{ask, run};
use gleaner_daemon::causes;
use gleaner_daemon::config::check;
use std::io::Write;
use std::process::ExitCode;

/// Exit code of `status` if the collector reports a fault.
const NOT_WELL: u8 = 3;
/// Exit code of `verify` and `repair` if they find damage.
const DAMAGED: u8 = 4;

fn main() -> ExitCode {
    match dispatch(&Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("gleaner-collector: {}", causes::told(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Run => run::run(&args.global)?,
        Command::CheckConfig { json } => {
            let loaded = Config::load(&args.global);
            let found = loaded.as_ref().map(|loaded| &loaded.origin);
            let checked = check(DAEMON, found).hiding("publish_options");
            return Ok(checked.tell(*json)?);
        }
        Command::Verify { dataset, json } => return tell(&upkeep::verified(dataset)?, *json),
        Command::Repair { dataset, json } => return tell(&upkeep::repaired(dataset)?, *json),
        Command::Status { url, all, json } => return status(args, url.as_deref(), *all, *json),
    }
    Ok(ExitCode::SUCCESS)
}

fn status(args: &Args, url: Option<&str>, of_all: bool, as_json: bool) -> anyhow::Result<ExitCode> {
    let url = match url {
        Some(url) => url.to_owned(),
        None => {
            let local = Config::resolve(&args.global)?.local_listen;
            let local = local.context("local_listen = \"none\": name a collector by --url")?;
            format!("http://{local}")
        }
    };
    let request = if of_all { ask::ask_all } else { ask::ask };
    let answer = match request(&url, as_json) {
        Ok(answer) => answer,
        Err(error) => {
            eprintln!("gleaner-collector: {error}");
            return Ok(ExitCode::from(NOT_WELL));
        }
    };
    print(&answer.text)?;
    let code = if answer.is_well { 0 } else { NOT_WELL };
    Ok(ExitCode::from(code))
}

fn tell(found: &DatasetCheck, as_json: bool) -> anyhow::Result<ExitCode> {
    print(&if as_json {
        format!("{:#}\n", found.json)
    } else {
        found.text.clone()
    })?;
    let code = if found.is_sound { 0 } else { DAMAGED };
    Ok(ExitCode::from(code))
}

fn print(text: &str) -> std::io::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        // The reader closed the pipe.
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(e),
        _ => Ok(()),
    }
}
