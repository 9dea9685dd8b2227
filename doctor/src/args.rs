//! Arguments of `gleaner doctor`.

use super::daemon::Daemon;
use std::path::PathBuf;

/// Check this host: what works, what does not, and the command that fixes it.
///
/// Checks the named daemons, or every daemon that is installed or running here: program, unit, configuration,
/// permissions, kernel, clock, network, certificates, disk, and the daemons' own status. Changes nothing.
/// Without root some checks are impossible; the output names them.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  sudo gleaner doctor                    all daemons that are used here
  gleaner doctor agent ship              these two
  gleaner doctor --json | jq -r '.checks[] | select(.state == \"fault\") | .remedy // empty'
  gleaner doctor --config-folder ./etc   daemons whose configuration lies in another folder

Exit codes: 0 all is well (there may be warnings), 1 the doctor itself failed, 2 wrong usage, 3 something does not work.

Every message, and what to do: docs/doctor.md. Schema of --json: gleaner schema --as diagnosis.")]
pub struct Doctor {
    /// Daemons to check [default: all that are set up here].
    #[arg(value_name = "DAEMON")]
    pub(super) daemons: Vec<Daemon>,
    /// Print the diagnosis as one JSON document.
    #[arg(long)]
    pub json: bool,
    /// Folder of the daemons' configuration: agent.toml, collector.toml, recruiter.toml, memoryd.toml, clerk.toml,
    /// commons.toml.
    #[arg(long, value_name = "DIR", default_value = super::place::CONFIGURATION)]
    pub(super) config_folder: PathBuf,
    /// Folder to search for programs before the PATH.
    #[arg(long, value_name = "DIR")]
    pub(super) programs: Option<PathBuf>,
    /// Print every message with its meaning and remedy, as Markdown, and check nothing.
    #[arg(long)]
    pub messages: bool,
    /// The kernel's process files, or a captured tree of another host's.
    #[arg(long, value_name = "DIR", default_value = "/proc", hide = true)]
    pub(super) proc_root: PathBuf,
    /// The kernel's device descriptions.
    #[arg(long, value_name = "DIR", default_value = "/sys", hide = true)]
    pub(super) sys_root: PathBuf,
}
