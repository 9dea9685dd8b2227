//! The command line, as typed.

use clap::{Parser, Subcommand};
use gleaner_paging::nbd::Address;
use gleaner_schemas::units;
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Examples:
  gleaner-memoryd run                                as /etc/gleaner/memoryd.toml says
  gleaner-memoryd check-config                       is that file good?
  gleaner-memoryd run --standalone 8GiB --fill       to measure how fast memory comes back (docs/lending.md)
  gleaner-memoryd standalone 1GiB --listen 127.0.0.1:10809     memory for any NBD client of this machine
  gleaner owner status                               what is lent; pause, resume and cap are there as well

Exit codes:
  0  ended by SIGTERM or SIGINT, all memory was given back first; check-config: it is good
  1  failed; standard error says why
  2  wrong usage";

/// Lends this host's idle memory, and gives it back at once when its owner returns.
#[derive(Clone, Debug, Parser)]
#[command(name = "gleaner-memoryd", version, after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct GlobalArgs {
    /// Configuration in TOML [default: /etc/gleaner/memoryd.toml, where there is one]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Socket of the agent [default: /run/gleaner/agent.sock as root, else
    /// $XDG_RUNTIME_DIR/gleaner/agent.sock]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) agent_socket: Option<PathBuf>,
    /// Socket for the owner's commands [default: memoryd.sock beside the agent's]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) socket: Option<PathBuf>,
    /// Folder of the owner's wishes and of the log [default: /var/lib/gleaner/memoryd as root, else $XDG_STATE_HOME/gleaner/memoryd]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) state_folder: Option<PathBuf>,
}

/// Subcommand of the memory server.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Lend memory while the host is idle, until interrupted
    Run {
        /// To measure: one lease of this size, had at every sample of the agent's as if the host were idle
        #[arg(long, value_name = "SIZE", value_parser = units::parse_size_above_0)]
        standalone: Option<u64>,
        /// With --standalone: every page of it is written
        #[arg(long, requires = "standalone")]
        fill: bool,
    },
    /// Serve memory to NBD clients of this machine, without agent and recruiter, until interrupted: to measure, to try
    Standalone {
        /// Size of the lease
        #[arg(value_name = "SIZE", value_parser = units::parse_size_above_0)]
        size: u64,
        /// HOST:PORT on this machine (port 0: any that is free), or the path of a Unix socket
        #[arg(long, value_name = "ADDRESS")]
        listen: Address,
    },
    /// Check the configuration, and list the environment variables that override it
    #[command(after_help = gleaner_daemon::config::CHECK_HELP)]
    CheckConfig {
        /// Print as JSON, with every key that is set and its value
        #[arg(long)]
        json: bool,
    },
}
