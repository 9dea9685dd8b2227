//! The `gleaner-recruiter` command.

use clap::Parser;
use gleaner_recruiter::adapter::{self, Follow};

/// Places memory of idle hosts.
#[derive(Parser)]
#[command(name = "gleaner-recruiter", version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Follow(Follow),
}

fn main() -> anyhow::Result<()> {
    let Command::Follow(follow) = Args::parse().command;
    Ok(adapter::run(&follow)?)
}
