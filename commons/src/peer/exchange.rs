//! Exchange of blocks among members with a recruiter: the network of this host's node of global memory.

use super::client::{BlockAnswer, BlockClient, PeerFault, PutAnswer, RequestHeaders};
use super::cluster::ClusterError;
use super::resolver::MemberAddresses;
use super::states::{PeerStates, PeerStatus};
use super::wire::{
    AGE, CHANCES, FORWARDED, MOST_CHANGES, NoticeUpdate, READER, WAIT, format_reader,
};
use crate::catalog::Hash;
use crate::config::SharingConfig;
use crate::directory::{Fetches, Member, Membership, PendingFetch};
use crate::global::{DirectoryNotice, EvictedBlock, GlobalMemory, PostQueues, ReadStep};
use crate::store::{Block, ClusterMemory, OwnBlocks};
use gleaner_policy::global::NodeId;
use gleaner_policy::global::directory::Holder;
use gleaner_policy::global::members::{self, Members};
use gleaner_policy::global::message::Message;
use gleaner_schemas::commons::{CommonsMember, Weights};
use gleaner_trust::ClientTrust;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// Number of threads that send evicted blocks.
const PUTTERS: usize = 4;
/// Interval of updates of other hosts' directories.
const UPDATE_EVERY: Duration = Duration::from_millis(100);
/// Timeout of a put or an update. No reader waits for them.
const PUT_TIMEOUT: Duration = Duration::from_secs(5);

/// Figures of evicted blocks that were sent to other members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PutCounters {
    /// Blocks that another member stored, or had.
    pub puts_count: u64,
    /// Blocks that the receiver had no room for.
    pub puts_without_room_count: u64,
    /// Blocks that were not sent: the receiver did not answer, or receives no blocks now.
    pub puts_dropped_count: u64,
}

/// Network of this host's node.
pub struct Exchange {
    memory: Arc<GlobalMemory>,
    own_id: String,
    /// Homes of each block that the policy needs.
    homes: usize,
    membership: RwLock<Arc<Membership>>,
    addresses: MemberAddresses,
    client: BlockClient,
    peers: PeerStates,
    /// Under `hash`: fetches from the source of blocks that this host is the home of.
    fetches: Mutex<Fetches>,
    runtime: Handle,
    peer_timeout: Duration,
    fetch_wait: Duration,
    puts: AtomicU64,
    puts_without_room: AtomicU64,
    puts_dropped: AtomicU64,
}

impl Exchange {
    /// Starts the threads of the exchange, without members. The threads end with the process.
    ///
    /// # Errors
    /// The certificates cannot be used, or the system has no more threads.
    pub fn start(
        (commons, own_id): (&str, &str),
        sharing: &SharingConfig,
        homes: usize,
        (memory, queues): (Arc<GlobalMemory>, PostQueues),
        trust: Arc<ClientTrust>,
        runtime: Handle,
    ) -> Result<Arc<Self>, ClusterError> {
        let membership = Membership::of_recruiters(&[], own_id);
        let addresses = MemberAddresses::of(&membership);
        let exchange = Arc::new(Self {
            memory,
            own_id: own_id.to_owned(),
            homes,
            client: BlockClient::new(commons, addresses.clone(), trust)?,
            peers: PeerStates::new(&membership),
            membership: RwLock::new(Arc::new(membership)),
            addresses,
            fetches: Mutex::new(Fetches::new(sharing.fetch_wait)),
            runtime,
            peer_timeout: sharing.peer_timeout,
            fetch_wait: sharing.fetch_wait,
            puts: AtomicU64::new(0),
            puts_without_room: AtomicU64::new(0),
            puts_dropped: AtomicU64::new(0),
        });
        let waiting = Arc::new(Mutex::new(queues.puts));
        for _ in 0..PUTTERS {
            let (exchange, waiting) = (Arc::clone(&exchange), Arc::clone(&waiting));
            let thread = thread::Builder::new().name("put".to_owned());
            thread.spawn(move || exchange.put_until_end(&waiting))?;
        }
        let notifying = Arc::clone(&exchange);
        let thread = thread::Builder::new().name("directory".to_owned());
        thread.spawn(move || notifying.notify_until_end(&queues.notices))?;
        Ok(exchange)
    }

    /// This host's node.
    #[must_use]
    pub const fn memory(&self) -> &Arc<GlobalMemory> {
        &self.memory
    }

    /// Longest wait for a block that this host fetches, on behalf of another.
    pub(super) const fn fetch_wait(&self) -> Duration {
        self.fetch_wait
    }

    /// Members at present.
    #[must_use]
    pub fn membership(&self) -> Arc<Membership> {
        let membership = self.membership.read();
        Arc::clone(&membership.unwrap_or_else(PoisonError::into_inner))
    }

    /// States of the other members.
    #[must_use]
    pub fn peers(&self) -> Vec<PeerStatus> {
        self.peers.snapshot()
    }

