//! Blocks in local memory, and the fetches of blocks that are not there: from other hosts' memory
//! ([`ClusterMemory`]) if they have the block, else from the origin.
//!
//! A request is answered through a [`BlockReceiver`], so that no thread waits for a slow origin on a reader's
//! behalf. However many readers request a block at once, it is fetched once. Every fetched block is hashed,
//! whatever its origin, before a receiver gets it.

mod complaints;
mod counters;
mod flights;
mod local;
#[cfg(test)]
mod tests;

pub use counters::{AgeClass, StoreCounters};
pub use local::LocalMemory;

use crate::catalog::{BLOCK_BYTES, Hash};
use complaints::Complaints;
use counters::Counts;
use flights::{Flights, Waiter};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Contents of a block, whose hash was checked.
pub type Block = Arc<Vec<u8>>;

/// Maximum number of blocks that are fetched ahead of readers at one time.
const MOST_AHEAD: usize = 64;
/// Interval of looking for requests that have timed out, as a share of the timeout, and its limits.
const LOOKS_PER_TIMEOUT: u32 = 8;
const SHORTEST_LOOK: Duration = Duration::from_millis(5);
const LONGEST_LOOK: Duration = Duration::from_millis(500);
/// Stack of a fetching thread. TLS is the largest user.
const STACK_BYTES: usize = 1 << 20;

/// A block, and one of the places where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPlace {
    /// Hash of the block.
    pub hash: Hash,
    /// Number of the mount whose catalog has the row, from 0; always 0 if there is one mount.
    pub mount: usize,
    /// Row of the catalog with a file that has the block.
    pub row: u64,
    /// Number of the block in that file, from 0.
    pub index: u64,
}

/// Reason why a block cannot be had. Readers get EIO.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The origin has other bytes than the catalog names.
    #[error("differs from the catalog: {detail}")]
    Differs {
        /// Description of the difference.
        detail: String,
    },
    /// The origin lacks this file, or does not permit to read it.
    #[error("cannot be read: {detail}")]
    Missing {
        /// Error of the origin.
        detail: String,
    },
    /// The origin as a whole does not work.
    #[error("the source does not work: {detail}")]
    Unavailable {
        /// Error of the origin.
        detail: String,
    },
    /// The origin did not answer in time.
    #[error("the source did not answer in time")]
    TimedOut,
}

/// Place from which blocks come that are not in local memory.
pub trait BlockOrigin: Send + Sync + 'static {
    /// Fetches a block. The store checks its hash.
    ///
    /// # Errors
    /// [`FetchError`]. An origin that can do so gives up at `deadline`.
    fn fetch(&self, place: &BlockPlace, deadline: Instant) -> Result<Vec<u8>, FetchError>;

    /// Path of a place's file, for messages.
    fn path_of(&self, place: &BlockPlace) -> String;
}

/// Memory of other hosts.
pub trait ClusterMemory: Send + Sync + 'static {
    /// Finds a block in the memory of other hosts, by `deadline`. The implementation has checked the block's
    /// hash. `None`: the block must be read from its origin.
    fn find(&self, hash: &Hash, deadline: Instant) -> Option<Block>;

    /// Takes a block that was read from its origin, so that other hosts find it. This never waits.
    fn offer(&self, hash: &Hash, block: &Block);
}

/// Returns the bytes as a block if they have this hash.
#[must_use]
pub fn checked(hash: &Hash, bytes: Vec<u8>) -> Option<Block> {
    (blake3::hash(&bytes) == *hash).then(|| Arc::new(bytes))
}

/// Supplier of a fetched block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Supplier {
    /// Memory of another host.
    Cluster,
    /// Origin of the block.
    Source,
}

/// Recipient of requested blocks.
pub trait BlockReceiver: Send + Sync {
    /// Takes the answer to the request that was made with `index`. It may come before the request returns,
    /// and from any thread.
    fn receive(&self, index: usize, block: Result<Block, FetchError>);
}

/// Settings of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// Maximum number of bytes of blocks in local memory.
    pub local_bytes: u64,
    /// Number of threads that fetch blocks.
    pub fetchers: usize,
    /// Time after which a request is answered with [`FetchError::TimedOut`].
    pub timeout: Duration,
}

/// A fetched block and its supplier.
type FetchedBlock = (Block, Supplier);

/// The store. Its threads end when it is dropped.
pub struct BlockStore {
    shared: Arc<Shared>,
}

struct Shared {
    origin: Box<dyn BlockOrigin>,
    cluster: Option<Arc<dyn ClusterMemory>>,
    settings: StoreSettings,
    state: Mutex<State>,
    /// Signals fetching threads that there is a block to fetch.
    work: Condvar,
    /// Signals the thread of timeouts that there is a request under way.
    waits: Condvar,
    counts: Counts,
    complaints: Complaints,
    begin: Instant,
}

