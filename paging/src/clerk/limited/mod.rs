//! `gleaner-clerk run --local SIZE -- PROGRAM`: runs a program with little local memory, the remainder in swap.
//!
//! The program runs in a control group of its own, which this process, the supervisor, keeps at its limit. On
//! control groups of version 1 a plain limit is not enough: the kernel kills programs there although swap has
//! room ([`decision`]). On version 2 the limit is `memory.high`, at which the kernel kills no program.

mod areas;
mod child;
mod decision;
mod failure;
mod group;
mod keep;
mod parent;
mod remover;
mod report;
mod signals;

pub(crate) use remover::run as remove_group;

use crate::args::{Means, ProgramArgs};
use crate::attachment::group::door;
use crate::attachment::process::lock_memory;
use failure::LimitError;
use gleaner_daemon::causes::told;
use group::Group;
use remover::Remover;
use report::{Begin, Report};
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};
use signals::Signals;
use std::fs;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

/// Runs the program with `local_bytes` of memory; returns its exit code, or one of env(1)'s if it did not run.
pub(crate) fn run(wanted: &ProgramArgs, local_bytes: u64, runtime: &Path) -> ExitCode {
    let Means::Swap = wanted.by.unwrap_or(Means::Swap);
    match supervise(wanted, local_bytes, runtime) {
        Ok(report) => {
            tell(&report, wanted);
            ExitCode::from(report.exit_code())
        }
        Err(error) => {
            eprintln!("gleaner-clerk: {}", told(&error));
            ExitCode::from(error.exit_code())
        }
    }
}

fn supervise(wanted: &ProgramArgs, local_bytes: u64, runtime: &Path) -> Result<Report, LimitError> {
    if let Some(advice) = areas::check(runtime)? {
        eprintln!("gleaner-clerk: {advice}");
    }
    if geteuid().is_root() {
        // A supervisor that is swapped out would react late. Other users may lock too little to rely on it.
        lock_memory();
    }
    let group = Group::make(&parent::parent(wanted.cgroup.as_deref())?, local_bytes)?;
    // Removes the group when this function returns, also by an error.
    let _remover = Remover::start(&group)?;
    let signals = Signals::collect()?;
    let begin = Begin::now();
    let mut child = child::start(&wanted.program, &door(group.path())?)?;
    let handle = || pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
    let failed = |e: rustix::io::Errno| LimitError::Supervise(e.into());
    let program = handle().map_err(failed)?;
    signals.forward(handle().map_err(failed)?);
    let kept = keep::keep(&group, &program, local_bytes)?;
    let status = child.wait().map_err(LimitError::Supervise)?;
    Ok(Report::of(
        child::name(&wanted.program),
        child::exit_code(status),
        local_bytes,
        begin,
        &group,
        &kept,
    ))
}

/// Prints the report if it was requested, or if somebody may read it; writes it as JSON to the requested file.
fn tell(report: &Report, wanted: &ProgramArgs) {
    if wanted.report || std::io::stderr().is_terminal() {
        eprintln!("{}", report.text());
    }
    if let Some(path) = &wanted.json {
        let text = serde_json::to_string_pretty(report).unwrap_or_default();
        if let Err(e) = fs::write(path, text + "\n") {
            eprintln!("gleaner-clerk: {}: {e}", path.display());
        }
    }
}
