//! The `gleaner-collector` command.

use clap::Parser;
use gleaner_collector::args::{Args, Command};
use gleaner_collector::config::Config;
use gleaner_collector::run;
use std::process::ExitCode;

fn main() -> ExitCode {
    match dispatch(&Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("gleaner-collector: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Run => run::run(&Config::resolve(&args.global)?)?,
    }
    Ok(ExitCode::SUCCESS)
}
