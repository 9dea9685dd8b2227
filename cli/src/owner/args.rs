//! Arguments of `gleaner owner`.

use gleaner_schemas::units;
use std::path::PathBuf;
use std::time::Duration;

/// Control and inspect what memory of your own machine is lent.
///
/// A command takes effect immediately: when it returns, the memory is back. Root is not needed: every user of
/// the machine may pause lending and lower the cap, and undo their own commands; root, and the group of the
/// daemon's socket, may undo all.
#[derive(clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:
  gleaner owner status
  gleaner owner pause                    nothing is lent until `gleaner owner resume`
  gleaner owner pause --for 2h
  gleaner owner cap 4GiB                 lend at most 4 GiB; `cap none` removes the limit
  gleaner owner log                      when memory was returned, why, and how fast
  gleaner owner status --json | jq .quota.lent_bytes

Pauses and caps survive restarts of the daemon.

Exit codes: 0 done; 1 no daemon answers, or it refused (standard error says why); 2 wrong usage.

Every figure: docs/lending.md."
)]
pub(crate) struct Owner {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Socket of gleaner-memoryd [default: $XDG_RUNTIME_DIR/gleaner/memoryd.sock, else
    /// /run/gleaner/memoryd.sock].
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) socket: Option<PathBuf>,
    /// Print the answer as one JSON document.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Take back all lent memory, and lend none.
    Pause {
        /// Length of the pause, like 30m or 2h [default: until resumed].
        #[arg(long = "for", value_name = "TIME", value_parser = gleaner_schemas::interval::parse)]
        length: Option<Duration>,
    },
    /// End the pause of lending.
    Resume,
    /// Limit the lent memory; leases above the limit are revoked, the oldest first.
    Cap {
        /// Maximum lent memory, like 4GiB, or `none`.
        #[arg(value_name = "SIZE", value_parser = cap)]
        size: Cap,
    },
    /// Print the state of lending.
    Status,
    /// List when memory was returned, why, how much and how fast.
    Log,
}

/// Limit of lent memory; `None`: no limit.
#[derive(Clone, Copy)]
pub(crate) struct Cap(pub(crate) Option<u64>);

fn cap(text: &str) -> Result<Cap, String> {
    if text == "none" {
        return Ok(Cap(None));
    }
    let wrong = || format!("`{text}` is no size: write 4GiB, 512MiB, or none");
    units::parse_bytes(text)
        .map(|bytes| Cap(Some(bytes)))
        .ok_or_else(wrong)
}
