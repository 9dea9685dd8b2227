//! A client that wants one lease, with one key, and repeats its request until it is answered.

use super::{SLAB, TERM_MS};
use crate::lending::Event;
use gleaner_schemas::lending::{GrantRequest, Lease, Request, RequestKind};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Client {
    wants_slabs: u64,
    /// Remaining numbers of requests for a lease, renewals and releases.
    left: [u8; 3],
    /// Lease that the client believes it has: id and generation.
    pub(super) lease: Option<(String, u64)>,
}

/// A request in transit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Message {
    pub(super) client: usize,
    pub(super) link: usize,
    pub(super) what: RequestContent,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum RequestContent {
    Grant(u64),
    Renew(String),
    Release(String),
}

pub(super) fn client_name(client: usize) -> String {
    ["anna", "ben"][client].into()
}

impl Client {
    pub(super) fn new(wants_slabs: u64, left: [u8; 3]) -> Self {
        Self {
            wants_slabs,
            left,
            lease: None,
        }
    }

    pub(super) fn may_ask(&self) -> bool {
        self.lease.is_none() && self.left[0] > 0
    }

    pub(super) fn may_renew(&self) -> bool {
        self.lease.is_some() && self.left[1] > 0
    }

    pub(super) fn may_release(&self) -> bool {
        self.lease.is_some() && self.left[2] > 0
    }

    /// Messages alternate between the two recruiters.
    fn message(&self, client: usize, what: RequestContent) -> Message {
        let link = self.left.iter().map(|n| usize::from(*n)).sum::<usize>() % 2;
        Message { client, link, what }
    }

    pub(super) fn ask(&mut self, client: usize) -> Message {
        self.left[0] -= 1;
        self.message(client, RequestContent::Grant(self.wants_slabs))
    }

    pub(super) fn renew(&mut self, client: usize) -> Option<Message> {
        self.left[1] -= 1;
        let (lease_id, _) = self.lease.clone()?;
        Some(self.message(client, RequestContent::Renew(lease_id)))
    }

    /// The client stops using the lease, and may request another.
    pub(super) fn release(&mut self, client: usize) -> Option<Message> {
        self.left[2] -= 1;
        let (lease_id, _) = self.lease.take()?;
        Some(self.message(client, RequestContent::Release(lease_id)))
    }

    /// The client believes every message, however old.
    pub(super) fn hear(&mut self, lease: &Lease) {
        self.lease = Some((lease.lease_id.clone(), lease.generation));
    }
}

impl Message {
    /// Id of a request, which contains the client and the link.
    pub(super) fn request_id(&self) -> u64 {
        (self.link * 2 + self.client) as u64
    }

    pub(super) fn event(&self, fresh_id: &str) -> Event {
        let client = client_name(self.client);
        let asked = match &self.what {
            RequestContent::Grant(slabs) => RequestKind::Grant(GrantRequest {
                client,
                key: "k".into(),
                bytes: slabs * SLAB,
                term_ms: TERM_MS,
            }),
            RequestContent::Renew(lease_id) => RequestKind::Renew {
                client: Some(client),
                lease_id: lease_id.clone(),
                term_ms: TERM_MS,
            },
            RequestContent::Release(lease_id) => RequestKind::Release {
                client: Some(client),
                lease_id: lease_id.clone(),
            },
        };
        Event::Request {
            link: self.link,
            request: Request {
                request_id: self.request_id(),
                asked,
            },
            fresh_id: fresh_id.into(),
        }
    }
}
