//! Command-line arguments. Man pages and completions are generated from the same
//! definitions.

use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Find the memory that workstations own and do not use.
#[derive(Parser)]
#[command(
    name = "gleaner",
    version,
    after_help = "Examples:
  gleaner demo                                  trace this host for 30 s and report on it
  gleaner analyze out/demo/dataset              tables on the terminal
  gleaner analyze out/demo/dataset --json       the same as JSON
  gleaner report out/demo/dataset -o week.html  one page that needs no network
  gleaner doctor                                faults of this host, and the commands that fix them

Exit codes: 0 done, 1 failed (the reason is on standard error), 2 wrong usage.

The tracer itself is gleaner-agent (see gleaner-agent --help)."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Demo(crate::demo::Demo),
    Doctor(gleaner_doctor::Doctor),
    Collect(crate::collect::Collect),
    Analyze(crate::analyze::Analyze),
    Merge(crate::merge::Merge),
    Explain(crate::explain::Explain),
    Report(Box<crate::report::args::Report>),
    Export(crate::export::args::Export),
    Import(crate::import::args::Import),
    Synth(crate::synth::args::Synth),
    Simulate(Box<crate::simulate::args::Simulate>),
    Cache(crate::cache::Cache),
    Curve(crate::curve::args::Curve),
    Fidelity(gleaner_fidelity::Fidelity),
    Lab(gleaner_lab::Lab),
    Top(crate::top::args::Top),
    Owner(crate::owner::args::Owner),
    Schema(crate::schema::Schema),
    Pki(crate::pki::args::Pki),
    Completions(Completions),
    Man(Man),
}

/// Print completions for a shell.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner completions bash > /etc/bash_completion.d/gleaner
  gleaner completions zsh --of gleaner-agent > ~/.zfunc/_gleaner-agent")]
pub(crate) struct Completions {
    /// Shell that reads the completions.
    pub(crate) shell: clap_complete::Shell,
    /// Program to complete.
    #[arg(long, value_enum, default_value_t = Program::Gleaner)]
    pub(crate) of: Program,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Program {
    Gleaner,
    GleanerAgent,
}

/// Write the man pages of every program.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner man man/ && man man/gleaner-demo.1")]
pub(crate) struct Man {
    /// Folder for the man pages.
    pub(crate) output: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn definitions_are_sound() {
        Args::command().debug_assert();
    }
}
