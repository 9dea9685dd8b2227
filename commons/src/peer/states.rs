//! States of the other members, as this host's requests found them.

use super::client::PeerFault;
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
    /// Last fault; absent while the member answers.
    pub fault: Option<String>,
    /// Requests that the member answered.
    pub answers_count: u64,
    /// Requests without an answer.
    pub failures_count: u64,
    /// Answers, and blocks that the member sent, with a wrong content.
    pub wrong_count: u64,
}

/// States of all other members.
pub(super) struct PeerStates {
    states: Mutex<HashMap<NodeId, PeerState>>,
    begin: Instant,
}

struct PeerState {
    avoided: Refraction,
    timeouts_in_a_row: u32,
    /// True once a wrong answer was logged.
    has_wrong_line: bool,
    status: PeerStatus,
}

impl PeerStates {
    pub(super) fn new(membership: &Membership) -> Self {
        let others = membership.list().iter();
        let others = others.filter(|member| member.node != membership.own());
        let state = |member: &Member| PeerState {
            avoided: Refraction::new(AVOID_MS),
            timeouts_in_a_row: 0,
            has_wrong_line: false,
            status: PeerStatus {
                host_id: member.host_id.clone(),
                address: member.address.clone(),
                ..PeerStatus::default()
            },
        };
        Self {
            states: Mutex::new(others.map(|member| (member.node, state(member))).collect()),
            begin: Instant::now(),
        }
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
