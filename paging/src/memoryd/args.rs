//! The command line, as typed.

use clap::{Parser, Subcommand};
use gleaner_paging::nbd::Address;
use gleaner_schemas::units;
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Examples:
  gleaner-memoryd run                                configured by /etc/gleaner/memoryd.toml
  gleaner-memoryd check-config                       check that file
  gleaner-memoryd run --standalone 8GiB --fill       to measure how fast memory is returned (docs/lending.md)
  gleaner-memoryd standalone 1GiB --listen 127.0.0.1:10809     memory for any NBD client of this machine
  gleaner owner status                               lent memory (other commands: pause, resume, cap)

Exit codes:
  0  ended by SIGTERM or SIGINT, after all memory was returned; check-config: the configuration is valid
  1  failed; standard error says why
  2  wrong usage";

/// Lends this host's idle memory, and returns it immediately when the owner returns.
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
    /// Configuration in TOML [default: /etc/gleaner/memoryd.toml, if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Socket of the agent [default: /run/gleaner/agent.sock as root, else
    /// $XDG_RUNTIME_DIR/gleaner/agent.sock]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) agent_socket: Option<PathBuf>,
    /// Socket for the owner's commands [default: memoryd.sock beside the agent's]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) socket: Option<PathBuf>,
    /// Folder of the owner's settings and of the lending log [default: /var/lib/gleaner/memoryd as root, else $XDG_STATE_HOME/gleaner/memoryd]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) state_folder: Option<PathBuf>,
}

/// Subcommand of the memory server.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Lend memory while the host is idle, until interrupted
    Run {
        /// For measurements: take one lease of this size whenever it fits, as if the host were always idle
        #[arg(long, value_name = "SIZE", value_parser = units::parse_size_above_0)]
        standalone: Option<u64>,
        /// With --standalone: write every page of the lease
        #[arg(long, requires = "standalone")]
        fill: bool,
    },
    /// Serve memory to NBD clients of this machine without agent and recruiter, for tests, until interrupted
    Standalone {
        /// Size of the lease
        #[arg(value_name = "SIZE", value_parser = units::parse_size_above_0)]
        size: u64,
        /// HOST:PORT on this machine (port 0: any free port), or the path of a Unix socket
        #[arg(long, value_name = "ADDRESS")]
        listen: Address,
        /// For measurements: require TLS, with this certificate and key. The authority issued the client's
        /// certificate, for the client `standalone`
        #[arg(long, hide = true, num_args = 3, value_names = ["CERTIFICATE", "KEY", "AUTHORITY"])]
        tls: Option<Vec<PathBuf>>,
    },
    /// Check the configuration, and list the environment variables that override it
    #[command(after_help = gleaner_daemon::config::CHECK_HELP)]
    CheckConfig {
        /// Print as JSON, with all set keys and their values
        #[arg(long)]
        json: bool,
    },
}
