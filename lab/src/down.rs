//! `gleaner lab down`: removes a lab completely, whatever state it is in.

use super::args::Down;
use super::error::{LabError, Result};
use super::network;
use super::process::{self, Process};
use super::state::{self, State};

pub(super) fn run(args: &Down) -> Result<String> {
    super::refuse_without_root("down")?;
    let state = State::find(args.folder.as_deref())?;
    let folder = state.as_ref().map(|state| state.folder.clone());
    let removed = remove(state, args.keep)?;
    Ok(match folder {
        _ if !removed => "there is no lab\n".to_owned(),
        Some(folder) if args.keep => {
            format!("the lab is down; its data is in {}\n", folder.display())
        }
        _ => "the lab is down, and nothing of it is left\n".to_owned(),
    })
}

/// Ends the lab's processes, then removes its namespaces and files. Returns true if there was anything to remove.
///
/// A process belongs to the lab if the state lists it. It also belongs to the lab if it runs one of our
/// programs in one of the lab's namespaces: if `up` was killed, it may have started a process without listing
/// it. Other processes in the namespaces are not touched.
pub(super) fn remove(state: Option<State>, keep: bool) -> Result<bool> {
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
        return Err(LabError::Stuck { pid: process.pid });
    }
    let foreign: Vec<String> = inside().map(|pid| pid.to_string()).collect();
    if !foreign.is_empty() {
        return Err(LabError::Foreign {
            pids: foreign.join(", "),
        });
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
