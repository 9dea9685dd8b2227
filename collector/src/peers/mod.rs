//! The other collectors of the dataset: their state, for the status of them all, and how far they have a host's
//! records.
//!
//! A thread per peer asks for its state at an interval, so that a request for the status never waits for a network.

mod member;
mod watch;

pub use member::{CollectorOverview, Group, GroupMember, GroupSums, GroupTotals};

use crate::Error;
use gleaner_trust::{Address, ClientPaths, ClientTrust};
use std::sync::{Arc, mpsc};
use watch::WatchedPeer;

/// Settings of the peers.
#[derive(Clone, Debug, Default)]
pub struct PeerSettings {
    /// Addresses of the collectors. The collector's own address may be among them.
    pub urls: Vec<Address>,
    /// Files of a reader's certificate, for the addresses with TLS; absent if all addresses are of this machine and
    /// without TLS.
    pub reader: Option<ClientPaths>,
}

/// CollectorIdentity of this collector, by which it recognizes its own address among the peers'.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CollectorIdentity {
    /// Name of the collector.
    pub(crate) name: Option<String>,
    /// Start of the collector, ms since 1970-01-01 UTC.
    pub(crate) started_time_ms: i64,
}

/// Handle of the threads that watch the peers. The threads end with the handle, after their present requests.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    peers: Vec<Arc<WatchedPeer>>,
    _alive: Vec<mpsc::Sender<()>>,
}

impl Peers {
    /// Starts a thread for each peer.
    ///
    /// # Errors
    /// [`Error::Trust`] if the reader's certificate cannot be used; [`Error::Io`] if no thread can be started.
    pub(crate) fn start(own: &CollectorIdentity, settings: &PeerSettings) -> Result<Self, Error> {
        let trust = settings.reader.as_ref().map(ClientTrust::load);
        let trust = trust.transpose()?;
        let (mut peers, mut alive) = (Vec::new(), Vec::new());
        for url in &settings.urls {
            let trust = trust.clone().filter(|_| url.is_secret());
            let (sender, ended) = mpsc::channel();
            peers.push(watch::start(own.clone(), url.clone(), trust, ended)?);
            alive.push(sender);
        }
        Ok(Self {
            peers,
            _alive: alive,
        })
    }

    /// Returns true if no peers are configured.
    pub(crate) fn is_empty(&self) -> bool {
        self.peers.is_empty()
    }

    /// State of each peer, in the order of the configuration, without this collector itself.
    pub(crate) fn members(&self) -> Vec<GroupMember> {
        self.peers.iter().filter_map(|peer| peer.member()).collect()
    }

    /// Highest sequence number of a host's database that is durable at a peer. Peers that do not answer are left out:
    /// the host then sends again the records that only such a peer has. Waits for the network.
    pub(crate) fn mark(&self, host_id: &str, database_id: &str) -> Option<i64> {
        let marks = self
            .peers
            .iter()
            .map(|peer| peer.mark(host_id, database_id));
        marks.max().flatten()
    }
}
