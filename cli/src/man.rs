//! `gleaner man` and `gleaner completions`: generated from the definitions of the arguments.

use crate::args::{Args, Completions, Man, Program};
use anyhow::Context;
use clap::{Command, CommandFactory};
use std::fs;

fn command(program: Program) -> Command {
    match program {
        Program::Gleaner => Args::command(),
        Program::GleanerAgent => gleaner_agent::args::command(),
    }
}

pub(crate) fn completions(args: &Completions) -> anyhow::Result<()> {
    let mut command = command(args.of);
    let name = command.get_name().to_owned();
    let mut text = Vec::new(); // clap_complete would panic on a closed pipe
    clap_complete::generate(args.shell, &mut command, name, &mut text);
    std::io::Write::write_all(&mut std::io::stdout(), &text)?;
    Ok(())
}

pub(crate) fn pages(args: &Man) -> anyhow::Result<()> {
    let folder = &args.output;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for program in [Program::Gleaner, Program::GleanerAgent] {
        clap_mangen::generate_to(command(program), folder)
            .with_context(|| format!("cannot write man pages into {}", folder.display()))?;
    }
    Ok(())
}
