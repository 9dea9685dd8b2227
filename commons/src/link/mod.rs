//! Links with the recruiters: a WebSocket to each. The recruiters send the members and the epochs' weights; this
//! host sends its state, and the ages of its blocks. Without a recruiter the last members stay, and no blocks are
//! put to other hosts after half a minute; reads go on.

mod fault;
mod lists;
mod recruiter_link;

use crate::peer::Exchange;
use gleaner_schemas::commons::MembersChange;
use gleaner_trust::{Address, ClientTrust};
use lists::MemberLists;
use recruiter_link::RecruiterLink;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;

/// Identity of this host towards the recruiters.
#[derive(Clone, Debug)]
pub struct LinkSettings {
    /// Name of the commons.
    pub commons: String,
    /// Id of this host.
    pub host_id: String,
    /// Address for other members, `HOST:PORT`; `None`: this host's address on the link, with `port`.
    pub address: Option<String>,
    /// Port for other members.
    pub port: u16,
}

/// State of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkStatus {
    /// URL of the recruiter.
    pub recruiter: String,
    /// True while the recruiter is linked.
    pub is_linked: bool,
    /// Last fault; absent while the recruiter is linked, and before the first attempt has ended.
    pub fault: Option<String>,
}

/// Links with all recruiters.
pub struct RecruiterLinks {
    exchange: Arc<Exchange>,
    settings: LinkSettings,
    trust: Arc<ClientTrust>,
    state: Mutex<LinksState>,
}

struct LinksState {
    lists: MemberLists,
    statuses: Vec<LinkStatus>,
}

impl RecruiterLinks {
    /// Starts one task per recruiter, which runs until the program ends.
    #[must_use]
    pub fn start(
        recruiters: &[Address],
        settings: LinkSettings,
        exchange: Arc<Exchange>,
        trust: Arc<ClientTrust>,
        runtime: &Handle,
    ) -> Arc<Self> {
        let status = |address: &Address| LinkStatus {
            recruiter: address.to_string(),
            ..LinkStatus::default()
        };
        let links = Arc::new(Self {
            exchange,
            settings,
            trust,
            state: Mutex::new(LinksState {
                lists: MemberLists::new(recruiters.len()),
                statuses: recruiters.iter().map(status).collect(),
            }),
        });
        for (number, address) in recruiters.iter().enumerate() {
            let link = RecruiterLink {
                links: Arc::clone(&links),
                number,
                address: address.clone(),
            };
            runtime.spawn(link.keep());
        }
        links
    }

    /// States of the links, in the order of the configuration.
    #[must_use]
    pub fn statuses(&self) -> Vec<LinkStatus> {
        self.lock().statuses.clone()
    }

    fn linked(&self, number: usize) {
        let mut state = self.lock();
        if let Some(status) = state.statuses.get_mut(number) {
            status.is_linked = true;
            if status.fault.take().is_some() {
                eprintln!(
                    "gleaner-commons: linked with recruiter {}",
                    status.recruiter
                );
            }
        }
    }

    /// Notes that a link has ended or was not made. The same fault is logged once.
    fn unlinked(&self, number: usize, fault: String) {
        let mut state = self.lock();
        if let Some(status) = state.statuses.get_mut(number) {
            status.is_linked = false;
            if status.fault.as_ref() != Some(&fault) {
                eprintln!(
                    "gleaner-commons: recruiter {}: {fault}; trying again, the last members stay",
                    status.recruiter
                );
                status.fault = Some(fault);
            }
        }
        if let Some(members) = state.lists.unlink(number) {
            self.exchange.change_members(members);
        }
    }

    /// Takes over a change of a recruiter's list. The lock keeps changes in their order.
    fn members(&self, number: usize, change: MembersChange) {
        let mut state = self.lock();
        if let Some(members) = state.lists.change(number, change) {
            self.exchange.change_members(members);
        }
    }

    fn lock(&self) -> MutexGuard<'_, LinksState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
