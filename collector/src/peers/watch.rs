//! Watches one peer: asks for its state at an interval, and notes whether it answers.

use super::CollectorIdentity;
use super::member::{Group, GroupMember};
use crate::{Error, now_ms};
use gleaner_trust::http::{HttpClient, Limits};
use gleaner_trust::{Address, ClientTrust};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;
use ureq::Agent;

const PROGRAM: &str = "gleaner-collector";
/// Pause between requests for a peer's state.
const INTERVAL: Duration = Duration::from_secs(5);
/// Time limit of a request. A collector of 25,000 hosts needs well below a second.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum size of an answer, which has some 1 KB per collector.
const ANSWER_BYTES: u64 = 16 << 20;

/// Another collector of the dataset.
#[derive(Debug)]
pub(super) struct WatchedPeer {
    address: Address,
    state: Mutex<PeerState>,
}

/// State of a peer by the last requests.
#[derive(Debug, Default)]
struct PeerState {
    member: GroupMember,
    /// True if the address is that of this collector itself.
    is_self: bool,
    /// Client with the present certificates; absent until the peer has answered, and while it does not answer.
    client: Option<Agent>,
}

/// The part of the answer to `GET /v1/mark` that is used here.
#[derive(Debug, Deserialize)]
struct PeerMark {
    acknowledged_sequence: Option<i64>,
}

/// Starts the thread that watches the collector at `address`, until the other end of `ended` is dropped.
///
/// # Errors
/// [`Error::Trust`] if TLS cannot use the certificate; [`Error::Io`] if the thread cannot be started.
pub(super) fn start(
    own: CollectorIdentity,
    address: Address,
    trust: Option<Arc<ClientTrust>>,
    ended: mpsc::Receiver<()>,
) -> Result<Arc<WatchedPeer>, Error> {
    let limits = Limits {
        whole: Some(PATIENCE),
        ..Limits::default()
    };
    let mut client = HttpClient::new(PROGRAM, trust, limits)?;
    let member = GroupMember {
        url: Some(address.to_string()),
        ..GroupMember::default()
    };
    let peer = Arc::new(WatchedPeer {
        address,
        state: Mutex::new(PeerState {
            member,
            ..PeerState::default()
        }),
    });
    let watched = Arc::clone(&peer);
    let watch = move || {
        loop {
            if let Err(error) = client.follow_files() {
                eprintln!("{PROGRAM}: continues with its present certificate for peers: {error}");
            }
            let answer = watched.ask::<Group>(client.agent(), "/v1/collectors");
            watched.note(&own, answer, client.agent());
            if ended.recv_timeout(INTERVAL) != Err(mpsc::RecvTimeoutError::Timeout) {
                return;
            }
        }
    };
    thread::Builder::new()
        .name("peer".to_owned())
        .spawn(watch)
        .map_err(Error::io("start a thread for", "watching peers"))?;
    Ok(peer)
}

impl WatchedPeer {
    /// State of the peer; `None` if the address is that of this collector itself.
    pub(super) fn member(&self) -> Option<GroupMember> {
        let state = self.lock();
        (!state.is_self).then(|| state.member.clone())
    }

    /// Highest sequence number of a host's database that is durable at the peer; `None` if the peer has no record of
    /// it, or does not answer.
    pub(super) fn mark(&self, host_id: &str, database_id: &str) -> Option<i64> {
        let client = self.lock().client.clone()?;
        let path = format!("/v1/mark?host={host_id}&database={database_id}&own=true");
        let answer = self.ask::<PeerMark>(&client, &path);
        answer.ok()?.acknowledged_sequence
    }

    /// Requests a document. An error is the reason why there is none.
    fn ask<T: DeserializeOwned>(&self, client: &Agent, path: &str) -> Result<T, String> {
        let response = client.get(self.address.url(path)).call();
        let mut response = response.map_err(|e| e.to_string())?;
        let body = response.body_mut().with_config().limit(ANSWER_BYTES);
        let body = body.read_to_string().map_err(|e| e.to_string())?;
        if response.status() != 200 {
            return Err(format!("{}: {}", response.status(), body.trim()));
        }
        serde_json::from_str(&body).map_err(|e| format!("its answer cannot be read ({e})"))
    }

    /// Notes an answer or a failure, and logs a new failure and the end of a failure.
    fn note(&self, own: &CollectorIdentity, answer: Result<Group, String>, client: &Agent) {
        let now_ms = now_ms();
        let answer = answer.and_then(|group| {
            let first = group.collectors.into_iter().next();
            let overview = first.and_then(|member| member.overview);
            overview.ok_or_else(|| "its answer has no collector".to_owned())
        });
        let mut state = self.lock();
        let failure = match answer {
            Ok(overview) => {
                let found = CollectorIdentity {
                    name: overview.name.clone(),
                    started_time_ms: overview.started_time_ms,
                };
                state.is_self = found == *own;
                let is_namesake = !state.is_self && found.name == own.name;
                state.member.answered_time_ms = Some(now_ms);
                state.member.overview = Some(overview);
                is_namesake.then(|| match &own.name {
                    Some(name) => {
                        format!("it has this collector's name, {name}: give each its own")
                    }
                    None => {
                        "neither it nor this collector has a name: set name here or there".into()
                    }
                })
            }
            Err(reason) => Some(reason),
        };
        let is_asked = failure.is_none() && !state.is_self;
        state.client = is_asked.then(|| client.clone());
        let address = &self.address;
        let was_failing = state.member.failure.is_some();
        match &failure {
            Some(reason) if !was_failing => {
                eprintln!("{PROGRAM}: the collector at {address} does not answer: {reason}");
                state.member.failing_since_time_ms = Some(now_ms);
            }
            None if was_failing => {
                eprintln!("{PROGRAM}: the collector at {address} answers again");
                state.member.failing_since_time_ms = None;
            }
            _ => {}
        }
        state.member.failure = failure;
    }

    fn lock(&self) -> MutexGuard<'_, PeerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
