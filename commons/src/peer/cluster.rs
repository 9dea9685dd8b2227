//! Blocks in the memory of all members.

use super::client::{BlockAnswer, BlockClient, PeerFault, PutAnswer};
use super::resolver::MemberAddresses;
use super::states::{PeerStates, PeerStatus};
use super::wire::{DirectoryUpdate, MOST_CHANGES};
use crate::catalog::Hash;
use crate::config::SharingConfig;
use crate::directory::{HolderChange, HomeDirectory, Membership, Referral};
use crate::hold::{Hold, HoldCounters, PutResult};
use crate::store::{Block, ClusterMemory};
use gleaner_policy::global::NodeId;
use gleaner_trust::{ClientTrust, TrustError, random};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::runtime::Handle;

/// Number of threads that give blocks to their homes.
const PUTTERS: usize = 4;
/// Most blocks that wait to be given to their homes; further ones are not given.
const MOST_PUTS: usize = 256;
/// Most changes that wait to be sent to their homes; further ones are not sent.
const MOST_WAITING_CHANGES: usize = 1 << 14;
/// Interval of updates of the homes' directories.
const UPDATE_EVERY: Duration = Duration::from_millis(100);
/// Timeout of a put or an update. No reader waits for them.
const PUT_TIMEOUT: Duration = Duration::from_secs(5);

/// Figures of the exchange with other members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterCounters {
    /// Blocks that were given to their homes.
    pub puts_count: u64,
    /// Blocks that their homes had no room for.
    pub puts_without_room_count: u64,
    /// Blocks that were not given to their homes: too many waited, or the home did not answer.
    pub puts_dropped_count: u64,
    /// Blocks with a holder in this host's part of the directory.
    pub directory_entries_count: u64,
    /// Entries of other members' blocks beyond the members' limits, which were refused.
    pub directory_refused_count: u64,
    /// Blocks held for other members.
    #[serde(flatten)]
    pub hold: HoldCounters,
}

/// A put that waits.
struct WaitingPut {
    home: NodeId,
    hash: Hash,
    block: Block,
}

/// Memory of all members.
pub struct Cluster {
    membership: Arc<Membership>,
    hold: Hold,
    directory: HomeDirectory,
    client: BlockClient,
    peers: PeerStates,
    runtime: Handle,
    peer_timeout: Duration,
    fetch_wait: Duration,
    /// Generation of this host's memory: the second of its start.
    generation: u32,
    puts: SyncSender<WaitingPut>,
    changes: SyncSender<(NodeId, HolderChange)>,
    puts_done: AtomicU64,
    puts_without_room: AtomicU64,
    puts_dropped: AtomicU64,
}

impl Cluster {
    /// Starts the threads of the exchange. They end with the process.
    ///
    /// # Errors
    /// The certificates cannot be used, or the system has no more threads.
    pub fn start(
        commons: &str,
        membership: Membership,
        sharing: &SharingConfig,
        hold_bytes: u64,
        trust: Arc<ClientTrust>,
        runtime: Handle,
    ) -> Result<Arc<Self>, ClusterError> {
        let membership = Arc::new(membership);
        let (puts, waiting_puts) = sync_channel(MOST_PUTS);
        let (changes, waiting_changes) = sync_channel(MOST_WAITING_CHANGES);
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = since_1970.map_or(0, |since| since.as_secs());
        let cluster = Arc::new(Self {
            hold: Hold::new(hold_bytes),
            directory: HomeDirectory::new(membership.list().len(), sharing.fetch_wait),
            client: BlockClient::new(commons, MemberAddresses::of(&membership), trust)?,
            peers: PeerStates::new(&membership),
            membership,
            runtime,
            peer_timeout: sharing.peer_timeout,
            fetch_wait: sharing.fetch_wait,
            generation: u32::try_from(seconds).unwrap_or(u32::MAX),
            puts,
            changes,
            puts_done: AtomicU64::new(0),
            puts_without_room: AtomicU64::new(0),
            puts_dropped: AtomicU64::new(0),
        });
        let waiting_puts = Arc::new(Mutex::new(waiting_puts));
        for _ in 0..PUTTERS {
            let (cluster, waiting) = (Arc::clone(&cluster), Arc::clone(&waiting_puts));
            let thread = thread::Builder::new().name("put".to_owned());
            thread.spawn(move || cluster.put_until_end(&waiting))?;
        }
        let updating = Arc::clone(&cluster);
        let thread = thread::Builder::new().name("directory".to_owned());
        thread.spawn(move || updating.update_until_end(&waiting_changes))?;
        Ok(cluster)
    }

