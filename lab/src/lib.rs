//! `gleaner lab`: a collector, a recruiter and hosts on this machine, as real daemons in network namespaces.
//!
//! ```text
//! gleaner-lab-1 ─ eth0 ──┐                     ┌── eth0 ─ gleaner-lab-collector
//! gleaner-lab-2 ─ eth0 ──┼── br0, gleaner-lab ─┘          gleaner-collector run
//! gleaner-lab-3 ─ eth0 ──┘   (a namespace too)  │        gleaner-recruiter run
//!   gleaner-agent run, gleaner-agent ship,      └── eth0 ─ gleaner-lab-clerk, if asked for
//!   gleaner-memoryd run                                    gleaner-clerk run
//!   gleaner-commons run, if asked for
//! ```
//!
//! The machine's own network is not touched: every interface, address, queue and rule is in a namespace of
//! the lab, and disappears with it. The lab's namespaces are recognized by their names. A file in the lab's
//! folder (`lab.json`) records each process, with its start time, before the next is started. `down` can
//! therefore remove everything, even after a crash.
//!
//! Rooms, from the top; each uses only those after it: `up`, `status`, `down`, `clerk`, `commons`, `daemons`,
//! `recruiter`, `collector`, `args`, `state`, `process`, `link`, `network`, `address`, `error`.

mod address;
mod args;
mod clerk;
mod collector;
mod commons;
mod daemons;
mod down;
mod error;
mod link;
mod network;
mod process;
mod recruiter;
mod state;
mod status;
mod up;

pub use args::Lab;
use args::LabCommand;
pub use error::LabError;
use error::Result;

/// Runs the command in `args`. Returns the text to print on standard output.
///
/// # Errors
/// [`LabError`].
pub fn run(args: &Lab) -> std::result::Result<String, LabError> {
    match &args.command {
        LabCommand::Up(args) => up::run(args),
        LabCommand::Status(args) => status::run(args),
        LabCommand::Down(args) => down::run(args),
    }
}

fn refuse_without_root(command: &'static str) -> Result<()> {
    match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err(LabError::NeedsRoot { command }),
    }
}
