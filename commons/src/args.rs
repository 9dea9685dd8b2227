//! The command line, as typed.

use clap::{Parser, Subcommand};
use gleaner_commons::catalog::CatalogAddress;
use gleaner_commons::source::SourceAddress;
use gleaner_schemas::{interval, units};
use std::path::PathBuf;
use std::time::Duration;

const AFTER_HELP: &str = "\
Examples:
  gleaner-commons seal /srv/tools -o tools.catalog
  gleaner-commons mount tools.catalog /mnt/tools --source /srv/tools
  gleaner-commons mount tools.catalog /mnt/tools --source https://files.example/tools
  gleaner-commons verify tools.catalog --source /srv/tools
  gleaner-commons run                                configured by /etc/gleaner/commons.toml
  gleaner-commons status

Exit codes:
  0  done
  1  failed; standard error says why
  2  wrong usage
  3  verify: at least one file differs or cannot be read";

/// Shows sealed folders as read-only file systems, and checks every block that is read by its hash.
#[derive(Clone, Debug, Parser)]
#[command(name = "gleaner-commons", version, after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Subcommand of the commons.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Read a folder once, and write its catalog: the names, and a hash of every 64 KiB
    #[command(after_help = "\
Examples:
  gleaner-commons seal /srv/tools -o tools.catalog
  gleaner-commons seal /srv/tools -o tools.catalog --threads 2

The first line of output is CATALOG#HASH. With this address, `mount` accepts this version alone.")]
    Seal(SealArgs),
    /// Read all files of a source, and list those that differ from the catalog
    #[command(after_help = "\
Examples:
  gleaner-commons verify tools.catalog --source /srv/tools
  gleaner-commons verify tools.catalog --source https://files.example/tools --json

Contents and sizes are compared; permissions, times, links and additional files are not.

Exit codes: 0 all files equal the catalog; 1 failed; 2 wrong usage; 3 at least one file differs or cannot be read.")]
    Verify(VerifyArgs),
    /// Show the folder of a catalog at a mount point, until interrupted or unmounted
    #[command(after_help = "\
Examples:
  gleaner-commons mount tools.catalog /mnt/tools --source /srv/tools
  gleaner-commons mount tools.catalog /mnt/tools --source https://files.example/tools --local 1GiB
  gleaner-commons mount data.catalog /mnt/data --source /srv/data --kernel-cache false
  umount /mnt/tools      ends the command, too

All files belong to the user who mounts. A block that differs from the catalog is never shown: the read fails (EIO).")]
    Mount(MountArgs),
    /// Show the folders of the configuration, and share their blocks with other hosts, until interrupted
    #[command(after_help = "\
Examples:
  gleaner-commons run
  gleaner-commons run --config /etc/gleaner/commons.toml

Started by root, it mounts and then becomes the user of the key `user`, without any privilege.
SIGTERM and SIGINT unmount all folders and end the service. Changed certificates are used within seconds; other changes of the configuration need a restart.")]
    Run(RunArgs),
    /// Unmount folders when standard input ends; `run` starts this command itself
    #[command(hide = true)]
    RemoveMounts,
    /// Check the configuration, and list the environment variables that override it
    #[command(after_help = gleaner_daemon::config::CHECK_HELP)]
    CheckConfig(CheckConfigArgs),
    /// Print the figures of a running mount or service
    #[command(after_help = "\
Examples:
  gleaner-commons status
  gleaner-commons status --json | jq .fetched_bytes")]
    Status(StatusArgs),
}

/// Folder to seal.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SealArgs {
    /// Folder to seal; no program may write to it meanwhile
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Catalog to write; an existing one is replaced once the new one is complete
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Number of threads that hash files [default: one per CPU, at most 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,
}

/// Source to verify.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) sealed: SealedArgs,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Catalog and source.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SealedArgs {
    /// Catalog; with #HASH after it, the catalog's file must have this hash
    #[arg(value_name = "CATALOG", value_parser = CatalogAddress::parse)]
    pub(crate) catalog: CatalogAddress,
    /// Folder with the sealed files, or its URL on a server that answers ranges
    #[arg(long, value_name = "DIR-OR-URL", value_parser = source)]
    pub(crate) source: SourceAddress,
    /// Time after which a read of the source fails; 10ms to 1h
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = timeout)]
    pub(crate) source_timeout: Duration,
}

/// Mount to make.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct MountArgs {
    #[command(flatten)]
    pub(crate) sealed: SealedArgs,
    /// Folder to mount at
    #[arg(value_name = "DIR")]
    pub(crate) mount_point: PathBuf,
    /// Maximum memory for blocks that were read
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = units::parse_size)]
    pub(crate) local: u64,
    /// Let the kernel cache files as well: faster, but hot blocks are held twice
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub(crate) kernel_cache: bool,
    /// Let all users read, within the files' permissions; only root may allow this, unless /etc/fuse.conf has user_allow_other
    #[arg(long)]
    pub(crate) allow_other: bool,
    /// Socket for `gleaner-commons status` [default: /run/gleaner/commons.sock as root, else
    /// $XDG_RUNTIME_DIR/gleaner/commons.sock]
    #[arg(long, value_name = "FILE")]
    pub(crate) socket: Option<PathBuf>,
    /// Stay in the foreground, as always; accepted because other FUSE programs have this option
    #[arg(short = 'f', long)]
    pub(crate) foreground: bool,
}

/// Service to run.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct RunArgs {
    /// Configuration in TOML [default: /etc/gleaner/commons.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Configuration to check.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct CheckConfigArgs {
    /// Configuration in TOML [default: /etc/gleaner/commons.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print as JSON, with all set keys and their values
    #[arg(long)]
    pub(crate) json: bool,
}

/// Mount or service to ask.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// Socket of the mount or service [default: as of `mount`]
    #[arg(long, value_name = "FILE")]
    pub(crate) socket: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn source(text: &str) -> Result<SourceAddress, String> {
    SourceAddress::parse(text).map_err(|e| e.to_string())
}

fn timeout(text: &str) -> Result<Duration, String> {
    let timeout = interval::parse(text)?;
    if (Duration::from_millis(10)..=Duration::from_secs(3600)).contains(&timeout) {
        return Ok(timeout);
    }
    Err("from 10ms to 1h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }
}
