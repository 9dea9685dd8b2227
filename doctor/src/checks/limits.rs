//! Resource limits that the kernel sets for a running daemon.

use crate::finding::Finding;
use crate::message::Message;
use crate::process::{IPC_LOCK, Process, SYS_NICE};

/// Number of file descriptors that a server needs for other things than connections: files, listening
/// sockets, the journal.
const OWN_FILES_COUNT: u64 = 64;

/// Judges whether a server may open enough file descriptors for its connections. `restore`: command for
/// changing the limits in its unit, if it has a unit.
pub(crate) fn judge_server(
    process: &Process,
    connections_limit: u64,
    restore: Option<&str>,
) -> Finding {
    let needed = connections_limit.saturating_add(OWN_FILES_COUNT);
    match process.files_limit {
        Some(Some(limit)) if limit < needed => {
            let found = format!(
                "{limit} open files at most, for {connections_limit} connections: {needed} are needed"
            );
            let by_hand = format!(
                "sudo prlimit --pid {} --nofile={needed}:{needed}",
                process.pid
            );
            Finding::of(Message::FewDescriptors, "limits", found)
                .remedy(restore.unwrap_or(&by_hand))
        }
        Some(limit) => {
            let limit = limit.map_or_else(|| "any number of".to_owned(), |limit| limit.to_string());
            Finding::ok(
                "limits",
                format!("{limit} open files, for {connections_limit} connections"),
            )
        }
        None => Finding::ok(
            "limits",
            format!("process {} does not show its limits", process.pid),
        ),
    }
}

/// Judges whether the memory server may lock memory and raise its CPU priority. `grant`: command that permits
/// both.
pub(crate) fn judge_memoryd(process: &Process, grant: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_unlimited = process.locked_limit_bytes == Some(None);
    if process.may(IPC_LOCK) == Some(false) && !is_unlimited {
        let found = "it may not lock its memory: swapped out, it returns memory late";
        findings.push(Finding::of(Message::MemoryNotLocked, "limits", found).remedy(grant));
    }
    let has_priority = process.priority_limit.is_some_and(|limit| limit != Some(0));
    if process.may(SYS_NICE) == Some(false) && !has_priority {
        let found = "it has no real-time priority: on a busy host it returns memory late";
        findings.push(Finding::of(Message::NoPriority, "limits", found).remedy(grant));
    }
    if findings.is_empty() {
        findings.push(Finding::ok(
            "limits",
            "it may lock its memory, and go before others on the CPU",
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_servers_need_the_one_or_the_other() {
        let judged = |capabilities, locked: Option<u64>, priority: Option<u64>| {
            let process = Process {
                capabilities: Some(capabilities),
                locked_limit_bytes: Some(locked),
                priority_limit: Some(priority),
                ..Process::default()
            };
            let findings = judge_memoryd(&process, "grant");
            findings
                .into_iter()
                .filter_map(|f| f.message)
                .collect::<Vec<_>>()
        };
        let both = 1 << IPC_LOCK | 1 << SYS_NICE;
        assert_eq!(judged(both, Some(0), Some(0)), []);
        assert_eq!(judged(0, None, Some(1)), []);
        assert_eq!(
            judged(0, Some(8 << 20), Some(0)),
            [Message::MemoryNotLocked, Message::NoPriority]
        );
    }

    #[test]
    fn servers_need_a_descriptor_a_connection() {
        let judged = |files_limit, restore| {
            let process = Process {
                pid: 7,
                files_limit,
                ..Process::default()
            };
            judge_server(&process, 20_000, restore)
        };
        assert_eq!(judged(Some(Some(20_064)), None).message, None);
        assert_eq!(judged(Some(None), None).message, None);
        assert_eq!(judged(None, None).message, None);
        let few = judged(Some(Some(20_063)), None);
        assert_eq!(few.message, Some(Message::FewDescriptors));
        assert_eq!(
            few.remedy.as_deref(),
            Some("sudo prlimit --pid 7 --nofile=20064:20064")
        );
        assert_eq!(
            judged(Some(Some(1024)), Some("restore")).remedy.as_deref(),
            Some("restore")
        );
    }
}
