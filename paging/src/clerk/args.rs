//! The command line, as typed.

use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Examples:
  gleaner-clerk attach --socket /run/pages.sock --swap      swap on the pages that an NBD server has there
  gleaner-clerk attach --socket /run/pages.sock --name big  a block device, for a file system
  gleaner-clerk attached                                    what there is, and how much of it swap uses
  gleaner-clerk detach                                      all of it undone

Exit codes:
  0  done
  1  failed; standard error says why
  2  wrong usage";

/// Has this host use pages that other hosts hold, as a block device or as swap.
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
    /// Folder of what is attached, a folder each; gone with the next start of the host, as what is attached is
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        default_value = "/run/gleaner/clerk"
    )]
    pub(crate) runtime: PathBuf,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a block device of an NBD server's pages, and swap on it if wanted
    #[command(after_help = "Examples:
  gleaner-clerk attach --socket /run/pages.sock --swap --priority 10
  mkfs.ext4 $(gleaner-clerk attach --socket /run/pages.sock --json | jq -r .device)")]
    Attach {
        #[command(flatten)]
        wanted: Wanted,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Take apart what was attached: pages that were swapped out come back first
    #[command(after_help = "Examples:
  gleaner-clerk detach
  gleaner-clerk detach big --patience 5")]
    Detach {
        /// Which [default: the only one]
        name: Option<String>,
        /// Even if what was swapped out does not seem to fit into memory: programs may be killed for it
        #[arg(long)]
        force: bool,
        /// Seconds without progress, after which the server counts as lost, and what it alone held with it
        #[arg(long = "patience", value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
        patience_s: u64,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Tell what is attached
    #[command(after_help = "Examples:
  gleaner-clerk attached --json | jq -r '.[].swap_used_bytes'")]
    Attached {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// What is to be attached, and how.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Wanted {
    /// The Unix socket of an NBD server of this host: its default export is attached [default: that of a clerk started for it]
    #[arg(long, value_name = "FILE")]
    pub(crate) socket: Option<PathBuf>,
    /// What it is called: letters, digits, `-` and `_`
    #[arg(long, default_value = "memory", value_parser = name)]
    pub(crate) name: String,
    /// Swap on it
    #[arg(long)]
    pub(crate) swap: bool,
    /// Swap areas of higher priority are filled first; disks have negative ones by default
    #[arg(long, value_name = "N", default_value_t = 100, requires = "swap", value_parser = clap::value_parser!(u16).range(0..=32767))]
    pub(crate) priority: u16,
    /// Whose block device it is [default: the kernel's if it has an nbd module and nbd-client is installed, else fuse]
    #[arg(long, value_enum)]
    pub(crate) by: Option<By>,
}

/// Ways to a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// The kernel's nbd module, set up by nbd-client
    Kernel,
    /// nbdfuse, and a loop device without a cache on its file
    Fuse,
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
