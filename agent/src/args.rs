//! The command line, as typed. `gleaner` makes man pages and completions from [`command`].

use clap::{CommandFactory, Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

const AFTER_HELP: &str = "\
Examples:
  gleaner-agent sample                     what this host's memory holds now
  gleaner-agent sample --json              the same, each field with its unit
  gleaner-agent run --sample-interval 90s  trace until interrupted
  gleaner-agent status                     whether tracing works, and what it cannot read
  gleaner-agent inspect                    what has been recorded about you
  gleaner-agent export /srv/gleaner/data   hand the trace on to a dataset

Exit codes:
  0  done
  1  failed; standard error says why
  2  wrong usage
  3  status: no sample has been written lately
  4  export: done, but a damaged database could not be read whole";

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
#[derive(Clone, Debug, clap::Args)]
pub struct GlobalArgs {
    /// Configuration in TOML [default: /etc/gleaner/agent.toml, where there is one]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Trace [default: /var/lib/gleaner/trace.db as root, else $XDG_STATE_HOME/gleaner/trace.db]
    #[arg(long, global = true, value_name = "FILE")]
    pub database: Option<PathBuf>,
    /// Socket for local daemons, or none [default: /run/gleaner/agent.sock as root, else
    /// $XDG_RUNTIME_DIR/gleaner/agent.sock]
    #[arg(long, global = true, value_name = "FILE")]
    pub socket: Option<PathBuf>,
    /// Time between samples, like 90s, 1m30s or 500ms [default: 90s]
    #[arg(long, global = true, value_name = "TIME", value_parser = crate::interval::parse)]
    pub sample_interval: Option<Duration>,
    /// The kernel's process files, or a captured tree of another host's
    #[arg(long, global = true, value_name = "DIR", default_value = "/proc")]
    pub proc_root: PathBuf,
    /// The kernel's device descriptions
    #[arg(long, global = true, value_name = "DIR", default_value = "/sys")]
    pub sys_root: PathBuf,
    /// Input devices and terminals
    #[arg(long, global = true, value_name = "DIR", default_value = "/dev")]
    pub dev_root: PathBuf,
    /// Users' runtime folders, in which `session` leaves its report
    #[arg(long, global = true, value_name = "DIR", default_value = "/run")]
    pub run_root: PathBuf,
    /// Page size of the host that a captured tree is of
    #[arg(long, global = true, hide = true, value_name = "BYTES")]
    pub page_size: Option<u64>,
    /// Clock ticks a second of the host that a captured tree is of
    #[arg(long, global = true, hide = true, value_name = "N")]
    pub ticks: Option<u64>,
}

impl Default for GlobalArgs {
    /// Values as without any option: the files of this host itself.
    fn default() -> Self {
        Self {
            config: None,
            database: None,
            socket: None,
            sample_interval: None,
            proc_root: "/proc".into(),
            sys_root: "/sys".into(),
            dev_root: "/dev".into(),
            run_root: "/run".into(),
            page_size: None,
            ticks: None,
        }
    }
}

/// Subcommand of the agent.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Sample at each interval into the database, until interrupted
    #[command(after_help = "Examples:
  sudo gleaner-agent run                         # every 90 s, until Ctrl-C or SIGTERM
  gleaner-agent run --sample-interval 1s --samples 30 --database /tmp/trace.db")]
    Run {
        /// End after this number of samples
        #[arg(long, value_name = "N")]
        samples: Option<u64>,
    },
    /// Check the configuration, and list the environment variables that override it
    #[command(after_help = gleaner_daemon::config::CHECK_HELP)]
    CheckConfig {
        /// Print as JSON, with every key that is set and its value
        #[arg(long)]
        json: bool,
    },
    /// Take one sample and print it; nothing is stored
    #[command(after_help = "Examples:
  gleaner-agent sample
  gleaner-agent sample --json | jq '.sample.available_bytes'
  gleaner-agent sample --proc-root TREE/proc --sys-root TREE/sys --dev-root TREE/dev")]
    Sample {
        /// Print as JSON: each field with its unit, and the values that could not be read
        #[arg(long)]
        json: bool,
        /// Time to watch first, so that processes that use CPU can be told from idle ones
        #[arg(long, value_name = "TIME", default_value = "1s", value_parser = crate::interval::parse)]
        settle: Duration,
        /// Compare CPU times with those of this captured /proc instead of watching
        #[arg(long, value_name = "DIR")]
        before: Option<PathBuf>,
    },
    /// Report the owner's last use of this desktop session (Wayland or X11) to the agent; run it as that user
    #[command(after_help = "Examples:
  gleaner-agent session                          # among the desktop's autostart programs
  WAYLAND_DISPLAY=wayland-0 XDG_RUNTIME_DIR=/run/user/1000 gleaner-agent session
  DISPLAY=:1 XDG_RUNTIME_DIR=/run/user/1000 gleaner-agent session

Says only when the last activity was, by the time of a file in $XDG_RUNTIME_DIR; ends with the session.")]
    Session {
        /// Time between looks, 20s at most
        #[arg(long, value_name = "TIME", default_value = "5s", value_parser = crate::session::look_interval)]
        every: Duration,
    },
    /// Listen to the running agent: each sample, and when the owner leaves and returns
    #[command(after_help = "Examples:
  gleaner-agent watch
  gleaner-agent watch --json | jq -c 'select(.type == \"owner\")'

Ends with the agent, with exit code 1. docs/live.md describes the messages.")]
    Watch {
        /// The messages as received, one a line
        #[arg(long)]
        json: bool,
    },
    /// Print the state of tracing, and the values that it may not read
    #[command(after_help = "Examples:
  gleaner-agent status
  gleaner-agent status --json || mail -s 'gleaner-agent needs a look' root

Exit codes: 0 healthy, 3 not healthy, 1 no trace to tell of.")]
    Status {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print in plain words what has been recorded about the people at this host
    #[command(after_help = "Examples:
  gleaner-agent inspect
  gleaner-agent inspect --last 1h
  gleaner-agent inspect --json | jq -r '.programs[].name'")]
    Inspect {
        /// Only records younger than this
        #[arg(long, value_name = "TIME", value_parser = crate::interval::parse)]
        last: Option<Duration>,
        /// Print as JSON: every name
        #[arg(long)]
        json: bool,
    },
    /// Return the space that deletion freed in the database to the disk, with the agent stopped
    #[command(after_help = "Examples:
  gleaner-agent vacuum
  gleaner-agent vacuum --json --database /tmp/trace.db

A running agent gives pages back by itself, a little after each sample; see `retention` and `database_limit`
in the configuration.")]
    Vacuum {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Write the records of this host's trace that a dataset does not have yet
    #[command(after_help = "Examples:
  gleaner-agent export /srv/gleaner/dataset
  gleaner-agent export --json --database /tmp/trace.db /tmp/dataset
  gleaner-agent export --database /var/lib/gleaner/trace.db.damaged-20261121T142300Z DIR

Exit codes: 0 done, 4 done but for what a damaged database no longer gives, 1 failed.")]
    Export {
        /// Folder of the dataset; created if it does not exist
        #[arg(value_name = "DIR")]
        dataset: PathBuf,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Enrol this host with a collector, by a one-time token from there
    #[command(after_help = "Examples:
  gleaner-agent enroll https://collector.example:7443 TOKEN
  gleaner pki token --json | jq -r .token | ssh root@host gleaner-agent enroll https://collector.example:7443 -

The key is made here and never leaves this host; the token names the authority that the collector must have.")]
    Enroll {
        /// Address of the collector
        #[arg(value_name = "https://HOST:PORT")]
        collector: String,
        /// Token as `gleaner pki token` printed it; - reads it from standard input, where no other user of
        /// this host sees it
        #[arg(value_name = "TOKEN")]
        token: String,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Send the trace to the collector, and continue as it grows
    #[command(after_help = "Examples:
  gleaner-agent ship                             # until SIGTERM, beside `gleaner-agent run`
  gleaner-agent ship --once                      # what is there; exit code 0 when the collector has all of it

Where to: as enrolled, or as `ship.collector` in the configuration says (docs/shipping.md).")]
    Ship {
        /// Send the present records and end
        #[arg(long)]
        once: bool,
        /// Print the result as JSON
        #[arg(long, requires = "once")]
        json: bool,
    },
}

/// Definition of the command line.
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
