//! The command line, as typed.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use gleaner_policy::eviction::Policy;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const AFTER_HELP: &str = "\
Examples:
  gleaner-clerk attach --size 16GiB --swap                  swap on other hosts' memory, configured by /etc/gleaner/clerk.toml
  gleaner-clerk run --size 16GiB                            the device alone, for NBD clients of this machine
  gleaner-clerk run --local 2GiB -- PROGRAM                 a program with 2 GiB of local memory, the rest in swap
  gleaner-clerk attach --socket /run/pages.sock --swap      swap on the pages of that NBD server
  gleaner-clerk attach --socket /run/pages.sock --name big  a block device, for a file system
  gleaner-clerk attachments                                 all attachments, and how much of each swap uses
  gleaner-clerk detach                                      undo the attachment

Exit codes:
  0  done
  1  failed; standard error says why
  2  wrong usage";

/// Gives this host pages in other hosts' memory, as a block device or as swap.
#[derive(Clone, Debug, Parser)]
#[command(name = "gleaner-clerk", version, after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct GlobalArgs {
    /// Folder with one folder per attachment; emptied by a reboot, which also ends the attachments
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        default_value = "/run/gleaner/clerk"
    )]
    pub(crate) runtime: PathBuf,
}

/// Subcommand of the clerk.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a device whose pages are in other hosts' memory, until interrupted; then its contents are lost. Or run
    /// a program with little local memory, the rest in swap
    #[command(after_help = "Examples:
  gleaner-clerk run --size 16GiB --recruiter http://127.0.0.1:7484
  gleaner-clerk run --size 1GiB --server nbd://127.0.0.1:10809 --listen /tmp/clerk.sock    pages of an NBD server
  qemu-img info 'nbd+unix:///?socket=/run/gleaner/clerk.sock'
  gleaner-clerk run --local 2GiB -- sort -S 8G big    a program with 2 GiB of local memory
  systemd-run --user --scope -p Delegate=yes gleaner-clerk run --local 2GiB -- PROGRAM    no root

Exit codes with a program: the program's, or 128 plus the number of the signal that ended it
  125  gleaner-clerk failed; standard error says why
  126  the program cannot be executed
  127  the program does not exist")]
    Run {
        #[command(flatten)]
        args: RunArgs,
        #[command(flatten)]
        limited: ProgramArgs,
    },
    /// Remove a program's control group when standard input ends; `run` starts this command itself
    #[command(hide = true)]
    RemoveGroup {
        /// Folder of the control group
        group: PathBuf,
    },
    /// Show an NBD server's default export as a file, until the folder is unmounted; `attach` starts this command
    /// itself
    #[command(hide = true)]
    ExportFile {
        /// Folder to mount
        point: PathBuf,
        /// Unix socket of the server
        socket: PathBuf,
    },
    /// Print the state of a running clerk's device
    Status {
        /// Socket for the status [default: clerk-status.sock beside the device's socket]
        #[arg(long, value_name = "FILE")]
        status_socket: Option<PathBuf>,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Check the configuration, and list the environment variables that override it
    #[command(after_help = gleaner_daemon::config::CHECK_HELP)]
    CheckConfig {
        /// Configuration in TOML [default: /etc/gleaner/clerk.toml, if it exists]
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Print as JSON, with all set keys and their values
        #[arg(long)]
        json: bool,
    },
    /// Make a block device of an NBD server's pages, optionally used as swap
    #[command(after_help = "Examples:
  gleaner-clerk attach --size 16GiB --recruiter https://recruiter.example:7444 --swap
  gleaner-clerk attach --socket /run/pages.sock --swap --priority 10
  mkfs.ext4 $(gleaner-clerk attach --socket /run/pages.sock --json | jq -r .device)")]
    Attach {
        #[command(flatten)]
        wanted: AttachArgs,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Detach a device: swapped-out pages come back into memory first
    #[command(after_help = "Examples:
  gleaner-clerk detach
  gleaner-clerk detach big --timeout 5s")]
    Detach {
        /// Name of the attachment [default: the only one]
        name: Option<String>,
        /// Detach even if the swapped-out pages seem not to fit into memory; the kernel may then kill programs
        #[arg(long)]
        force: bool,
        /// Time without progress after which the server counts as lost, with pages that it alone held; 1s to 1h
        #[arg(long, value_name = "TIME", default_value = "30s", value_parser = detach_timeout)]
        timeout: Duration,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// List the attached devices
    #[command(after_help = "Examples:
  gleaner-clerk attachments --json | jq -r '.[].swap_used_bytes'")]
    Attachments {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
}

/// Device to serve, and its sockets.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Unix socket for NBD clients [default: /run/gleaner/clerk.sock as root, else
    /// $XDG_RUNTIME_DIR/gleaner/clerk.sock]
    #[arg(long, value_name = "FILE")]
    pub(crate) listen: Option<PathBuf>,
    /// Socket for `gleaner-clerk status` [default: clerk-status.sock beside the device's socket]
    #[arg(long, value_name = "FILE")]
    pub(crate) status_socket: Option<PathBuf>,
}

/// Program to run with little local memory.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ProgramArgs {
    /// Means of giving the program memory beyond `--local` [default: swap]
    #[arg(long, value_enum, requires = "program")]
    pub(crate) by: Option<Means>,
    /// Local memory of the program and its children, at least 4MiB; the rest of their memory is in swap
    #[arg(long, value_name = "SIZE", requires = "program", value_parser = local_size)]
    pub(crate) local: Option<u64>,
    /// Control group in which to make the program's [default: the root group as root, else this user's own group]
    #[arg(long, value_name = "DIR", requires = "program")]
    pub(crate) cgroup: Option<PathBuf>,
    /// Print times, memory and page faults at the program's end, even if standard error is no terminal
    #[arg(long, requires = "program")]
    pub(crate) report: bool,
    /// Write times, memory and page faults to a file, as JSON
    #[arg(long, value_name = "FILE", requires = "program")]
    pub(crate) json: Option<PathBuf>,
    /// Program to run, with its arguments
    #[arg(last = true, requires = "local", conflicts_with_all = ["DeviceArgs", "RunArgs"])]
    pub(crate) program: Vec<OsString>,
}

/// Means of giving a program more memory than it has locally.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Means {
    // A control group, and the swap that is attached.
    Swap,
}

