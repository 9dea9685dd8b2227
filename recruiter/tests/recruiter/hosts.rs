//! Hosts for the tests: a memory server's side of the link. They lend memory that they do not have.

use futures_util::{SinkExt, StreamExt};
use gleaner_schemas::lending::{
    Announcement, Answer, GrantRequest, HostMessage, HostQuota, Lease, Outcome, QuotaReason,
    RecruiterMessage, Refusal, RefusalKind, RequestKind, SLAB_BYTES, VERSION,
};
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::Message;

/// Interval between a host's announcements.
const ANNOUNCE: Duration = Duration::from_millis(100);

/// Behaviour of a host when it receives a request for a lease.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Manner {
    Grants,
    Refuses(Refusal),
    Silent,
    /// The host grants leases, but its answers are lost.
    GrantsInSilence,
}

pub(crate) struct State {
    pub(crate) quota: HostQuota,
    pub(crate) incarnation: String,
    pub(crate) leases: BTreeMap<String, Lease>,
    pub(crate) manner: Manner,
    pub(crate) asked: Vec<RequestKind>,
    /// Reasons for which the recruiter has rejected the host.
    pub(crate) sent_away: Vec<Refusal>,
    /// True for memory servers of this release; older ones do not know
    /// the message with revocation lists.
    pub(crate) accepts_revocation_lists: bool,
    /// Revocation lists that the host has received.
    pub(crate) revocations: Vec<String>,
    /// Unix socket that the host announces for its own leases.
    pub(crate) pages_socket: Option<String>,
    last_lease: u64,
}

impl State {
    fn announcement(&self) -> HostMessage {
        let held: u64 = self.leases.values().map(|l| l.remaining_bytes).sum();
        HostMessage::Announcement(Box::new(Announcement {
            version: VERSION,
            memoryd_version: "test".into(),
            incarnation: self.incarnation.clone(),
            quota: HostQuota {
                lent_bytes: held,
                unleased_bytes: self.quota.quota_bytes.saturating_sub(held),
                ..self.quota.clone()
            },
            address: Some("127.0.0.1:1".into()),
            pages_socket: self.pages_socket.clone(),
            requests_per_s: 0.0,
            leases: self.leases.values().cloned().collect(),
            accepts_revocation_lists: self.accepts_revocation_lists,
        }))
    }

    fn answer(&mut self, asked: &RequestKind) -> Option<Outcome> {
        self.asked.push(asked.clone());
        match &self.manner {
            Manner::Silent => return None,
            Manner::Refuses(refusal) => return Some(Outcome::Refused(refusal.clone())),
            Manner::Grants | Manner::GrantsInSilence => {}
        }
        let unknown = Outcome::Refused(Refusal {
            kind: RefusalKind::UnknownLease,
            detail: "there is no such lease".into(),
            retry_in_ms: None,
        });
        Some(match asked {
            RequestKind::Grant(request) => {
                let GrantRequest {
                    client,
                    key,
                    bytes,
                    term_ms,
                } = request;
                let same = |l: &&Lease| l.client == *client && l.key == *key;
                if let Some(lease) = self.leases.values().find(same) {
                    return Some(Outcome::Granted {
                        lease: lease.clone(),
                    });
                }
                self.last_lease += 1;
                let number = self.last_lease;
                let bytes = bytes.next_multiple_of(SLAB_BYTES);
                let id: String = self.quota.host_id.chars().take(16).collect();
                let lease = Lease {
                    lease_id: format!("{id}{number:016x}"),
                    generation: 1,
                    client: client.clone(),
                    key: key.clone(),
                    granted_bytes: bytes,
                    remaining_bytes: bytes,
                    expires_in_ms: *term_ms,
                };
                self.leases.insert(lease.lease_id.clone(), lease.clone());
                Outcome::Granted { lease }
            }
            RequestKind::Renew {
                lease_id, term_ms, ..
            } => match self.leases.get_mut(lease_id) {
                Some(lease) => {
                    lease.expires_in_ms = *term_ms;
                    Outcome::Renewed {
                        lease: lease.clone(),
                    }
                }
                None => unknown,
            },
            RequestKind::Release { lease_id, .. } => {
                self.leases.remove(lease_id);
                Outcome::Released {
                    lease_id: lease_id.clone(),
                }
            }
        })
    }
}

/// A host with its links; dropping the host closes them.
pub(crate) struct Host {
    pub(crate) id: String,
    state: Arc<Mutex<State>>,
    links: Vec<Link>,
}

