//! Checks of the clerk: where its device stores pages, use as swap, attachments.

use crate::command::ask;
use crate::finding::Finding;
use crate::message::Message;
use crate::place::{Place, quoted};
use crate::process::{IPC_LOCK, Process, SYS_RESOURCE};
use gleaner_paging::device::run::DeviceStatus;
use gleaner_schemas::units::Bytes;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

/// Judges the status of the clerk's device.
pub(crate) fn judge(device: &DeviceStatus) -> Vec<Finding> {
    let up = device.up().count();
    let text = format!(
        "{} of {} in use, at {up} of {} servers{}",
        Bytes::from(device.stored_bytes),
        Bytes::from(device.size_bytes),
        device.servers.len(),
        if device.has_disk { " and on disk" } else { "" },
    );
    let mut findings = vec![match up {
        0 => Finding::of(Message::NoServer, "device", text),
        _ => Finding::ok("device", text),
    }];
    if device.counters.lost_pages_count > 0 {
        let lost = device.counters.lost_pages_count;
        let text = format!("{lost} pages are lost since its start");
        findings.push(Finding::of(Message::PagesLost, "device", text));
    }
    findings
}

/// Judges whether the running clerk may serve swap. `is_locked`: its configuration wants its memory locked.
/// `edit` and `grant` are the commands that configure and permit locking.
pub(crate) fn judge_process(
    process: &Process,
    is_locked: bool,
    edit: &str,
    grant: &str,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_unlimited = process.locked_limit_bytes == Some(None);
    if !is_locked {
        let found = "it is configured not to lock its memory";
        findings.push(Finding::of(Message::ClerkNotLocked, "limits", found).remedy(edit));
    } else if process.may(IPC_LOCK) == Some(false) && !is_unlimited {
        let found = "it may not lock its memory";
        findings.push(Finding::of(Message::ClerkNotLocked, "limits", found).remedy(grant));
    }
    if process.may(SYS_RESOURCE) == Some(false) {
        let found = "it may not tell the kernel that pages are written through it";
        findings.push(Finding::of(Message::NoIoFlusher, "limits", found).remedy(grant));
    }
    if findings.is_empty() {
        let found = "it may lock its memory, and be swapped through";
        findings.push(Finding::ok("limits", found));
    }
    findings
}

/// Ways in which this host can make a block device from an NBD server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AttachMethods {
    has_module: bool,
    has_client: bool,
    has_fuse: bool,
    has_losetup: bool,
}

/// Looks for the kernel modules and programs that each way needs.
pub(crate) fn methods(place: &Place) -> AttachMethods {
    let release = fs::read_to_string(place.proc_root.join("sys/kernel/osrelease"));
    let modules = Path::new("/lib/modules").join(release.unwrap_or_default().trim());
    let lists = ["modules.dep", "modules.builtin"].map(|name| modules.join(name));
    let is_listed = |list: &PathBuf| {
        let list = fs::read_to_string(list).unwrap_or_default();
        list.lines().any(|line| line.contains("/nbd.ko"))
    };
    AttachMethods {
        has_module: place.sys_root.join("module/nbd").exists() || lists.iter().any(is_listed),
        has_client: place.program("nbd-client").is_some(),
        has_fuse: Path::new("/dev/fuse").exists(),
        has_losetup: place.program("losetup").is_some(),
    }
}

/// Judges whether `gleaner-clerk attach` can make a block device.
pub(crate) fn judge_methods(methods: AttachMethods) -> Finding {
    let (by_kernel, by_fuse) = (
        methods.has_module && methods.has_client,
        methods.has_fuse && methods.has_losetup,
    );
    let missing = |text: &str, package: &str| {
        Finding::of(Message::NoWayToAttach, "attach", text)
            .remedy(super::program::install(package).to_owned())
    };
    match (by_kernel, by_fuse) {
        (true, _) => Finding::ok("attach", "by the kernel's nbd module"),
        (false, true) => Finding::ok("attach", "by FUSE and a loop device"),
        _ if methods.has_module => {
            missing("the kernel has nbd, nbd-client is missing", "nbd-client")
        }
        _ if methods.has_fuse => missing("no nbd module; FUSE, but no losetup", "mount"),
        _ => {
            let text = "this kernel has neither an nbd module nor FUSE";
            Finding::of(Message::NoWayToAttach, "attach", text)
        }
    }
}

/// An attachment in the output of `gleaner-clerk attachments`.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Attachment {
    name: String,
    device: Option<PathBuf>,
    swap_used_bytes: Option<u64>,
    socket: PathBuf,
    missing_processes: Vec<String>,
}

/// Runs the program `gleaner-clerk`; the list is empty if this user may not see the attachments.
pub(crate) fn attachments(program: &Path) -> Vec<Attachment> {
    let said = ask(program, &["attachments", "--json"]).ok();
    let said = said.filter(|said| said.code == Some(0));
    let list = said.and_then(|said| serde_json::from_str(&said.output).ok());
    list.unwrap_or_default()
}

