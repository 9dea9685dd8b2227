//! A working memory server: an honest recruiter is linked, and an honest client has pages on the server.

use super::MOST_GROWN_BYTES;
use crate::host::{Agent, Daemon, Host, MIB};
use crate::load::Load;
use crate::recruiter::{HOST_ID, Link, Recruiter, grant};
use gleaner_harness::{PATIENCE, peak_bytes, wait_for, wait_for_some};
use gleaner_paging::nbd::client::Server;
use gleaner_paging::nbd::export_name;
use gleaner_schemas::lending::{Announcement, HostMessage, Lease, Outcome, RequestKind};
use gleaner_schemas::live::OwnerState;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_tungstenite::tungstenite::{Error, Message};

/// Maximum of lent memory in these tests.
pub(super) const CAP: u64 = 128 * MIB;
/// Size of the honest client's lease.
const LEASE_BYTES: u64 = 16 * MIB;
const PAGES: usize = (LEASE_BYTES / 4096) as usize;
/// Interval at which the honest recruiter answers pings and takes requests from the test.
const TURN: Duration = Duration::from_millis(5);
const ALIVE_EVERY: Duration = Duration::from_millis(400);
/// Maximum time of one request for pages on a busy machine.
const NO_HANG: Duration = Duration::from_secs(30);

struct StageRequest {
    asked: RequestKind,
    answer: Sender<Outcome>,
}

/// Announcements that the honest recruiter received.
#[derive(Clone, Default)]
pub(super) struct HeardAnnouncements {
    pub(super) latest: Announcement,
    /// Largest quota of all announcements.
    pub(super) most_quota_bytes: u64,
}

/// A recruiter that stays linked; it runs in its own thread.
pub(super) struct HonestRecruiter {
    pub(super) url: String,
    asks: Sender<StageRequest>,
    heard: Arc<Mutex<HeardAnnouncements>>,
}

impl HonestRecruiter {
    pub(super) fn start() -> Self {
        let recruiter = Recruiter::new();
        let url = recruiter.url.clone();
        let (asks, asked) = channel();
        let heard = Arc::<Mutex<HeardAnnouncements>>::default();
        let shared = heard.clone();
        std::thread::spawn(move || {
            loop {
                let goes_on = match recruiter.try_link() {
                    Some(mut link) => keep(&mut link, &asked, &shared),
                    None => {
                        std::thread::sleep(TURN);
                        // There is no link: the caller must repeat the request.
                        !matches!(asked.try_recv(), Err(TryRecvError::Disconnected))
                    }
                };
                if !goes_on {
                    break;
                }
            }
        });
        Self { url, asks, heard }
    }

    pub(super) fn heard(&self) -> HeardAnnouncements {
        self.heard.lock().unwrap().clone()
    }

    /// Sends a request and returns the outcome. The request is repeated if the link ends meanwhile.
    #[track_caller]
    pub(super) fn ask(&self, asked: &RequestKind) -> Outcome {
        wait_for_some("an answer to the honest recruiter", || {
            let (answer, outcome) = channel();
            let ask = StageRequest {
                asked: asked.clone(),
                answer,
            };
            self.asks.send(ask).unwrap();
            outcome.recv_timeout(PATIENCE).ok()
        })
    }

    /// Requests a lease for `client` until there is room for it.
    #[track_caller]
    pub(super) fn lease(&self, client: &str, key: &str, bytes: u64) -> Lease {
        wait_for_some("a lease", || match self.ask(&grant(client, key, bytes)) {
            Outcome::Granted { lease } => Some(lease),
            _ => None,
        })
    }
}

/// Exchanges messages with the memory server. Returns true when the link ends, and false when the test sends
/// no more requests.
fn keep(
    link: &mut Link,
    asked: &Receiver<StageRequest>,
    heard: &Mutex<HeardAnnouncements>,
) -> bool {
    link.socket.get_ref().set_read_timeout(Some(TURN)).unwrap();
    let mut waiting = BTreeMap::new();
    loop {
        match asked.try_recv() {
            Ok(ask) => match link.try_send(ask.asked) {
                Some(id) => drop(waiting.insert(id, ask.answer)),
                None => return true,
            },
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return false,
        }
        let text = match link.socket.read() {
            Ok(Message::Text(text)) => text,
            Ok(_) => continue,
            Err(Error::Io(e)) if crate::host::is_early(&e) => continue,
            Err(_) => return true,
        };
        match serde_json::from_str(&text).unwrap() {
            HostMessage::Announcement(latest) => {
                let mut heard = heard.lock().unwrap();
                heard.most_quota_bytes = heard.most_quota_bytes.max(latest.quota.quota_bytes);
                heard.latest = *latest;
            }
            HostMessage::Answer(answer) => {
                if let Some(asker) = waiting.remove(&answer.request_id) {
                    let _ = asker.send(answer.outcome); // the asker may have timed out
                }
            }
            HostMessage::Other => {}
        }
    }
}

