//! The `gleaner-memoryd` command.

mod args;
mod clock;
mod config;
mod core;
mod itself;
mod link;
mod log;
mod run;
mod standalone;
mod wishes;

use args::{Args, Command};
use clap::Parser;
use config::Config;
use std::process::ExitCode;

fn main() -> ExitCode {
    match dispatch(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gleaner-memoryd: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: Args) -> anyhow::Result<()> {
    let config = Config::resolve(&args.global)?;
    match args.command {
        Command::Run { standalone, fill } => {
            let measured = standalone.map(|bytes| run::Measured {
                bytes,
                is_filled: fill,
            });
            run::run(config, measured)
        }
    }
}

/// Bytes that nobody can guess.
fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    use std::io::Read;
    let mut bytes = [0; N];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