/// Judges an attachment. `ours` is the clerk's socket, and `device` the status of its device if it answers.
/// `line` is the command line of the program.
pub(crate) fn judge_attachment(
    attachment: &Attachment,
    ours: &Path,
    device: Option<&DeviceStatus>,
    line: &str,
) -> Finding {
    let is_ours = attachment.socket == ours;
    let detach = format!("sudo {line} detach {}", attachment.name);
    let shown = match &attachment.device {
        Some(device) => format!("{} ({})", quoted(device), attachment.name),
        None => attachment.name.clone(),
    };
    if !attachment.missing_processes.is_empty() || (is_ours && device.is_none()) {
        let what = match attachment.missing_processes.first() {
            Some(process) => process.clone(),
            None => "its clerk".to_owned(),
        };
        let text = format!("{shown}: {what} is gone");
        return Finding::of(Message::AttachedLost, "attached", text).remedy(detach);
    }
    let Some(used_bytes) = attachment.swap_used_bytes else {
        return Finding::ok("attached", shown);
    };
    let text = format!("{shown}: swap, {} in use", Bytes::from(used_bytes));
    match device.filter(|device| is_ours && !device.has_disk) {
        Some(_) => Finding::of(Message::SwapUncopied, "attached", text).remedy(detach),
        None => Finding::ok("attached", text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_paging::device::DeviceCounters;
    use gleaner_paging::device::run::ServerStatus;

    fn device(state: &str) -> DeviceStatus {
        DeviceStatus {
            has_disk: true,
            servers: vec![ServerStatus {
                state: state.to_owned(),
                ..ServerStatus::default()
            }],
            ..DeviceStatus::default()
        }
    }

    #[test]
    fn a_device_needs_a_server_and_its_pages() {
        let judged = |device: &DeviceStatus| -> Vec<_> {
            let findings = judge(device).into_iter();
            findings.filter_map(|f| f.message).collect()
        };
        assert_eq!(judged(&device("up")), []);
        assert_eq!(judged(&device("draining")), [Message::NoServer]);
        let mut lossy = device("up");
        lossy.counters = DeviceCounters {
            lost_pages_count: 1,
            ..DeviceCounters::default()
        };
        assert_eq!(judged(&lossy), [Message::PagesLost]);
    }

    #[test]
    fn swap_needs_a_locked_clerk_that_the_kernel_knows() {
        let judged = |capabilities: u64, locked, is_locked| -> Vec<_> {
            let process = Process {
                capabilities: Some(capabilities),
                locked_limit_bytes: Some(locked),
                ..Process::default()
            };
            let findings = judge_process(&process, is_locked, "edit", "grant").into_iter();
            findings
                .filter_map(|f| Some((f.message?, f.remedy?)))
                .collect()
        };
        let of = |message, remedy: &str| (message, remedy.to_owned());
        assert_eq!(judged(1 << SYS_RESOURCE, None, true), []);
        assert_eq!(judged(1 << SYS_RESOURCE | 1 << IPC_LOCK, Some(0), true), []);
        assert_eq!(
            judged(0, Some(8 << 20), true),
            [
                of(Message::ClerkNotLocked, "grant"),
                of(Message::NoIoFlusher, "grant")
            ]
        );
        assert_eq!(
            judged(1 << SYS_RESOURCE, None, false),
            [of(Message::ClerkNotLocked, "edit")]
        );
    }

    #[test]
    fn either_way_to_a_block_device_will_do() {
        let judged = |bits: [bool; 4]| {
            let [has_module, has_client, has_fuse, has_losetup] = bits;
            let finding = judge_methods(AttachMethods {
                has_module,
                has_client,
                has_fuse,
                has_losetup,
            });
            (finding.message.is_none(), finding.remedy.is_some())
        };
        assert_eq!(judged([true, true, false, false]), (true, false));
        assert_eq!(judged([false, true, true, true]), (true, false));
        assert_eq!(judged([true, false, true, false]), (false, true));
        assert_eq!(judged([false, true, true, false]), (false, true));
        assert_eq!(judged([false, true, false, true]), (false, false));
    }

    #[test]
    fn what_is_attached_is_held_against_the_clerk() {
        let ours = Path::new("/run/gleaner/clerk.sock");
        let told = |text: &str| serde_json::from_str::<Attachment>(text).unwrap();
        let swap = told(
            r#"{"name":"memory","device":"/dev/nbd0","swap_used_bytes":4096,"socket":"/run/gleaner/clerk.sock","missing_processes":[],"notes":[]}"#,
        );
        let judged = |attachment: &Attachment, device: Option<&DeviceStatus>| {
            let finding = judge_attachment(attachment, ours, device, "gleaner-clerk");
            (finding.message, finding.remedy)
        };
        let detach = || Some("sudo gleaner-clerk detach memory".to_owned());
        assert_eq!(judged(&swap, Some(&device("up"))), (None, None));
        assert_eq!(judged(&swap, None), (Some(Message::AttachedLost), detach()));
        let mut bare = device("up");
        bare.has_disk = false;
        assert_eq!(
            judged(&swap, Some(&bare)),
            (Some(Message::SwapUncopied), detach())
        );
        let mut other = swap;
        other.socket = PathBuf::from("/x");
        assert_eq!(judged(&other, None), (None, None));
        other.missing_processes = vec!["export-file (7)".to_owned()];
        assert_eq!(
            judged(&other, Some(&device("up"))).0,
            Some(Message::AttachedLost)
        );
    }
}
