//! Command line of the collector.

use clap::{CommandFactory, Parser, Subcommand};
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Examples:
  gleaner-collector run                          configured by /etc/gleaner/collector.toml
  gleaner-collector status                       hosts, lag, problems
  gleaner-collector status --all                 all collectors of the dataset
  gleaner-collector verify /srv/gleaner/dataset  check every hash and every count
  gleaner-collector repair /srv/gleaner/dataset  set damaged files aside, save their intact records

Exit codes:
  0  done; verify: all files are as sealed
  1  failed; standard error says why
  2  wrong usage
  3  status: the collector (with --all: one of them) does not answer, or has problems
  4  verify, repair: there was damage";

/// Gathers the traces of a cluster's agents into one dataset, and serves it.
#[derive(Clone, Debug, Parser)]
#[command(name = "gleaner-collector", version, after_help = AFTER_HELP)]
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
    /// Configuration in TOML [default: /etc/gleaner/collector.toml, if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder of journal and dataset [default: /var/lib/gleaner/collector as root, else $XDG_STATE_HOME/gleaner/collector]
    #[arg(long, global = true, value_name = "DIR")]
    pub data_folder: Option<PathBuf>,
}

/// Subcommand of the collector.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Accept batches from agents, until interrupted
    Run,
    /// Check the configuration, and list the environment variables that override it
    #[command(after_help = gleaner_daemon::config::CHECK_HELP)]
    CheckConfig {
        /// Print as JSON, with all set keys and their values
        #[arg(long)]
        json: bool,
    },
    /// Check every file of a dataset against its hashes and counts
    Verify {
        /// Folder of the dataset
        dataset: PathBuf,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Set damaged files of a dataset aside, save their intact records, and rebuild a lost manifest
    #[command(
        after_help = "A collector may keep running meanwhile: it seals only after the repair."
    )]
    Repair {
        /// Folder of the dataset
        dataset: PathBuf,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the status of a running collector and its hosts, problems first
    Status {
        /// URL of the collector's plain-HTTP listener [default: `local_listen` of the configuration]
        #[arg(long)]
        url: Option<String>,
        /// Print the collectors of the dataset, without their hosts
        #[arg(long)]
        all: bool,
        /// Print as JSON (docs/collector.md describes it)
        #[arg(long)]
        json: bool,
    },
}

/// Description of the command line, for man pages and completions.
#[must_use]
pub fn command() -> clap::Command {
    Args::command()
}