    /// Members, and this host among them.
    #[must_use]
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// States of the other members.
    #[must_use]
    pub fn peers(&self) -> Vec<PeerStatus> {
        self.peers.snapshot()
    }

    /// Figures since the start.
    #[must_use]
    pub fn counters(&self) -> ClusterCounters {
        ClusterCounters {
            puts_count: self.puts_done.load(Ordering::Relaxed),
            puts_without_room_count: self.puts_without_room.load(Ordering::Relaxed),
            puts_dropped_count: self.puts_dropped.load(Ordering::Relaxed),
            directory_entries_count: self.directory.len() as u64,
            directory_refused_count: self.directory.refused(),
            hold: self.hold.counters(),
        }
    }

    /// Returns true if this host is the home of the block.
    pub(super) fn is_home(&self, hash: &Hash) -> bool {
        self.membership.home(hash) == Some(self.membership.own())
    }

    pub(super) const fn hold(&self) -> &Hold {
        &self.hold
    }

    pub(super) const fn directory(&self) -> &HomeDirectory {
        &self.directory
    }

    /// Answers a reader of a block that this host is the home of, and does not hold.
    pub(super) fn refer(&self, hash: &Hash, reader: NodeId) -> Referral {
        let mut draw = || random::bytes::<8>().map_or(0, u64::from_le_bytes);
        self.directory
            .refer(hash, reader, Instant::now(), &mut draw)
    }

    /// Notes a block that this host was asked for and does not have: its home may think otherwise.
    pub(super) fn lacks(&self, hash: &Hash) {
        if let Some(home) = self.membership.home(hash) {
            self.announce(home, hash, false);
        }
    }

    /// Notes that a member sent a block with another hash.
    pub(super) fn accuse(&self, node: NodeId) {
        let fault = PeerFault::Wrong("it put bytes that have another hash".to_owned());
        self.peers.failed(node, &fault);
    }

    fn announce(&self, home: NodeId, hash: &Hash, is_held: bool) {
        let change = HolderChange {
            hash: *hash,
            is_held,
        };
        // A change that is not sent leaves a wrong entry, which costs its readers one exchange.
        let _ = self.changes.try_send((home, change));
    }

    fn ask(&self, node: NodeId, hash: &Hash, waits: bool, until: Instant) -> Option<BlockAnswer> {
        let member = self.membership.member(node)?;
        let remaining = until.saturating_duration_since(Instant::now());
        if remaining.is_zero() || !self.peers.may_ask(node) {
            return None;
        }
        match self.client.get(member, hash, waits, remaining) {
            Ok(answer) => {
                self.peers.answered(node);
                Some(answer)
            }
            Err(fault) => {
                self.peers.failed(node, &fault);
                None
            }
        }
    }

    /// Asks a member for a block, and takes no other answer than the block.
    fn take(&self, node: NodeId, hash: &Hash, waits: bool, until: Instant) -> Option<Block> {
        match self.ask(node, hash, waits, until)? {
            BlockAnswer::Found(block) => Some(block),
            _ => None,
        }
    }

    fn find_at_home(&self, hash: &Hash, deadline: Instant) -> Option<Block> {
        if let Some(block) = self.hold.get(hash) {
            return Some(block);
        }
        match self.refer(hash, self.membership.own()) {
            Referral::Holder(node) => {
                let until = (Instant::now() + self.peer_timeout).min(deadline);
                self.take(node, hash, false, until)
            }
            Referral::UnderWay(pending) => {
                self.runtime.block_on(pending.wait());
                self.hold.get(hash)
            }
            Referral::Source => None,
        }
    }