struct Link {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Makes a host's id.
pub(crate) fn id(number: u32) -> String {
    format!("{number:08x}{:024x}", 0)
}

impl Host {
    /// Makes an idle host with this quota. The host is not linked yet.
    pub(crate) fn new(number: u32, quota_bytes: u64) -> Self {
        let id = id(number);
        let quota = HostQuota {
            host_id: id.clone(),
            quota_bytes,
            idle_quota_bytes: quota_bytes,
            physical_bytes: quota_bytes * 2,
            reason: QuotaReason::Idle,
            idle_for_ms: Some(600_000),
            ..HostQuota::default()
        };
        let state = State {
            quota,
            incarnation: format!("of {number}"),
            leases: BTreeMap::new(),
            manner: Manner::Grants,
            asked: Vec::new(),
            sent_away: Vec::new(),
            accepts_revocation_lists: false,
            revocations: Vec::new(),
            pages_socket: None,
            last_lease: 0,
        };
        Self {
            id,
            state: Arc::new(Mutex::new(state)),
            links: Vec::new(),
        }
    }

    /// Links the host with a recruiter, such as `http://127.0.0.1:80`, and links it again whenever the link
    /// breaks.
    pub(crate) fn link(mut self, url: &str) -> Self {
        self.link_with(url, None);
        self
    }

    pub(crate) fn link_with(&mut self, url: &str, tls: Option<Arc<rustls::ClientConfig>>) {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, state) = (Arc::clone(&stop), Arc::clone(&self.state));
        let address = url.rsplit('/').next().unwrap().to_owned();
        let path = format!("/v1/hosts/{}/link", self.id);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            while !stopped.load(Ordering::Relaxed) {
                let talk = talk(&address, &path, tls.clone(), &state, &stopped);
                let _ = runtime.block_on(talk);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let thread = Some(thread);
        self.links.push(Link { stop, thread });
    }

    /// Closes the host's links.
    pub(crate) fn leave(&mut self) {
        self.links.clear();
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn manner(self, manner: Manner) -> Self {
        self.state().manner = manner;
        self
    }

    pub(crate) fn leases_count(&self) -> usize {
        self.state().leases.len()
    }
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

type BoxError = Box<dyn std::error::Error>;

/// Serves one connection until it ends.
async fn talk(
    address: &str,
    path: &str,
    tls: Option<Arc<rustls::ClientConfig>>,
    state: &Mutex<State>,
    stop: &AtomicBool,
) -> Result<(), BoxError> {
    let stream = TcpStream::connect(address)?;
    stream.set_nonblocking(true)?;
    let stream = tokio::net::TcpStream::from_std(stream)?;
    let stream: Box<dyn Stream> = match tls {
        None => Box::new(stream),
        Some(config) => {
            let name = rustls::pki_types::ServerName::try_from("localhost")?;
            let connector = tokio_rustls::TlsConnector::from(config);
            Box::new(connector.connect(name, stream).await?)
        }
    };
    let url = format!("ws://localhost{path}");
    let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await?;
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    let mut told: Option<std::time::Instant> = None;
    let mut last = String::new();
    loop {
        let heard = tokio::select! {
            heard = socket.next() => Some(heard),
            _ = ticks.tick() => None,
        };
        match heard {
            None if stop.load(Ordering::Relaxed) => {
                socket.close(None).await?;
                return Ok(());
            }
            None => {
                // Announces itself as a memory server does: at each interval, and on every change.
                let text = serde_json::to_string(&state.lock().unwrap().announcement())?;
                if text != last || told.is_none_or(|told| told.elapsed() >= ANNOUNCE) {
                    socket.send(Message::text(text.clone())).await?;
                    (told, last) = (Some(std::time::Instant::now()), text);
                }
            }
            Some(None) => return Ok(()),
            Some(Some(message)) => {
                let Message::Text(text) = message? else {
                    continue;
                };
                match serde_json::from_str(&text)? {
                    RecruiterMessage::Request(request) => {
                        let answer = {
                            let mut state = state.lock().unwrap();
                            let outcome = state.answer(&request.asked);
                            let is_lost = state.manner == Manner::GrantsInSilence;
                            let outcome = outcome.filter(|_| !is_lost);
                            let held: u64 = state.leases.values().map(|l| l.remaining_bytes).sum();
                            outcome.map(|outcome| Answer {
                                request_id: request.request_id,
                                outcome,
                                unleased_bytes: state.quota.quota_bytes.saturating_sub(held),
                                requests_per_s: 0.0,
                            })
                        };
                        if let Some(answer) = answer {
                            let answer = HostMessage::Answer(Box::new(answer));
                            let text = serde_json::to_string(&answer)?;
                            socket.send(Message::text(text)).await?;
                        }
                    }
                    RecruiterMessage::Refused(refusal) => {
                        state.lock().unwrap().sent_away.push(refusal)
                    }
                    RecruiterMessage::Revocations(lists) => {
                        state.lock().unwrap().revocations.push(lists.pem);
                    }
                    RecruiterMessage::Other => {}
                }
            }
        }
    }
}
