//! The links with the recruiters: one WebSocket (RFC 6455) to each, on a thread of their own.
//!
//! Announcements go out at once on connecting, whenever there is another one, and else at an interval; requests go to the
//! core as events, its answers back the way that they came. A recruiter that is slow, gone or mad costs the core nothing:
//! every queue is bounded, and nothing here is waited for.

mod address;
mod announced;
mod backoff;
mod connect;
mod failure;
mod keep;
#[cfg(test)]
mod tests;

pub(crate) use address::Address;
pub(crate) use failure::LinkError;

use announced::Announced;
use gleaner_policy::lending::Event;
use gleaner_schemas::lending::{Announcement, Answer};
use gleaner_trust::{ClientTrust, Peer};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// A recruiter's requests that wait for their answers; more are refused.
const REQUESTS_AT_ONCE: usize = 64;
/// After the end was told, a recruiter that does not take it is not waited for.
const FAREWELL: Duration = Duration::from_millis(500);

/// To whom, and as whom.
pub(crate) struct Settings {
    /// Of this host: 32 lower-case hex digits.
    pub(crate) host_id: String,
    /// All are linked with at once.
    pub(crate) recruiters: Vec<Address>,
    /// For those with `https://`.
    pub(crate) trust: Option<Arc<ClientTrust>>,
    /// Time between two announcements when nothing happens.
    pub(crate) announce_every: Duration,
}

/// Who this host is: as its certificate says, else by its machine id; `None` where it has neither.
pub(crate) fn host_id(trust: Option<&ClientTrust>) -> Option<String> {
    let credentials = trust.map(ClientTrust::credentials);
    let peer = credentials.and_then(|c| Peer::of(c.certificates().first()?).ok());
    match peer {
        Some(Peer::Host(host_id)) => Some(host_id),
        _ => gleaner_trust::this_host_id(),
    }
}

/// What takes in events: [`Event::Request`] and [`Event::Linked`]. False: it cannot, now. Must not wait.
pub(crate) type Deliver = Box<dyn Fn(Event) -> bool + Send + Sync>;

/// The links; their end ends them.
pub(crate) struct Links {
    announced: watch::Sender<Option<Announced>>,
    answers: Vec<mpsc::Sender<(usize, Answer)>>,
    state: Arc<State>,
    recruiters: Vec<String>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Which recruiters can be reached.
struct State {
    linked: Vec<AtomicBool>,
    /// Whether any could, as the core was told; held while it is told, so that it hears the last word last.
    told: Mutex<bool>,
    deliver: Deliver,
}

impl Links {
    /// Connects, and goes on trying.
    ///
    /// # Errors
    /// [`LinkError::Start`] where there is no thread to be had; [`LinkError::Certificate`] where one is needed.
    pub(crate) fn start(settings: Settings, deliver: Deliver) -> Result<Self, LinkError> {
        let secret = settings.recruiters.iter().find(|to| to.is_secret());
        if let (Some(to), None) = (secret, &settings.trust) {
            return Err(LinkError::Certificate(to.to_string()));
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(LinkError::Start)?;
        let (announced, _) = watch::channel(None);
        let state = Arc::new(State {
            linked: settings
                .recruiters
                .iter()
                .map(|_| AtomicBool::new(false))
                .collect(),
            told: Mutex::new(false),
            deliver,
        });
        let recruiters = settings
            .recruiters
            .iter()
            .map(ToString::to_string)
            .collect();
        let (mut answers, mut links) = (Vec::new(), Vec::new());
        for (slot, address) in settings.recruiters.iter().enumerate() {
            let (sender, receiver) = mpsc::channel(REQUESTS_AT_ONCE);
            answers.push(sender);
            links.push(keep::Link {
                slot,
                slots: settings.recruiters.len(),
                address: address.clone(),
                host_id: settings.host_id.clone(),
                trust: settings.trust.clone(),
                announce_every: settings.announce_every,
                announced: announced.subscribe(),
                answers: receiver,
                state: state.clone(),
            });
        }
        let thread = std::thread::Builder::new()
            .name("link".to_owned())
            .spawn(move || {
                runtime.block_on(futures_util::future::join_all(
                    links.into_iter().map(keep::Link::keep),
                ));
            });
        Ok(Self {
            announced,
            answers,
            state,
            recruiters,
            thread: Some(thread.map_err(LinkError::Start)?),
        })
    }

    /// Tells every recruiter, as soon as it can be told; of several in a row the last.
    pub(crate) fn announce(&self, announcement: Announcement) {
        self.announced
            .send_replace(Some(Announced::now(announcement)));
    }

    /// Answers a request that came by [`Event::Request`] from this link; one whose connection is gone gets no answer.
    pub(crate) fn answer(&self, link: usize, answer: Answer) {
        let slot = link.checked_rem(self.answers.len());
        if let Some(answers) = slot.and_then(|slot| self.answers.get(slot)) {
            // Never full: no more requests than fit are let through.
            let _ = answers.try_send((link, answer));
        }
    }

    /// Recruiters that are linked with now.
    pub(crate) fn linked(&self) -> Vec<String> {
        let named = self.recruiters.iter().zip(&self.state.linked);
        named
            .filter(|(_, linked)| linked.load(Ordering::Relaxed))
            .map(|(name, _)| name.clone())
            .collect()
    }
}

impl Drop for Links {
    /// Says goodbye: what was announced last goes out first.
    fn drop(&mut self) {
        self.announced = watch::channel(None).0;
        self.answers.clear();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl State {
    /// Tells the core when the first recruiter is reached, and when the last is lost.
    fn set_linked(&self, slot: usize, is_linked: bool) {
        let Ok(mut told) = self.told.lock() else {
            return; // another link's thread panicked, and with it all links
        };
        self.linked[slot].store(is_linked, Ordering::Relaxed);
        let any = self
            .linked
            .iter()
            .any(|linked| linked.load(Ordering::Relaxed));
        if *told != any && (self.deliver)(Event::Linked(any)) {
            *told = any;
        }
    }

    /// Once more what the core could not take in.
    fn tell_again(&self, slot: usize) {
        self.set_linked(slot, self.linked[slot].load(Ordering::Relaxed));
    }
}