    /// Figures of evicted blocks since the start.
    #[must_use]
    pub fn counters(&self) -> PutCounters {
        PutCounters {
            puts_count: self.puts.load(Ordering::Relaxed),
            puts_without_room_count: self.puts_without_room.load(Ordering::Relaxed),
            puts_dropped_count: self.puts_dropped.load(Ordering::Relaxed),
        }
    }

    /// Takes over a list of members from the recruiters.
    pub fn change_members(&self, listed: &[CommonsMember]) {
        let membership = Arc::new(Membership::of_recruiters(listed, &self.own_id));
        self.addresses.replace(&membership);
        self.peers.follow(&membership);
        let entries = listed
            .iter()
            .filter(|entry| membership.of_host(&entry.host_id).is_some());
        let members = entries.map(|entry| members::Member {
            node: entry.node,
            generation: entry.generation,
            frames: entry.frames,
        });
        let members = Members::new(members.collect(), self.homes);
        *self
            .membership
            .write()
            .unwrap_or_else(PoisonError::into_inner) = membership;
        self.memory.change_members(members);
    }

    /// Takes over the weights of an epoch. Members that lack their blocks get none.
    pub fn accept(&self, weights: &Weights) {
        self.memory
            .accept(weights, |node| self.peers.is_target(node));
    }

    /// Notes that a member sent a block with another hash.
    pub(super) fn accuse(&self, node: NodeId) {
        let fault = PeerFault::Wrong("it put bytes that have another hash".to_owned());
        self.peers.failed(node, &fault);
    }

    /// Under `hash`, at the home of a block that it does not hold: another member's fetch of the block. If there is
    /// none, notes one by `reader`.
    pub(super) fn join_fetch(&self, hash: &Hash, reader: NodeId) -> Option<PendingFetch> {
        if !self.memory.is_home(hash) {
            return None;
        }
        self.fetches().join(hash, reader, Instant::now())
    }

    /// Notes that a fetch has ended: the home holds the block now, or nobody will fetch it.
    pub(super) fn landed(&self, hash: &Hash) {
        self.fetches().land(hash);
    }

    fn fetches(&self) -> MutexGuard<'_, Fetches> {
        self.fetches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits at this host, the block's home, for another member that fetches the block.
    fn wait_for_fetch(&self, hash: &Hash) -> Option<Block> {
        let fetch = self.join_fetch(hash, self.membership().own())?;
        self.runtime.block_on(fetch.wait());
        self.memory.use_block(hash).map(|(block, _)| block)
    }

    /// Asks a member for a block. The second result is true if the member kept no copy.
    fn ask(
        &self,
        member: &Member,
        hash: &Hash,
        headers: RequestHeaders<'_>,
        until: Instant,
    ) -> Option<(BlockAnswer, bool)> {
        let remaining = until.saturating_duration_since(Instant::now());
        if remaining.is_zero() || !self.peers.may_ask(member.node) {
            return None;
        }
        match self.client.request(member, hash, headers, remaining) {
            Ok(answer) => {
                self.peers.answered(member.node);
                Some(answer)
            }
            Err(fault) => {
                self.peers.failed(member.node, &fault);
                None
            }
        }
    }

    /// Asks a member for a block, and asks again, with a longer wait, if the member is fetching the block itself.
    fn ask_and_wait(
        &self,
        member: &Member,
        hash: &Hash,
        (request, is_forwarded): (Holder, bool),
        (until, deadline): (Instant, Instant),
    ) -> Option<(BlockAnswer, bool)> {
        let reader = format_reader(request);
        let headers = [
            (READER, reader.as_str()),
            (FORWARDED, "true"),
            (WAIT, "true"),
        ];
        let count = if is_forwarded { 2 } else { 1 };
        let answer = self.ask(member, hash, &headers[..count], until)?;
        if !matches!(answer.0, BlockAnswer::UnderWay) {
            return Some(answer);
        }
        let until = (Instant::now() + self.fetch_wait + self.peer_timeout).min(deadline);
        self.ask(member, hash, &headers, until)
    }

    /// Asks a host that the directory named as a holder; waits at that host if it fetches the block itself.
    fn ask_holder(
        &self,
        to: NodeId,
        hash: &Hash,
        request: Holder,
        (until, deadline): (Instant, Instant),
    ) -> Option<Block> {
        let membership = self.membership();
        let member = membership.member(to)?;
        let (answer, is_moved) =
            self.ask_and_wait(member, hash, (request, true), (until, deadline))?;
        // A host that fetches the block is no false holder.
        if !matches!(answer, BlockAnswer::UnderWay) {
            let is_found = matches!(answer, BlockAnswer::Found(_));
            self.peers.looked_up(to, is_found);
        }
        match answer {
            BlockAnswer::Found(block) => {
                self.memory.arrived(to, (hash, &block), is_moved, request);
                Some(block)
            }
            BlockAnswer::Missing => {
                self.memory.missed(to, hash, request);
                None
            }
            // Only the host with the directory's entry names other hosts.
            BlockAnswer::Elsewhere(_) | BlockAnswer::UnderWay => None,
        }
    }

