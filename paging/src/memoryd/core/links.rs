//! What the core and the links to recruiters tell each other: links ask, the core answers and announces.

use gleaner_policy::lending::Settings;
use gleaner_schemas::lending::{Announcement, Answer, Request, RevocationsHeld};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{mpsc, watch};

/// From any other thread to the core.
#[derive(Debug)]
pub(crate) enum Told {
    /// A recruiter asks; exactly one answer comes back on that link's [`LinkEnd::answers`].
    Request {
        /// [`LinkEnd::link`].
        link: usize,
        /// As it came.
        request: Request,
    },
    /// A link is up, or is not any more.
    Linked {
        /// [`LinkEnd::link`].
        link: usize,
        /// Up.
        is_up: bool,
    },
    /// Clients' certificates were checked again, by the lists in force.
    Revocations {
        /// Summary of the lists; absent: there is none.
        held: Option<RevocationsHeld>,
        /// Leases that a revoked certificate has opened.
        lease_ids: Vec<String>,
    },
    /// The administrator wants it otherwise; heard once it is so, by what the core says that it does now.
    Configured {
        /// How memory is lent.
        settings: Box<Settings>,
        /// Told then.
        done: Sender<String>,
    },
    /// Where memory is, looked up for the owner who asked `connection`.
    Looked {
        /// Of the owner's control.
        connection: u64,
        /// What was found.
        memory: crate::itself::Memory,
    },
}

/// Tells the core, and wakes it.
#[derive(Clone, Debug)]
pub(crate) struct Inbox {
    sender: Sender<Told>,
    wake: Arc<OwnedFd>,
}

impl Inbox {
    /// Whether the core is still there to hear it.
    pub(crate) fn tell(&self, told: Told) -> bool {
        let is_heard = self.sender.send(told).is_ok();
        // A counter that is full has woken it already.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        is_heard
    }
}

/// What one link needs of the core. The link runs in threads of its own, and may end and begin again at will.
#[derive(Debug)]
pub(crate) struct LinkEnd {
    /// Its number: its place in the configured recruiters.
    pub(crate) link: usize,
    /// Requests, and whether it is up.
    pub(crate) core: Inbox,
    /// What to announce: on connecting, and whenever it changes (the core renews it at an interval).
    pub(crate) announcements: watch::Receiver<Arc<Announcement>>,
    /// Answers, in the order of requests. Those to a connection that is gone are to be thrown away, by their ids.
    pub(crate) answers: mpsc::UnboundedReceiver<Answer>,
}

/// The core's side of all links.
#[derive(Debug)]
pub(crate) struct Links {
    told: Receiver<Told>,
    inbox: Inbox,
    answers: Vec<mpsc::UnboundedSender<Answer>>,
    announced: watch::Sender<Arc<Announcement>>,
    names: Vec<String>,
    up: BTreeSet<usize>,
}

impl Links {
    /// For recruiters of these names.
    ///
    /// # Errors
    /// When the kernel gives no event descriptor.
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

    /// For others that tell the core something.
    pub(crate) fn inbox(&self) -> Inbox {
        self.inbox.clone()
    }

    /// What wakes the core.
    pub(crate) fn wait_on(&self) -> BorrowedFd<'_> {
        self.inbox.wake.as_fd()
    }

    /// Everything told since.
    pub(crate) fn hear(&self) -> Vec<Told> {
        // Emptied first: what comes in between wakes again.
        let _ = rustix::io::read(&self.inbox.wake, &mut [0; 8]);
        self.told.try_iter().collect()
    }

    /// The next that was told.
    #[cfg(test)]
    pub(crate) fn hear_one(&self) -> Option<Told> {
        self.told.try_recv().ok()
    }

    /// Takes in that a link is up or down; whether any is up, where that has changed.
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

    /// Recruiters that are linked.
    pub(crate) fn linked(&self) -> Vec<String> {
        let names = self.up.iter().filter_map(|link| self.names.get(*link));
        names.cloned().collect()
    }

    /// Answers one request of `link`.
    pub(crate) fn answer(&self, link: usize, answer: Answer) {
        if let Some(to_link) = self.answers.get(link) {
            // A link that has ended for good asks no more.
            let _ = to_link.send(answer);
        }
    }

    /// Hands an announcement to every link.
    pub(crate) fn announce(&self, announcement: Announcement) {
        self.announced.send_replace(Arc::new(announcement));
    }
}