    fn put_until_end(&self, waiting: &Mutex<Receiver<WaitingPut>>) {
        loop {
            let next = waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .recv();
            let Ok(put) = next else {
                return;
            };
            let member = self.membership.member(put.home);
            let Some(member) = member.filter(|member| self.peers.may_ask(member.node)) else {
                self.puts_dropped.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            let block = (&put.hash, &put.block);
            let answer = self.client.put(member, block, &[], PUT_TIMEOUT);
            let count = match answer {
                Ok(PutAnswer::Held) => &self.puts_done,
                Ok(PutAnswer::NoRoom) => {
                    // The home can at least send readers here.
                    self.announce(put.home, &put.hash, true);
                    &self.puts_without_room
                }
                Err(fault) => {
                    self.peers.failed(put.home, &fault);
                    &self.puts_dropped
                }
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn update_until_end(&self, waiting: &Receiver<(NodeId, HolderChange)>) {
        while let Ok(first) = waiting.recv() {
            thread::sleep(UPDATE_EVERY);
            // The last change of each block counts.
            let mut by_home: HashMap<NodeId, HashMap<Hash, bool>> = HashMap::new();
            for (home, change) in std::iter::once(first).chain(waiting.try_iter()) {
                let of_home = by_home.entry(home).or_default();
                of_home.insert(change.hash, change.is_held);
            }
            for (home, changes) in by_home {
                let changes = changes.into_iter();
                let changes: Vec<_> = changes
                    .map(|(hash, is_held)| HolderChange { hash, is_held })
                    .collect();
                for some in changes.chunks(MOST_CHANGES) {
                    self.update(home, some);
                }
            }
        }
    }

    fn update(&self, home: NodeId, changes: &[HolderChange]) {
        let own = self.membership.own();
        if home == own {
            self.directory.enter(own, self.generation, changes);
            return;
        }
        let member = self.membership.member(home);
        let Some(member) = member.filter(|_| self.peers.may_ask(home)) else {
            return;
        };
        let update = DirectoryUpdate::new(self.generation, changes);
        if let Err(fault) = self.client.update(member, &update, PUT_TIMEOUT) {
            self.peers.failed(home, &fault);
        }
    }
}

impl ClusterMemory for Cluster {
    fn find(&self, hash: &Hash, deadline: Instant) -> Option<Block> {
        let home = self.membership.home(hash)?;
        if home == self.membership.own() {
            return self.find_at_home(hash, deadline);
        }
        let until = (Instant::now() + self.peer_timeout).min(deadline);
        match self.ask(home, hash, false, until)? {
            BlockAnswer::Found(block) => Some(block),
            BlockAnswer::Missing => None,
            BlockAnswer::UnderWay => {
                let until = Instant::now() + self.fetch_wait + self.peer_timeout;
                self.take(home, hash, true, until.min(deadline))
            }
            BlockAnswer::Elsewhere(host_id) => {
                // Only members are asked, whatever the home answers; and a second redirect is not followed.
                let holder = self.membership.of_host(&host_id)?;
                if holder.node == home {
                    return None;
                }
                self.take(holder.node, hash, false, until)
            }
        }
    }

    fn offer(&self, hash: &Hash, block: &Block) {
        let Some(home) = self.membership.home(hash) else {
            return;
        };
        if home == self.membership.own() {
            if self.hold.put_checked(hash, Arc::clone(block)) == PutResult::NoRoom {
                self.announce(home, hash, true);
            }
            self.directory.landed(hash);
            return;
        }
        let put = WaitingPut {
            home,
            hash: *hash,
            block: Arc::clone(block),
        };
        if self.puts.try_send(put).is_err() {
            self.puts_dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Failure to start the exchange with other members.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The certificates cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The system has no more threads.
    #[error("cannot start threads for other hosts: {0}")]
    Threads(#[from] io::Error),
}
