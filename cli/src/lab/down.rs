//! `gleaner lab down`: removes all of a lab, whatever state it is in.

use super::args::Down;
use super::network;
use super::process::{self, Process};
use super::state::{self, State};
use anyhow::bail;

pub(super) fn run(args: &Down) -> anyhow::Result<()> {
    super::refuse_without_root("down")?;
    let state = State::find(args.folder.as_deref())?;
    let folder = state.as_ref().map(|state| state.folder.clone());
    let removed = remove(state, args.keep)?;
    match folder {
        _ if !removed => println!("there is no lab"),
        Some(folder) if args.keep => {
            println!("the lab is down; its data is in {}", folder.display())
        }
        _ => println!("the lab is down, and nothing of it is left"),
    }
    Ok(())
}

/// Ends what the lab started, then removes its namespaces and files; whether there was anything.
///
/// A process is the lab's if it was written down, or if it is one of our programs in one of the lab's namespaces: a
/// lab that was killed may have started one more. Others in there are somebody's, and left alone.
pub(super) fn remove(state: Option<State>, keep: bool) -> anyhow::Result<bool> {
    let namespaces = network::namespaces();
    let anything = state.is_some() || !namespaces.is_empty() || !network::machine_ids().is_empty();
    let written = state.iter().flat_map(|state| &state.started);
    let mut processes: Vec<Process> = written.map(|started| started.process.clone()).collect();
    let inside = || {
        namespaces
            .iter()
            .flat_map(|namespace| network::processes_in(namespace))
    };
    processes.extend(
        inside()
            .filter(|pid| process::is_ours(*pid))
            .filter_map(Process::find),
    );
    let left = process::end(&processes);
    if let Some(process) = left.first() {
        bail!(
            "process {} does not end; see what holds it, then run this again",
            process.pid
        );
    }
    let foreign: Vec<String> = inside().map(|pid| pid.to_string()).collect();
    if !foreign.is_empty() {
        bail!(
            "the lab's processes have ended, but others run in its namespaces: {}; end them, then run this again",
            foreign.join(", ")
        );
    }
    for namespace in &namespaces {
        network::remove_namespace(namespace)?;
    }
    network::remove_machine_ids()?;
    if let Some(state) = state {
        state.remove(keep)?;
    }
    state::none_is_up()?;
    Ok(anything)
}
