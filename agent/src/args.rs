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
  gleaner-agent export /srv/gleaner/data   add the trace to a dataset

Exit codes:
  0  done
  1  failed; standard error says why
  2  wrong usage
  3  status: not healthy, for example without recent samples
  4  export: done, but parts of a damaged database were unreadable";

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
    /// Configuration in TOML [default: /etc/gleaner/agent.toml, if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Database of the trace [default: /var/lib/gleaner/trace.db as root, else $XDG_STATE_HOME/gleaner/trace.db]
    #[arg(long, global = true, value_name = "FILE")]
    pub database: Option<PathBuf>,
    /// Socket for local daemons, or `none` [default: /run/gleaner/agent.sock as root, else
    /// $XDG_RUNTIME_DIR/gleaner/agent.sock]
    #[arg(long, global = true, value_name = "FILE")]
    pub socket: Option<PathBuf>,
    /// Time between samples, like 90s, 1m30s or 500ms [default: 90s]
    #[arg(long, global = true, value_name = "TIME", value_parser = crate::interval::parse)]
    pub sample_interval: Option<Duration>,
    /// Folder of the kernel's process files, or of a copy from another host
    #[arg(long, global = true, value_name = "DIR", default_value = "/proc")]
    pub proc_root: PathBuf,
    /// Folder of the kernel's device descriptions
    #[arg(long, global = true, value_name = "DIR", default_value = "/sys")]
    pub sys_root: PathBuf,
    /// Folder of input devices and terminals
    #[arg(long, global = true, value_name = "DIR", default_value = "/dev")]
    pub dev_root: PathBuf,
    /// Folder of the users' runtime folders, in which `session` writes its report
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
    /// Write a sample into the database at each interval, until interrupted
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
        /// Print as JSON, with all set keys and their values
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
        /// Time to observe CPU use first, which distinguishes active processes from idle ones
        #[arg(long, value_name = "TIME", default_value = "1s", value_parser = crate::interval::parse)]
        settle: Duration,
        /// Compare CPU times with those of this earlier copy of /proc instead of observing
        #[arg(long, value_name = "DIR")]
        before: Option<PathBuf>,
    },
    /// Report the owner's last use of this desktop session (Wayland or X11) to the agent; run it as that user
    #[command(after_help = "Examples:
  gleaner-agent session                          # among the desktop's autostart programs
  WAYLAND_DISPLAY=wayland-0 XDG_RUNTIME_DIR=/run/user/1000 gleaner-agent session
  DISPLAY=:1 XDG_RUNTIME_DIR=/run/user/1000 gleaner-agent session

Reports only the time of the last activity, as the time of a file in $XDG_RUNTIME_DIR. Ends with the session.")]
    Session {
        /// Time between checks for activity, 1ms to 20s
        #[arg(long, value_name = "TIME", default_value = "5s", value_parser = crate::session::look_interval)]
        every: Duration,
    },
    /// Print each sample of the running agent, and when the owner leaves and returns
    #[command(after_help = "Examples:
  gleaner-agent watch
  gleaner-agent watch --json | jq -c 'select(.type == \"owner\")'

When the agent ends, so does this, with exit code 1. docs/live.md describes the messages.")]
    Watch {
        /// Print the messages as received, one per line
        #[arg(long)]
        json: bool,
    },
    /// Print the state of tracing, and the values that the agent may not read
    #[command(after_help = "Examples:
  gleaner-agent status
  gleaner-agent status --json || mail -s 'gleaner-agent needs a look' root

Exit codes: 0 healthy, 3 not healthy, 1 there is no trace.")]
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
        /// Maximum age of the records that are described
        #[arg(long, value_name = "TIME", value_parser = crate::interval::parse)]
        last: Option<Duration>,
        /// Print as JSON, with every name
        #[arg(long)]
        json: bool,
    },
    /// Return the space of deleted records in the database to the disk; stop the agent first
    #[command(after_help = "Examples:
  gleaner-agent vacuum
  gleaner-agent vacuum --json --database /tmp/trace.db

A running agent does so by itself, a little after each sample; see `retention` and `database_limit` in the
configuration.")]
    Vacuum {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Add to a dataset the records of this host's trace that it lacks
    #[command(after_help = "Examples:
  gleaner-agent export /srv/gleaner/dataset
  gleaner-agent export --json --database /tmp/trace.db /tmp/dataset
  gleaner-agent export --database /var/lib/gleaner/trace.db.damaged-20261121T142300Z DIR

Exit codes: 0 done, 4 done except for unreadable parts of a damaged database, 1 failed.")]
    Export {
        /// Folder of the dataset; created if it does not exist
        #[arg(value_name = "DIR")]
        dataset: PathBuf,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Enrol this host with a collector, by a one-time token from `gleaner pki token`
    #[command(after_help = "Examples:
  gleaner-agent enroll https://collector.example:7443 TOKEN
  gleaner pki token --json | jq -r .token | ssh root@host gleaner-agent enroll https://collector.example:7443 -

The key is made on this host and never leaves it. The token identifies the authority that must have issued the
collector's certificate.")]
    Enroll {
        /// Address of the collector
        #[arg(value_name = "https://HOST:PORT")]
        collector: String,
        /// Token as printed by `gleaner pki token`; - reads it from standard input, which hides it from other
        /// users
        #[arg(value_name = "TOKEN")]
        token: String,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Send the trace to the collector, then each new record, until interrupted
    #[command(after_help = "Examples:
  gleaner-agent ship                             # until SIGTERM, beside `gleaner-agent run`
  gleaner-agent ship --once                      # the present records; exit code 0 when the collector has all of them

Destination: the collector of the enrolment, or `ship.collector` of the configuration (docs/shipping.md).")]
    Ship {
        /// Send the present records, then end
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