struct State {
    local: LocalMemory,
    flights: Flights,
    /// True while the thread of timeouts waits for a request.
    is_timer_idle: bool,
    has_ended: bool,
}

impl BlockStore {
    /// Starts a store's threads. With `cluster`, other hosts are asked for a block before the origin.
    ///
    /// # Errors
    /// The system has no more threads.
    pub fn start(
        origin: Box<dyn BlockOrigin>,
        cluster: Option<Arc<dyn ClusterMemory>>,
        settings: StoreSettings,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            origin,
            cluster,
            settings,
            state: Mutex::new(State {
                local: LocalMemory::new(settings.local_bytes),
                flights: Flights::default(),
                is_timer_idle: false,
                has_ended: false,
            }),
            work: Condvar::new(),
            waits: Condvar::new(),
            counts: Counts::default(),
            complaints: Complaints::default(),
            begin: Instant::now(),
        });
        let store = Self {
            shared: Arc::clone(&shared),
        };
        for _ in 0..settings.fetchers.max(1) {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name("fetch".to_owned());
            thread
                .stack_size(STACK_BYTES)
                .spawn(move || shared.fetch_until_end())?;
        }
        let thread = thread::Builder::new().name("timeouts".to_owned());
        thread
            .stack_size(STACK_BYTES)
            .spawn(move || shared.time_out_until_end())?;
        Ok(store)
    }

    /// Requests a block, of which the reader uses `used_bytes`. `receiver` gets the answer, at once if the
    /// block is in local memory.
    pub fn request(
        &self,
        place: BlockPlace,
        used_bytes: u64,
        receiver: &Arc<dyn BlockReceiver>,
        index: usize,
    ) {
        let shared = &*self.shared;
        let now_ms = shared.now_ms();
        let mut state = shared.lock();
        if let Some((block, age_ms)) = state.local.get(&place.hash, now_ms) {
            drop(state);
            shared.counts.count_hit(age_ms, used_bytes);
            receiver.receive(index, Ok(block));
            return;
        }
        let waiter = Waiter {
            place,
            receiver: Arc::clone(receiver),
            index,
            used_bytes,
            deadline: Instant::now() + shared.settings.timeout,
        };
        let is_new = state.flights.join(waiter);
        let is_timer_idle = state.is_timer_idle;
        drop(state);
        if is_new {
            shared.work.notify_one();
        }
        if is_timer_idle {
            shared.waits.notify_one();
        }
    }

    /// Fetches a block before a reader requests it, unless it is in local memory or under way, or too many
    /// blocks are being fetched ahead.
    pub fn fetch_ahead(&self, place: BlockPlace) {
        let shared = &*self.shared;
        let mut state = shared.lock();
        let is_wanted = !state.local.contains(&place.hash)
            && state.flights.ahead_count() < MOST_AHEAD
            && state.flights.launch_ahead(place);
        drop(state);
        if is_wanted {
            shared.counts.count_ahead();
            shared.work.notify_one();
        }
    }

    /// Number of blocks that a sequential reader may have fetched ahead: at most a quarter of local memory.
    #[must_use]
    pub fn most_blocks_ahead(&self) -> u64 {
        let quarter = self.shared.settings.local_bytes / BLOCK_BYTES / 4;
        quarter.min(MOST_AHEAD as u64 / 2)
    }

    /// Returns a block, after waiting for it.
    ///
    /// # Errors
    /// [`FetchError`]
    pub fn read(&self, place: BlockPlace) -> Result<Block, FetchError> {
        let waiting = Arc::new(BlockingReceiver::default());
        let receiver: Arc<dyn BlockReceiver> = Arc::<BlockingReceiver>::clone(&waiting);
        self.request(place, BLOCK_BYTES, &receiver, 0);
        let mut answer = lock(&waiting.answer);
        loop {
            if let Some(answer) = answer.take() {
                return answer;
            }
            answer = wait(&waiting.has_come, answer);
        }
    }

    /// Returns a block of local memory. This is no use of the block: its age stays.
    #[must_use]
    pub fn peek(&self, hash: &Hash) -> Option<Block> {
        self.shared.lock().local.peek(hash)
    }

    /// Returns the figures since the start.
    #[must_use]
    pub fn counters(&self) -> StoreCounters {
        let shared = &*self.shared;
        let state = shared.lock();
        let (frames, bytes) = (state.local.frames(), state.local.bytes());
        drop(state);
        shared
            .counts
            .snapshot(shared.settings.local_bytes, frames, bytes)
    }
}

