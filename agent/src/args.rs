//! The command line, as typed. `gleaner` makes man pages and completions from [`command`].

use clap::{CommandFactory, Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

const AFTER_HELP: &str = "\
Examples:
  gleaner-agent sample                     what this host's memory holds now
  gleaner-agent sample --json              the same, each field with its unit
  gleaner-agent run --interval 90s         trace until interrupted
  gleaner-agent status                     whether tracing works, and what it cannot read
  gleaner-agent export /srv/gleaner/data   hand the trace on to a dataset

Exit codes:
  0  done
  1  failed; standard error says why
  2  wrong usage
  3  status: no sample has been written lately";

/// Traces the memory of this host: who uses it, how much is available, when the owner is away.
#[derive(Clone, Debug, Parser)]
#[command(name = "gleaner-agent", version, after_help = AFTER_HELP)]
pub struct Args {
    #[command(flatten)]
    #[allow(missing_docs)] // a doc comment would become the program's help
    pub global: GlobalArgs,
    #[command(subcommand)]
    #[allow(missing_docs)]
    pub command: Command,
}

/// Options of every command.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct GlobalArgs {
    /// Configuration (TOML: interval, database, privacy, headroom_share, always_active)
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Trace [default: /var/lib/gleaner/trace.db as root, else $XDG_STATE_HOME/gleaner/trace.db]
    #[arg(long, global = true, value_name = "FILE")]
    pub database: Option<PathBuf>,
    /// Time between samples, like 90s, 1m30s or 500ms [default: 90s]
    #[arg(long, global = true, value_name = "TIME", value_parser = crate::interval::parse)]
    pub interval: Option<Duration>,
    /// The kernel's process files, or a captured tree of another host's
    #[arg(long, global = true, value_name = "DIR", default_value = "/proc")]
    pub proc_root: PathBuf,
    /// The kernel's device descriptions
    #[arg(long, global = true, value_name = "DIR", default_value = "/sys")]
    pub sys_root: PathBuf,
    /// Input devices and terminals
    #[arg(long, global = true, value_name = "DIR", default_value = "/dev")]
    pub dev_root: PathBuf,
    /// Page size of the host that a captured tree is of
    #[arg(long, global = true, hide = true, value_name = "BYTES")]
    pub page_size: Option<u64>,
    /// Clock ticks a second of the host that a captured tree is of
    #[arg(long, global = true, hide = true, value_name = "N")]
    pub ticks: Option<u64>,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Sample at each interval into the database, until interrupted
    Run {
        /// End after so many samples
        #[arg(long, value_name = "N")]
        samples: Option<u64>,
    },
    /// Take one sample and print it; nothing is stored
    Sample {
        /// As JSON: each field with its unit, and what could not be read
        #[arg(long)]
        json: bool,
        /// How long to watch first, so that processes that use CPU can be told from idle ones
        #[arg(long, value_name = "TIME", default_value = "1s", value_parser = crate::interval::parse)]
        settle: Duration,
        /// Compare CPU times with those in this captured /proc instead of watching
        #[arg(long, value_name = "DIR")]
        before: Option<PathBuf>,
    },
    /// Tell whether tracing works, and what it may not read
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Write what a dataset does not have yet of this host's trace
    Export {
        /// The dataset's folder; made when it is not there
        #[arg(value_name = "DIR")]
        dataset: PathBuf,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// The command line's definition.
#[must_use]
pub fn command() -> clap::Command {
    Args::command()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_definition_is_sound() {
        super::command().debug_assert();
    }
}