/// A memory server with an agent, an honest recruiter and its client.
pub(super) struct Stage {
    pub(super) daemon: Daemon,
    pub(super) honest: HonestRecruiter,
    pub(super) agent: Arc<Mutex<Agent>>,
    lease: Lease,
    load: Load,
    peak_bytes: u64,
    _host: Host,
}

impl Stage {
    /// Starts a stage with the recruiters `others` in addition to the honest one.
    pub(super) fn start(others: &[String]) -> Self {
        Self::announcing(others, "1s")
    }

    /// Starts a stage whose memory server announces at intervals of `every` if nothing happens.
    pub(super) fn announcing(others: &[String], every: &str) -> Self {
        let host = Host::new();
        let honest = HonestRecruiter::start();
        let mut urls = vec![honest.url.clone()];
        urls.extend_from_slice(others);
        host.write_configuration(&format!(
            "cap = \"{CAP}B\"\nhost_id = \"{HOST_ID}\"\nrecruiters = {urls:?}\nannounce_every = \"{every}\"\n\
             rise_after = \"0s\"\npressure_pause = \"0s\"\nlock_pages = \"never\"\nhuge_pages = false\nlisten = \"127.0.0.1:0\"\n"
        ));
        let daemon = host.daemon_with(&[]);
        let mut agent = host.agent();
        agent.sample();
        agent.owner(OwnerState::Idle, None);
        let agent = Arc::new(Mutex::new(agent));
        let alive = Arc::downgrade(&agent);
        std::thread::spawn(move || {
            while let Some(agent) = alive.upgrade() {
                if !agent.lock().unwrap().try_alive() {
                    break;
                }
                drop(agent);
                std::thread::sleep(ALIVE_EVERY);
            }
        });
        let lease = honest.lease("neighbour", "pages", LEASE_BYTES);
        let export = export_name(&lease.lease_id, lease.generation);
        let at = Server::Tcp(honest.heard().latest.address.unwrap());
        let mut load = Load::new((&at, &export), (0, PAGES), 1, NO_HANG);
        load.write_all();
        let peak_bytes = peak_bytes(daemon.pid());
        Self {
            daemon,
            honest,
            agent,
            lease,
            load,
            peak_bytes,
            _host: host,
        }
    }

    /// Checks that the honest recruiter, its client and the owner are served, and that pages have the right
    /// contents.
    #[track_caller]
    pub(super) fn is_served(&mut self) {
        for _ in 0..4 {
            self.load.step();
        }
        let renewal = RequestKind::Renew {
            client: Some("neighbour".to_owned()),
            lease_id: self.lease.lease_id.clone(),
            term_ms: 3_600_000,
        };
        let renewed = self.honest.ask(&renewal);
        assert!(matches!(renewed, Outcome::Renewed { .. }), "{renewed:?}");
        let leases = self.daemon.status().leases;
        let is_there = leases.iter().any(|l| l.lease_id == self.lease.lease_id);
        assert!(is_there, "the honest client's lease is gone");
    }

    /// Checks that the memory server's memory grew by at most `most_bytes` since the start.
    #[track_caller]
    pub(super) fn stays_within(&self, most_bytes: u64) {
        let grown = peak_bytes(self.daemon.pid()).saturating_sub(self.peak_bytes);
        println!("{grown} bytes more, {:?}", self.load.outcome);
        assert!(grown < most_bytes, "{grown} bytes more");
    }

    /// Checks that the memory server's memory grew little, that no page was lost, and that the owner gets
    /// everything back.
    #[track_caller]
    pub(super) fn stands(mut self) {
        self.is_served();
        self.stays_within(MOST_GROWN_BYTES);
        self.load.check_all();
        let outcome = self.load.outcome;
        assert_eq!(outcome.errors, 0, "{outcome:?}");
        self.agent
            .lock()
            .unwrap()
            .owner(OwnerState::InUse, Some("input"));
        wait_for("the owner's memory", || {
            let lending = self.daemon.status();
            let is_back = lending.leases.is_empty() && lending.resident_bytes == 0;
            is_back && lending.quota.quota_bytes == 0
        });
        let last = self.daemon.log().pop().unwrap();
        assert_eq!(
            (last.cause.as_str(), last.remaining_lent_bytes),
            ("owner", 0)
        );
    }
}
