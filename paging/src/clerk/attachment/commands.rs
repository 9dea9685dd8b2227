//! Commands that attach, detach and list devices, with their output as text and as JSON.

use super::attach;
use super::detach::{self, DetachOptions};
use super::failure::AttachError;
use super::folder;
use super::record::{MethodRecord, Record};
use super::swap;
use crate::args::AttachArgs;
use gleaner_schemas::units::{Bytes, Seconds};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// An attachment, as printed.
#[derive(Debug, Serialize)]
struct AttachmentReport {
    name: String,
    device: Option<PathBuf>,
    size_bytes: u64,
    /// Swapped-out bytes; `None` if the device is not used as swap.
    swap_used_bytes: Option<u64>,
    swap_priority: Option<i32>,
    attached_time_ms: u64,
    method: Option<&'static str>,
    socket: PathBuf,
    /// Names of recorded processes that have ended.
    missing_processes: Vec<String>,
    notes: Vec<String>,
}

impl AttachmentReport {
    fn of(record: Record) -> Result<Self, AttachError> {
        let area = record.device.as_deref().map(swap::on_device);
        let area = area.transpose()?.flatten();
        let processes = record.processes.iter();
        let missing = processes.filter(|process| !process.is_alive());
        Ok(Self {
            swap_used_bytes: area.as_ref().map(|area| area.used_bytes),
            swap_priority: area.map(|area| area.priority),
            method: record.method.map(|method| match method {
                MethodRecord::Kernel => "kernel",
                MethodRecord::Fuse { .. } => "fuse",
            }),
            missing_processes: missing
                .map(|p| format!("{} ({})", p.program, p.pid))
                .collect(),
            name: record.name,
            device: record.device,
            size_bytes: record.size_bytes,
            attached_time_ms: record.attached_time_ms,
            socket: record.socket,
            notes: record.notes,
        })
    }

    fn print(&self) {
        let Some(device) = &self.device else {
            println!("{}: not whole; detach it", self.name);
            return;
        };
        let since = UNIX_EPOCH + std::time::Duration::from_millis(self.attached_time_ms);
        let age = SystemTime::now().duration_since(since).unwrap_or_default();
        let swap = match (self.swap_used_bytes, self.swap_priority) {
            (Some(used), Some(priority)) => {
                let used = Bytes::from(used);
                format!(", {used} of it used by swap (priority {priority})")
            }
            _ => String::new(),
        };
        println!(
            "{}: {}, {}{swap}, by {} of {}, for {}",
            self.name,
            device.display(),
            Bytes::from(self.size_bytes),
            self.method.unwrap_or_default(),
            self.socket.display(),
            Seconds(age.as_secs_f64().floor()),
        );
        for process in &self.missing_processes {
            println!("  {process} has ended, and its pages are lost: detach it");
        }
    }
}

/// Result of detaching, as printed.
#[derive(Debug, Serialize)]
struct DetachReport {
    name: String,
    was_server_unreachable: bool,
    lost_bytes: u64,
}

/// Attaches a device, and prints it.
pub(crate) fn attach(runtime: &Path, wanted: &AttachArgs, as_json: bool) -> Result<(), Failure> {
    let told = AttachmentReport::of(attach::attach(runtime, wanted)?)?;
    for note in &told.notes {
        eprintln!("gleaner-clerk: {note}");
    }
    if as_json {
        return json(&told);
    }
    told.print();
    Ok(())
}

/// Detaches a device, and prints the result.
pub(crate) fn detach(
    runtime: &Path,
    name: Option<&str>,
    how: DetachOptions,
    as_json: bool,
) -> Result<(), Failure> {
    let (name, released) = detach::detach(runtime, name, how)?;
    if as_json {
        return json(&DetachReport {
            name,
            was_server_unreachable: released.was_server_unreachable,
            lost_bytes: released.lost_bytes,
        });
    }
    println!("{name}: detached");
    if released.was_server_unreachable {
        let lost = Bytes::from(released.lost_bytes);
        println!("  its server was unreachable: up to {lost} of what was swapped out is lost");
    }
    Ok(())
}

/// Prints the attachments.
pub(crate) fn attachments(runtime: &Path, as_json: bool) -> Result<(), Failure> {
    let mut all = Vec::new();
    for name in folder::names(runtime)? {
        // The device may have been detached since its name was listed.
        if let Some(record) = folder::read(runtime, &name)? {
            all.push(AttachmentReport::of(record)?);
        }
    }
    if as_json {
        return json(&all);
    }
    all.iter().for_each(AttachmentReport::print);
    if all.is_empty() {
        println!("nothing is attached");
    }
    Ok(())
}

/// Reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Error while acting.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// Error while reporting.
    #[error("standard output: {0}")]
    Output(#[from] serde_json::Error),
}

fn json<T: Serialize>(told: &T) -> Result<(), Failure> {
    println!("{}", serde_json::to_string_pretty(told)?);
    Ok(())
}
