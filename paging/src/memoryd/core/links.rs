//! Messages between the core and the links to recruiters: links pass requests on, the core answers and announces.

use gleaner_policy::lending::Settings;
use gleaner_schemas::lending::{Announcement, Answer, Request, RevocationCount};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{mpsc, watch};

/// Message from any other thread to the core.
#[derive(Debug)]
pub(crate) enum CoreMessage {
    /// A request of a recruiter. The core sends exactly one answer, to that link's [`LinkEnd::answers`].
    Request {
        /// Number of the link ([`LinkEnd::link`]).
        link: usize,
        /// Request as received.
        request: Request,
    },
    /// A link went up or down.
    Linked {
        /// Number of the link ([`LinkEnd::link`]).
        link: usize,
        /// True if the link is up.
        is_up: bool,
    },
    /// Clients' certificates were checked again with the lists in force.
    Revocations {
        /// Summary of the lists; absent: there is none.
        held: Option<RevocationCount>,
        /// Leases that a revoked certificate has opened.
        lease_ids: Vec<String>,
    },
    /// The configuration has changed. The core answers with its status once the settings are in force.
    Configured {
        /// Settings of lending.
        settings: Box<Settings>,
        /// Receiver of the result.
        done: Sender<String>,
    },
    /// Memory use, measured for the owner's command on `connection`.
    Looked {
        /// Connection of the owner's command.
        connection: u64,
        /// Memory use that was found.
        memory: crate::itself::Memory,
    },
}

/// Sends messages to the core, and wakes it.
#[derive(Clone, Debug)]
pub(crate) struct Inbox {
    sender: Sender<CoreMessage>,
    wake: Arc<OwnedFd>,
}

impl Inbox {
    /// Sends a message; returns false if the core has ended.
    pub(crate) fn tell(&self, told: CoreMessage) -> bool {
        let is_heard = self.sender.send(told).is_ok();
        // If the counter is full, the core was woken already.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        is_heard
    }
}

/// A link's connections to the core. The link runs in other threads, and may end and restart at any time.
#[derive(Debug)]
pub(crate) struct LinkEnd {
    /// Number of the link: its place among the configured recruiters.
    pub(crate) link: usize,
    /// Inbox of the core, for requests and the link's state.
    pub(crate) core: Inbox,
    /// Announcement to send on connecting and at every change. The core renews it at intervals.
    pub(crate) announcements: watch::Receiver<Arc<Announcement>>,
    /// Answers, in the order of the requests. The link drops answers to requests of an earlier connection.
    pub(crate) answers: mpsc::UnboundedReceiver<Answer>,
}

/// The core's side of all links.
#[derive(Debug)]
pub(crate) struct Links {
    told: Receiver<CoreMessage>,
    inbox: Inbox,
    answers: Vec<mpsc::UnboundedSender<Answer>>,
    announced: watch::Sender<Arc<Announcement>>,
    names: Vec<String>,
    up: BTreeSet<usize>,
}

impl Links {
    /// Makes one link for each recruiter in `names`.
    ///
    /// # Errors
    /// The kernel gives no event descriptor.
    pub(crate) fn new(names: &[String]) -> io::Result<(Self, Vec<LinkEnd>)> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (sender, told) = channel();
        let inbox = Inbox {
            sender,
            wake: Arc::new(wake),
        };
        let (announced, announcements) = watch::channel(Arc::default());
        let (mut answers, mut ends) = (Vec::new(), Vec::new());
        for link in 0..names.len() {
            let (to_link, from_core) = mpsc::unbounded_channel();
            answers.push(to_link);
            ends.push(LinkEnd {
                link,
                core: inbox.clone(),
                announcements: announcements.clone(),
                answers: from_core,
            });
        }
        let links = Self {
            told,
            inbox,
            answers,
            announced,
            names: names.to_vec(),
            up: BTreeSet::new(),
        };
        Ok((links, ends))
    }

    /// Inbox for other threads that send the core messages.
    pub(crate) fn inbox(&self) -> Inbox {
        self.inbox.clone()
    }

    /// Descriptor that wakes the core.
    pub(crate) fn wait_on(&self) -> BorrowedFd<'_> {
        self.inbox.wake.as_fd()
    }

    /// Returns all messages since the last call.
    pub(crate) fn take_messages(&self) -> Vec<CoreMessage> {
        // The counter is reset first, so that a message in between wakes the core again.
        let _ = rustix::io::read(&self.inbox.wake, &mut [0; 8]);
        self.told.try_iter().collect()
    }

    /// Returns the next message.
    #[cfg(test)]
    pub(crate) fn take_message(&self) -> Option<CoreMessage> {
        self.told.try_recv().ok()
    }

    /// Records that a link is up or down. Returns whether any link is up, or `None` if that has not changed.
    pub(crate) fn set_up(&mut self, link: usize, is_up: bool) -> Option<bool> {
        let before = !self.up.is_empty();
        if is_up {
            self.up.insert(link);
        } else {
            self.up.remove(&link);
        }
        let after = !self.up.is_empty();
        (before != after).then_some(after)
    }

    /// Names of linked recruiters.
    pub(crate) fn linked(&self) -> Vec<String> {
        let names = self.up.iter().filter_map(|link| self.names.get(*link));
        names.cloned().collect()
    }

    /// Answers one request of `link`.
    pub(crate) fn answer(&self, link: usize, answer: Answer) {
        if let Some(to_link) = self.answers.get(link) {
            // The link's thread may have ended: then nobody needs the answer.
            let _ = to_link.send(answer);
        }
    }

    /// Passes an announcement to every link.
    pub(crate) fn announce(&self, announcement: Announcement) {
        self.announced.send_replace(Arc::new(announcement));
    }
}
