//! The owner's commands: permissions and effects.

use super::control::{Peer, ReceivedCommand};
use super::{Core, PendingCommand, SlowCommand};
use crate::clock;
use crate::itself::Memory;
use crate::wishes::{Cap, OwnerWishes, Pause};
use gleaner_policy::lending::Event;
use gleaner_schemas::lending::{
    HostQuota, LendingState, OwnerCommand, OwnerReply, ReclaimRecord, Refusal, RefusalKind,
};
use std::time::Instant;

impl Core {
    /// Executes a command of the owner, and answers when the command is done.
    pub(super) fn owner(&mut self, asked: ReceivedCommand, woke: Instant) {
        let ReceivedCommand {
            connection,
            peer,
            command,
        } = asked;
        let now_ms = clock::wall_ms();
        let is_privileged = peer.is_privileged(self.control.group());
        let done = match command {
            Err(why) => Err(refusal(
                RefusalKind::Malformed,
                format!("not understood: {why}"),
            )),
            Ok(OwnerCommand::Log) if !is_privileged => Err(refusal(
                RefusalKind::NotYours,
                "the log shows when the owner was present: only root and the group of the daemon's socket may read it"
                    .to_owned(),
            )),
            Ok(OwnerCommand::Log) => {
                let reclaims = self.log.lines();
                return self
                    .control
                    .reply(connection, &OwnerReply::Log { reclaims });
            }
            Ok(OwnerCommand::Status) => Ok(None),
            Ok(OwnerCommand::Pause { duration_ms }) => {
                let pause = paused(self.wishes.pause, duration_ms, &peer, is_privileged, now_ms);
                let until_ms = pause.until_time_ms.map(clock::on_boot_clock);
                let reclaimed = self.step(Event::Pause { until_ms }, woke);
                self.keep(OwnerWishes {
                    pause: Some(pause),
                    ..self.wishes.clone()
                });
                Ok(reclaimed)
            }
            Ok(OwnerCommand::Resume) => {
                match self.wishes.pause.filter(|pause| is_on(*pause, now_ms)) {
                    Some(pause) if !is_privileged && pause.by_uid != peer.uid => {
                        Err(not_yours("paused", pause.by_uid))
                    }
                    _ => {
                        self.keep(OwnerWishes {
                            pause: None,
                            ..self.wishes.clone()
                        });
                        Ok(self.step(Event::Resume, woke))
                    }
                }
            }
            Ok(OwnerCommand::Cap { bytes }) => match self.wishes.cap {
                Some(cap)
                    if !is_privileged
                        && cap.by_uid != peer.uid
                        && bytes.is_none_or(|bytes| bytes > cap.bytes) =>
                {
                    Err(not_yours("capped", cap.by_uid))
                }
                _ => {
                    let reclaimed = self.step(Event::Cap(bytes), woke);
                    let by_uid = peer.uid;
                    let cap = bytes.map(|bytes| Cap { bytes, by_uid });
                    self.keep(OwnerWishes {
                        cap,
                        ..self.wishes.clone()
                    });
                    Ok(reclaimed)
                }
            },
        };
        match done {
            Ok(reclaimed) => {
                // Measuring memory takes a while: another thread does it.
                let asked = PendingCommand {
                    reclaimed,
                    is_privileged,
                };
                self.unanswered.insert(connection, asked);
                let is_new = std::mem::take(&mut self.has_new_wishes);
                let wishes = is_new.then(|| self.wishes.clone());
                if self.looks.send(SlowCommand { connection, wishes }).is_err() {
                    self.answer_owner(connection, Memory::default());
                }
            }
            Err(refusal) => self
                .control
                .reply(connection, &OwnerReply::Refused(refusal)),
        }
    }

    fn keep(&mut self, wishes: OwnerWishes) {
        if wishes != self.wishes {
            self.wishes = wishes;
            self.has_new_wishes = true;
        }
    }

