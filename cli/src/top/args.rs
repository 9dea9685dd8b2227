//! Arguments of `gleaner top`.

use std::path::PathBuf;
use std::time::Duration;

/// Default address of this machine's collector.
pub(crate) const COLLECTOR: &str = "http://127.0.0.1:7480";

/// Watch the present memory use of this host, or of a cluster.
///
/// This host's figures come from its agent's socket and, between samples, from /proc; the cluster's from a
/// collector. Keys: q quits, ? shows help.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner top                                      this host
  gleaner top --cluster                            all hosts, from the collector of this machine
  gleaner top --collector http://127.0.0.1:7481 --sort quota
  gleaner top --cluster --filter silent --once     one frame, as plain text
  gleaner top --recruiter http://127.0.0.1:7484    all hosts, and a recruiter's commonses
  gleaner top --json | jq '.quota.quota_bytes'

From another machine: ssh -L 7480:127.0.0.1:7480 COLLECTOR, then `gleaner top --cluster`.

If standard output is not a terminal, one frame is printed. With NO_COLOR, or on a terminal of 16 colours, there are no colours.

Exit codes: 0 done, also when ended by q, Ctrl-C or SIGTERM; 1 no agent answers (figures of /proc are printed), or no
collector or recruiter; 2 wrong usage.

Every figure: docs/top.md.")]
pub(crate) struct Top {
    /// Show all hosts of a cluster, from the collector of this machine.
    #[arg(long)]
    pub(crate) cluster: bool,
    /// Show all hosts of the collector at this URL [with --cluster: http://127.0.0.1:7480].
    #[arg(long, value_name = "URL")]
    pub(crate) collector: Option<String>,
    /// Show the commonses of the recruiter at this URL above the hosts of the cluster.
    #[arg(long, value_name = "URL")]
    pub(crate) recruiter: Option<String>,
    /// Socket of this host's agent [default: as configured, else /run/gleaner/agent.sock].
    #[arg(long, value_name = "FILE", conflicts_with_all = ["cluster", "collector", "recruiter"])]
    pub(crate) socket: Option<PathBuf>,
    /// Print one frame as plain text.
    #[arg(long)]
    pub(crate) once: bool,
    /// Print one JSON document.
    #[arg(long, conflicts_with = "once")]
    pub(crate) json: bool,
    /// Time between updates, at least 200ms [default: 2s; for a cluster 5s].
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub(crate) interval: Option<Duration>,
    /// Column by which hosts are sorted.
    #[arg(long, value_enum, default_value_t = Column::Host)]
    pub(crate) sort: Column,
    /// Reverse the order.
    #[arg(long)]
    pub(crate) reverse: bool,
    /// Show only hosts whose name, id, state or owner's state contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) filter: String,
}

impl Top {
    /// Address of the requested collector, if any.
    pub(super) fn asked(&self) -> Option<&str> {
        let is_cluster = self.cluster || self.recruiter.is_some();
        let default = is_cluster.then_some(COLLECTOR);
        self.collector.as_deref().or(default)
    }
}

/// Sorting of hosts: names from a to z, other columns from the largest value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Column {
    /// Name of the host.
    Host,
    /// State; hosts that need attention first.
    State,
    /// Physical memory, in bytes.
    Memory,
    /// Available memory, in bytes.
    Available,
    /// Harvestable memory, in bytes.
    Harvestable,
    /// Idle time; the longest first.
    Owner,
    /// Quota: memory that could be lent now.
    Quota,
    /// Age of the last sample.
    Age,
}

const SHORTEST: Duration = Duration::from_millis(200);

fn interval(text: &str) -> Result<Duration, String> {
    let interval = gleaner_schemas::interval::parse(text)?;
    if interval < SHORTEST {
        return Err("the minimum is 200ms".to_owned());
    }
    Ok(interval)
}