/// The device; all else is in the configuration.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct DeviceArgs {
    /// Configuration in TOML [default: /etc/gleaner/clerk.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Size of the device [default: 1GiB]
    #[arg(long, value_parser = gleaner_schemas::units::parse_size_above_0)]
    pub(crate) size: Option<u64>,
    /// Folder of the copy on disk, or `none` [default: /var/lib/gleaner/clerk as root, else $XDG_STATE_HOME/gleaner/clerk]
    #[arg(long, value_name = "DIR")]
    pub(crate) disk_folder: Option<PathBuf>,
    /// Number of copies of each page, on different hosts: 1 or 2 [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) copies: Option<usize>,
    /// Policy that chooses the pages to evict from full servers [default: lru]
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Policy::ALL.map(Policy::name)).try_map(|name| name.parse::<Policy>()))]
    pub(crate) eviction: Option<Policy>,
    /// Memory server to use without a recruiter: nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH
    /// (repeatable)
    #[arg(long, value_name = "URL")]
    pub(crate) server: Vec<String>,
    /// Recruiter that finds hosts with memory: https://HOST:PORT, or http:// on this machine (repeatable)
    #[arg(long, value_name = "URL")]
    pub(crate) recruiter: Vec<String>,
}

/// Device to attach, and the method.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct AttachArgs {
    /// Unix socket of an NBD server on this host, whose default export is attached [default: a clerk is
    /// started for the attachment]
    #[arg(long, value_name = "FILE", conflicts_with = "DeviceArgs")]
    pub(crate) socket: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Name of the attachment: 1 to 32 letters, digits, `-` and `_`
    #[arg(long, default_value = "memory", value_parser = name)]
    pub(crate) name: String,
    /// Use the device as swap
    #[arg(long)]
    pub(crate) swap: bool,
    /// Swap priority, 0 to 32767; higher ones are filled first, and disks have negative ones by default
    #[arg(long, value_name = "N", default_value_t = 100, requires = "swap", value_parser = clap::value_parser!(u16).range(0..=32767))]
    pub(crate) priority: u16,
    /// Method of making the block device [default: kernel if there are an nbd module and nbd-client, else
    /// fuse]
    #[arg(long, value_enum)]
    pub(crate) method: Option<AttachMethod>,
}

/// Method of making a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AttachMethod {
    /// The kernel's nbd module, set up by nbd-client
    Kernel,
    /// The export as a file through FUSE, and an uncached loop device on this file
    Fuse,
}

/// Minimum of `--local`: with less, a program spends all its time on its own code's pages.
const LEAST_LOCAL_BYTES: u64 = 4 << 20;

fn local_size(text: &str) -> Result<u64, String> {
    let bytes = gleaner_schemas::units::parse_size(text)?;
    if bytes < LEAST_LOCAL_BYTES {
        return Err("at least 4MiB".to_owned());
    }
    Ok(bytes)
}

fn detach_timeout(text: &str) -> Result<Duration, String> {
    let timeout = gleaner_schemas::interval::parse(text)?;
    if (Duration::from_secs(1)..=Duration::from_secs(3600)).contains(&timeout) {
        return Ok(timeout);
    }
    Err("from 1s to 1h".to_owned())
}

fn name(text: &str) -> Result<String, String> {
    let is_good = (1..=32).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    if !is_good {
        return Err("1 to 32 letters, digits, `-` and `_`, a letter or digit first".to_owned());
    }
    Ok(text.to_owned())
}