    /// Returns the state of lending. A user without privileges sees only sums: no lease, no client, and
    /// nothing about the owner's presence.
    pub(super) fn lending(&self, memory: Memory, asked: PendingCommand) -> LendingState {
        let time_ms = clock::wall_ms();
        let pause = self.wishes.pause.filter(|pause| is_on(*pause, time_ms));
        let (quota, leases) = match asked.is_privileged {
            true => (self.quota(), self.lender.leases(clock::boot_ms())),
            false => (without_times(self.quota()), Vec::new()),
        };
        LendingState {
            time_ms,
            quota,
            leases,
            are_leases_hidden: !asked.is_privileged,
            resident_bytes: memory.resident_bytes,
            huge_page_bytes: memory.huge_page_bytes,
            is_locked: self.store.is_locked(),
            daemon_bytes: memory.daemon_bytes,
            is_paused: pause.is_some(),
            paused_until_time_ms: pause.and_then(|pause| pause.until_time_ms),
            cap_bytes: self.wishes.cap.map(|cap| cap.bytes),
            is_agent_connected: self.agent.stream().is_some(),
            linked_recruiters: self.links.linked(),
            revocations: self.revocations,
            pages: self.serves_pages.then(|| self.served.told()),
            reclaimed: asked.reclaimed.map(|reclaimed| match asked.is_privileged {
                true => reclaimed,
                false => without_clients(reclaimed),
            }),
        }
    }
}

/// Removes from a quota the times that show when the owner was present.
fn without_times(quota: HostQuota) -> HostQuota {
    HostQuota {
        idle_for_ms: None,
        idle_in_ms: None,
        low_water_bytes: None,
        outlook: Vec::new(),
        ..quota
    }
}

fn without_clients(reclaimed: ReclaimRecord) -> ReclaimRecord {
    ReclaimRecord {
        clients: Vec::new(),
        lent_since_time_ms: reclaimed.time_ms,
        ..reclaimed
    }
}

fn is_on(pause: Pause, now_ms: i64) -> bool {
    pause.until_time_ms.is_none_or(|until| until > now_ms)
}

/// Returns the pause that results from a request of `peer`. A user who may not end the present pause can only
/// extend it.
fn paused(
    before: Option<Pause>,
    duration_ms: Option<i64>,
    peer: &Peer,
    is_privileged: bool,
    now_ms: i64,
) -> Pause {
    let wanted = Pause {
        until_time_ms: duration_ms.map(|length| now_ms.saturating_add(length.max(0))),
        by_uid: peer.uid,
    };
    let end = |pause: &Pause| pause.until_time_ms.unwrap_or(i64::MAX);
    match before.filter(|pause| is_on(*pause, now_ms)) {
        Some(before)
            if !is_privileged && before.by_uid != peer.uid && end(&before) >= end(&wanted) =>
        {
            before
        }
        _ => wanted,
    }
}

fn not_yours(done: &str, by_uid: u32) -> Refusal {
    let detail = format!(
        "user {by_uid} has {done} lending: that user can undo it, root, and the group of the daemon's socket"
    );
    refusal(RefusalKind::NotYours, detail)
}

fn refusal(kind: RefusalKind, detail: String) -> Refusal {
    Refusal {
        kind,
        detail,
        retry_in_ms: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_can_only_make_a_pause_longer() {
        let peer = |uid| Peer {
            uid,
            groups: vec![],
        };
        let pause = |until_time_ms, by_uid| Pause {
            until_time_ms,
            by_uid,
        };
        let on = Some(pause(Some(1000), 7));
        for (before, duration_ms, uid, is_privileged, after) in [
            (None, Some(10), 8, false, pause(Some(110), 8)),
            (on, Some(10), 8, false, pause(Some(1000), 7)),
            (on, Some(2000), 8, false, pause(Some(2100), 8)),
            (on, None, 8, false, pause(None, 8)),
            (on, Some(10), 7, false, pause(Some(110), 7)),
            (on, Some(10), 8, true, pause(Some(110), 8)),
            (Some(pause(None, 7)), None, 8, false, pause(None, 7)),
            // The present pause has ended already.
            (
                Some(pause(Some(100), 7)),
                Some(10),
                8,
                false,
                pause(Some(110), 8),
            ),
            (None, Some(-5), 8, false, pause(Some(100), 8)),
        ] {
            let found = paused(before, duration_ms, &peer(uid), is_privileged, 100);
            assert_eq!(
                found, after,
                "{before:?} {duration_ms:?} {uid} {is_privileged}"
            );
        }
    }
}