    /// Asks the host with the directory's entry, and then the holder that it names.
    fn ask_directory(
        &self,
        to: NodeId,
        hash: &Hash,
        request: Holder,
        (until, deadline): (Instant, Instant),
    ) -> Option<Block> {
        let membership = self.membership();
        let member = membership.member(to)?;
        match self.ask_and_wait(member, hash, (request, false), (until, deadline))? {
            (BlockAnswer::Found(block), is_moved) => {
                self.memory.arrived(to, (hash, &block), is_moved, request);
                Some(block)
            }
            (BlockAnswer::Elsewhere(host_id), _) => {
                // Only members are asked, whatever the answer names.
                let holder = membership.of_host(&host_id)?;
                let is_other = holder.node != to && holder.node != membership.own();
                is_other.then(|| self.ask_holder(holder.node, hash, request, (until, deadline)))?
            }
            (BlockAnswer::Missing, _) => {
                self.memory.missed(to, hash, request);
                None
            }
            (BlockAnswer::UnderWay, _) => None,
        }
    }

    fn put_until_end(&self, waiting: &Mutex<Receiver<EvictedBlock>>) {
        loop {
            let next = waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .recv();
            let Ok(block) = next else {
                return;
            };
            let count = match self.put(&block) {
                Some(PutAnswer::Held) => &self.puts,
                Some(PutAnswer::NoRoom) => &self.puts_without_room,
                None => &self.puts_dropped,
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn put(&self, evicted: &EvictedBlock) -> Option<PutAnswer> {
        let membership = self.membership();
        let member = membership.member(evicted.to)?;
        if !self.peers.is_target(evicted.to) {
            return None;
        }
        let block = evicted.data.read(&evicted.hash)?;
        let (age, chances) = (evicted.age_ms.to_string(), evicted.chances.to_string());
        let headers = [(AGE, age.as_str()), (CHANCES, chances.as_str())];
        let block = (&evicted.hash, &block);
        let answer = self.client.put(member, block, &headers, PUT_TIMEOUT);
        let fault = |fault: PeerFault| self.peers.failed(evicted.to, &fault);
        answer.map_err(fault).ok()
    }

    fn notify_until_end(&self, waiting: &Receiver<DirectoryNotice>) {
        let generation = self.memory.identity().1;
        while let Ok(first) = waiting.recv() {
            thread::sleep(UPDATE_EVERY);
            let mut by_host: HashMap<NodeId, Vec<Message>> = HashMap::new();
            for notice in std::iter::once(first).chain(waiting.try_iter()) {
                by_host.entry(notice.to).or_default().push(notice.message);
            }
            for (to, messages) in by_host {
                for some in messages.chunks(MOST_CHANGES) {
                    self.notify(to, &NoticeUpdate::new(generation, some));
                }
            }
        }
    }

    fn notify(&self, to: NodeId, update: &NoticeUpdate) {
        let membership = self.membership();
        let member = membership.member(to);
        let Some(member) = member.filter(|_| self.peers.may_ask(to)) else {
            return;
        };
        if let Err(fault) = self.client.update(member, update, PUT_TIMEOUT) {
            self.peers.failed(to, &fault);
        }
    }
}

impl ClusterMemory for Exchange {
    fn find(&self, hash: &Hash, deadline: Instant) -> Option<Block> {
        let until = (Instant::now() + self.peer_timeout).min(deadline);
        match self.memory.begin_read(hash) {
            ReadStep::Here(block) => Some(block),
            ReadStep::Load => self.wait_for_fetch(hash),
            ReadStep::Ask {
                to,
                request,
                is_forwarded: true,
            } => self.ask_holder(to, hash, request, (until, deadline)),
            ReadStep::Ask { to, request, .. } => {
                self.ask_directory(to, hash, request, (until, deadline))
            }
        }
    }

    fn offer(&self, hash: &Hash, block: &Block) {
        self.memory.loaded(hash, block);
        self.landed(hash);
    }

    fn failed(&self, hash: &Hash) {
        self.memory.failed(hash);
        self.landed(hash);
    }

    fn use_own(&self, hash: &Hash) -> Option<(Block, u64)> {
        self.memory.use_block(hash)
    }

    fn has_own(&self, hash: &Hash) -> bool {
        self.memory.has(hash)
    }

    fn own_memory(&self) -> Option<OwnBlocks> {
        let counts = self.memory.counts();
        Some(OwnBlocks {
            frames: counts.own_frames,
            bytes: counts.own_bytes,
        })
    }
}