impl Drop for BlockStore {
    fn drop(&mut self) {
        self.shared.lock().has_ended = true;
        self.shared.work.notify_all();
        self.shared.waits.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn now_ms(&self) -> i64 {
        i64::try_from(self.begin.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    fn fetch_until_end(&self) {
        let mut state = self.lock();
        loop {
            if state.has_ended {
                return;
            }
            // The other threads stay free for readers that wait.
            let most_ahead = self.settings.fetchers.div_ceil(2);
            let Some((place, deadline)) = state.flights.take_off(most_ahead) else {
                state = wait(&self.work, state);
                continue;
            };
            drop(state);
            let deadline = deadline.unwrap_or_else(|| Instant::now() + self.settings.timeout);
            let fetched = self.fetch(&place, deadline);
            self.land(&place, fetched);
            state = self.lock();
        }
    }

    /// Fetches a block whose hash has been checked.
    fn fetch(&self, place: &BlockPlace, deadline: Instant) -> Result<FetchedBlock, FetchError> {
        if Instant::now() >= deadline {
            return Err(FetchError::TimedOut);
        }
        let cluster = self.cluster.as_ref();
        if let Some(block) = cluster.and_then(|cluster| cluster.find(&place.hash, deadline)) {
            return Ok((block, Supplier::Cluster));
        }
        let bytes = self.origin.fetch(place, deadline)?;
        let block = checked(&place.hash, bytes).ok_or_else(|| FetchError::Differs {
            detail: "its bytes have another hash".to_owned(),
        })?;
        Ok((block, Supplier::Source))
    }

    /// Answers the readers of a block.
    fn land(&self, place: &BlockPlace, fetched: Result<FetchedBlock, FetchError>) {
        let path = || self.origin.path_of(place);
        match &fetched {
            Ok((block, supplier)) => {
                self.counts.count_fetch(*supplier, block.len() as u64);
                if *supplier == Supplier::Source {
                    self.complaints.works();
                }
            }
            Err(error) => {
                self.counts.count_failure(error);
                self.complaints.failed(place, error, path);
            }
        }
        let now_ms = self.now_ms();
        let mut state = self.lock();
        let waiters = state.flights.land(&place.hash);
        let answered = match &fetched {
            Ok((block, _)) => {
                state.local.insert(place.hash, Arc::clone(block), now_ms);
                waiters
            }
            // Another file with the same block may be sound.
            Err(_) => {
                let (failed, others): (Vec<_>, Vec<_>) = waiters
                    .into_iter()
                    .partition(|w| (w.place.mount, w.place.row) == (place.mount, place.row));
                for other in others {
                    if state.flights.join(other) {
                        self.work.notify_one();
                    }
                }
                failed
            }
        };
        drop(state);
        for waiter in answered {
            if let Ok((_, supplier)) = &fetched {
                self.counts.count_read(*supplier, waiter.used_bytes);
            }
            let block = fetched.clone().map(|(block, _)| block);
            waiter.receiver.receive(waiter.index, block);
        }
        if let (Some(cluster), Ok((block, Supplier::Source))) = (&self.cluster, &fetched) {
            cluster.offer(&place.hash, block);
        }
    }

    /// Answers requests whose time is over, also if a fetching thread hangs.
    fn time_out_until_end(&self) {
        let look = self.settings.timeout / LOOKS_PER_TIMEOUT;
        let look = look.clamp(SHORTEST_LOOK, LONGEST_LOOK);
        let mut state = self.lock();
        loop {
            if state.has_ended {
                return;
            }
            if !state.flights.has_waiters() {
                state.is_timer_idle = true;
                state = wait(&self.waits, state);
                state.is_timer_idle = false;
                continue;
            }
            let expired = state.flights.expire(Instant::now());
            if expired.is_empty() {
                let waited = self.waits.wait_timeout_while(state, look, |s| !s.has_ended);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            drop(state);
            for waiter in expired {
                let error = FetchError::TimedOut;
                self.counts.count_failure(&error);
                let path = || self.origin.path_of(&waiter.place);
                self.complaints.failed(&waiter.place, &error, path);
                waiter.receiver.receive(waiter.index, Err(error));
            }
            state = self.lock();
        }
    }
}

/// A receiver for one thread that waits.
#[derive(Default)]
struct BlockingReceiver {
    answer: Mutex<Option<Result<Block, FetchError>>>,
    has_come: Condvar,
}

impl BlockReceiver for BlockingReceiver {
    fn receive(&self, _index: usize, block: Result<Block, FetchError>) {
        *lock(&self.answer) = Some(block);
        self.has_come.notify_one();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    let woken = condition.wait(guard);
    woken.unwrap_or_else(PoisonError::into_inner)
}
