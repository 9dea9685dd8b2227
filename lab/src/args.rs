//! Arguments of `gleaner lab`.

use super::link::{self, Rate};
use clap::Subcommand;
use gleaner_schemas::units;
use std::path::PathBuf;
use std::time::Duration;

/// Run a collector, a recruiter and hosts on this machine, as real daemons in network namespaces.
///
/// Needs root and iproute2; --loss needs iptables, --delay a kernel with netem.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  sudo gleaner lab up --hosts 5 --rate 100mbit
  sudo gleaner lab status
  sudo gleaner lab down")]
pub struct Lab {
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

#[derive(Subcommand)]
pub(crate) enum LabCommand {
    /// Start the lab.
    #[command(after_help = "Examples:
  sudo gleaner lab up --hosts 3
  sudo gleaner lab up --borrow 256MiB       with a clerk, whose device lies in the hosts' memory
  sudo gleaner lab up --commons /srv/tools  with a commons, whose blocks the hosts share
  sudo gleaner lab up --hosts 20 --rate 10mbit --delay 40ms --loss 1% --interval 5s

Features that this kernel or machine lacks are reported and left out; `gleaner lab status` lists them.")]
    Up(UpArgs),
    /// Print the running daemons, and how far each host's trace is and what the host lends.
    #[command(after_help = "Examples:
  sudo gleaner lab status
  sudo gleaner lab status --json | jq '.hosts[] | select(.is_shipping | not)'

Exit codes: 0 there is a lab, 1 there is none.")]
    Status(Status),
    /// Remove the lab: processes, namespaces, files. Safe to run twice, and after a crash.
    #[command(after_help = "Examples:
  sudo gleaner lab down
  sudo gleaner lab down --keep    keeps databases, dataset and logs in the lab's folder")]
    Down(Down),
}

#[derive(clap::Args)]
pub(crate) struct UpArgs {
    /// Number of hosts, 1 to 1000.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) hosts: u32,
    /// Rate of each host's link, in each direction, like 10mbit [default: no limit]
    #[arg(long, value_name = "RATE", value_parser = link::rate)]
    pub(crate) rate: Option<Rate>,
    /// Delay of each host's link, in each direction, like 5ms [default: none]
    #[arg(long, value_name = "TIME", value_parser = gleaner_schemas::interval::parse)]
    pub(crate) delay: Option<Duration>,
    /// Share of packets that each host's link loses, in each direction, like 1% [default: none]
    #[arg(long, value_name = "PERCENT", value_parser = link::loss)]
    pub(crate) loss: Option<f64>,
    /// Time between samples, and between batches.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = gleaner_schemas::interval::parse)]
    pub(crate) interval: Duration,
    #[command(flatten)]
    pub(crate) lend: LendArgs,
    /// Also start a clerk, with a device of this size in the hosts' memory [default: none]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size)]
    pub(crate) borrow: Option<u64>,
    /// Also show this folder on each host, as a commons whose blocks the hosts share [default: none]
    #[arg(long, value_name = "DIR")]
    pub(crate) commons: Option<PathBuf>,
    /// Folder of the lab: certificates, databases, dataset, logs; must be new or empty.
    #[arg(long, value_name = "DIR", default_value = super::state::DEFAULT_FOLDER)]
    pub(crate) folder: PathBuf,
}

/// Settings of the hosts' lending.
#[derive(clap::Args)]
pub(crate) struct LendArgs {
    /// Mode of lending: `spare` lends also while this machine is busy, `gentle` and `paper` only while it is idle.
    #[arg(long, value_name = "MODE", default_value = "spare")]
    pub(crate) mode: LendMode,
    /// Maximum memory that each host lends; all hosts share this machine's memory.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = units::parse_size)]
    pub(crate) cap: u64,
}

/// Mode of lending, as in memoryd's `mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LendMode {
    Spare,
    Gentle,
    Paper,
}

impl LendMode {
    /// Word in its configuration.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Spare => "spare",
            Self::Gentle => "gentle",
            Self::Paper => "paper",
        }
    }
}

#[derive(clap::Args)]
pub(crate) struct Status {
    /// Folder of the lab [default: the running lab's]
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args)]
pub(crate) struct Down {
    /// Folder of the lab [default: the running lab's]
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Keep databases, dataset and logs.
    #[arg(long)]
    pub(crate) keep: bool,
}
