//! States of the other members, as this host's requests found them.

use super::client::PeerFault;
use super::found_share::FoundShare;
use crate::directory::{Member, Membership};
use gleaner_policy::global::NodeId;
use gleaner_policy::refraction::Refraction;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Time for which a member that is gone or answered wrongly is not asked, in ms.
const AVOID_MS: i64 = 60_000;
/// Number of requests in a row without an answer in time after which a member counts as gone. One slow answer
/// may be chance.
const MOST_TIMEOUTS: u32 = 3;

/// State of another member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PeerStatus {
    /// Id of the host.
    pub host_id: String,
    /// Host name or address, and port.
    pub address: String,
    /// True if the member is asked for blocks now.
    pub is_asked: bool,
    /// True if evicted blocks may be sent to the member now.
    pub is_target: bool,
    /// Requests of blocks that the member should have held, and did not.
    pub not_found_count: u64,
    /// Last fault; absent while the member answers.
    pub fault: Option<String>,
    /// Requests that the member answered.
    pub answers_count: u64,
    /// Requests without an answer.
    pub failures_count: u64,
    /// Answers, and blocks that the member sent, with a wrong content.
    pub wrong_count: u64,
}

impl PeerState {
    fn new(member: &Member) -> Self {
        Self {
            avoided: Refraction::new(AVOID_MS),
            timeouts_in_a_row: 0,
            found: FoundShare::default(),
            has_wrong_line: false,
            status: PeerStatus {
                host_id: member.host_id.clone(),
                address: member.address.clone(),
                ..PeerStatus::default()
            },
        }
    }
}

/// States of all other members.
pub(super) struct PeerStates {
    states: Mutex<HashMap<NodeId, PeerState>>,
    begin: Instant,
}

struct PeerState {
    avoided: Refraction,
    timeouts_in_a_row: u32,
    found: FoundShare,
    /// True once a wrong answer was logged.
    has_wrong_line: bool,
    status: PeerStatus,
}

impl PeerStates {
    pub(super) fn new(membership: &Membership) -> Self {
        let states = Self {
            states: Mutex::default(),
            begin: Instant::now(),
        };
        states.follow(membership);
        states
    }

    /// Takes over a list of members. Members that stay keep their states.
    pub(super) fn follow(&self, membership: &Membership) {
        let mut states = self.lock();
        let mut before = std::mem::take(&mut *states);
        let others = membership.list().iter();
        for member in others.filter(|member| member.node != membership.own()) {
            let known = before.remove(&member.node);
            let known = known.filter(|known| known.status.host_id == member.host_id);
            let mut state = known.unwrap_or_else(|| PeerState::new(member));
            state.status.address.clone_from(&member.address);
            states.insert(member.node, state);
        }
    }

    /// Notes whether a member had a block that the directory named it as a holder of.
    pub(super) fn looked_up(&self, node: NodeId, is_found: bool) {
        let now_ms = self.now_ms();
        let mut states = self.lock();
        let Some(state) = states.get_mut(&node) else {
            return;
        };
        state.status.not_found_count += u64::from(!is_found);
        if state.found.note(is_found, now_ms) {
            let line = format!(
                "{} lacks half of the blocks that it should hold; it gets no blocks for a minute",
                name(&state.status)
            );
            drop(states);
            log(&line);
        }
    }

    /// Returns true if evicted blocks may be sent to the member now.
    pub(super) fn is_target(&self, node: NodeId) -> bool {
        let now_ms = self.now_ms();
        let states = self.lock();
        let state = states.get(&node);
        state.is_some_and(|s| s.avoided.may_ask(now_ms) && s.found.is_target(now_ms))
    }

    /// Returns true if the member may be asked now; false for this host itself.
    pub(super) fn may_ask(&self, node: NodeId) -> bool {
        let now_ms = self.now_ms();
        let states = self.lock();
        let state = states.get(&node);
        state.is_some_and(|state| state.avoided.may_ask(now_ms))
    }

    /// Notes that the member answered.
    pub(super) fn answered(&self, node: NodeId) {
        let mut states = self.lock();
        let Some(state) = states.get_mut(&node) else {
            return;
        };
        state.status.answers_count += 1;
        state.timeouts_in_a_row = 0;
        if state.status.fault.take().is_some() {
            let line = format!("{} answers again", name(&state.status));
            drop(states);
            log(&line);
        }
    }

    /// Notes a failed request, and logs it unless that was done before.
    pub(super) fn failed(&self, node: NodeId, fault: &PeerFault) {
        let now_ms = self.now_ms();
        let mut states = self.lock();
        let Some(state) = states.get_mut(&node) else {
            return;
        };
        let is_avoided = match fault {
            PeerFault::TimedOut => {
                state.timeouts_in_a_row += 1;
                state.timeouts_in_a_row >= MOST_TIMEOUTS
            }
            _ => true,
        };
        let is_wrong = matches!(fault, PeerFault::Wrong(_));
        if is_wrong {
            state.status.wrong_count += 1;
        } else {
            state.status.failures_count += 1;
        }
        if !is_avoided {
            return;
        }
        state.avoided.refused(now_ms);
        state.timeouts_in_a_row = 0;
        let was_failing = state.status.fault.replace(fault.to_string()).is_some();
        let was_logged = if is_wrong {
            std::mem::replace(&mut state.has_wrong_line, true)
        } else {
            was_failing
        };
        let line = format!(
            "{} {fault}; it is not asked for a minute",
            name(&state.status)
        );
        drop(states);
        if !was_logged {
            log(&line);
        }
    }

    /// States by address.
    pub(super) fn snapshot(&self) -> Vec<PeerStatus> {
        let now_ms = self.now_ms();
        let states = self.lock();
        let status = |state: &PeerState| PeerStatus {
            is_asked: state.avoided.may_ask(now_ms),
            is_target: state.avoided.may_ask(now_ms) && state.found.is_target(now_ms),
            ..state.status.clone()
        };
        let mut all: Vec<PeerStatus> = states.values().map(status).collect();
        drop(states);
        all.sort_unstable_by(|a, b| (&a.address, &a.host_id).cmp(&(&b.address, &b.host_id)));
        all
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<NodeId, PeerState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> i64 {
        i64::try_from(self.begin.elapsed().as_millis()).unwrap_or(i64::MAX)
    }
}

fn name(status: &PeerStatus) -> String {
    format!("host {} at {}", status.host_id, status.address)
}

fn log(line: &str) {
    eprintln!("gleaner-commons: {line}");
}
