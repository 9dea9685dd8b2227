use super::*;
use gleaner_harness::{Random, wait_for};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};

/// An origin with made-up blocks, which can be held.
#[derive(Default)]
struct HeldOrigin {
    fetches: Mutex<HashMap<u64, u64>>,
    is_held: Mutex<bool>,
    changed: Condvar,
    /// Rows whose bytes are wrong.
    wrong: Mutex<Vec<u64>>,
    /// Number of fetches that have begun.
    started: AtomicU64,
}

impl HeldOrigin {
    fn hold(&self, is_held: bool) {
        *lock(&self.is_held) = is_held;
        self.changed.notify_all();
    }

    fn fetches(&self, index: u64) -> u64 {
        lock(&self.fetches).get(&index).copied().unwrap_or(0)
    }
}

struct SharedOrigin(Arc<HeldOrigin>);

impl BlockOrigin for SharedOrigin {
    fn fetch(&self, place: &BlockPlace, _deadline: Instant) -> Result<Vec<u8>, FetchError> {
        self.0.started.fetch_add(1, Ordering::SeqCst);
        let mut held = lock(&self.0.is_held);
        while *held {
            held = wait(&self.0.changed, held);
        }
        drop(held);
        *lock(&self.0.fetches).entry(place.index).or_default() += 1;
        if lock(&self.0.wrong).contains(&place.row) {
            return Ok(b"other bytes".to_vec());
        }
        Ok(contents(place.index))
    }

    fn path_of(&self, place: &BlockPlace) -> String {
        format!("row-{}", place.row)
    }
}

fn contents(index: u64) -> Vec<u8> {
    index.to_le_bytes().repeat(BLOCK_BYTES as usize / 8)
}

fn place(row: u64, index: u64) -> BlockPlace {
    BlockPlace {
        hash: blake3::hash(&contents(index)).into(),
        mount: 0,
        row,
        index,
    }
}

fn started(local_blocks: u64, timeout: Duration) -> (Arc<HeldOrigin>, BlockStore) {
    started_with(None, local_blocks, timeout)
}

fn started_with(
    cluster: Option<Arc<dyn ClusterMemory>>,
    local_blocks: u64,
    timeout: Duration,
) -> (Arc<HeldOrigin>, BlockStore) {
    let made = Arc::new(HeldOrigin::default());
    let settings = StoreSettings {
        local_bytes: local_blocks * BLOCK_BYTES,
        fetchers: 4,
        timeout,
    };
    let store = BlockStore::start(Box::new(SharedOrigin(made.clone())), cluster, settings).unwrap();
    (made, store)
}

const LONG: Duration = Duration::from_secs(600);

struct ChannelReceiver(Mutex<Sender<(usize, Result<Block, FetchError>)>>);

impl BlockReceiver for ChannelReceiver {
    fn receive(&self, index: usize, block: Result<Block, FetchError>) {
        let _ = lock(&self.0).send((index, block));
    }
}

#[test]
fn twenty_readers_at_once_fetch_each_block_once() {
    let (made, store) = started(64, LONG);
    made.hold(true);
    let (sender, answers) = channel();
    let receiver: Arc<dyn BlockReceiver> = Arc::new(ChannelReceiver(Mutex::new(sender)));
    for reader in 0..20 {
        for index in 0..8 {
            store.request(place(1, index), 1, &receiver, reader * 8 + index as usize);
        }
    }
    assert!(answers.try_recv().is_err());
    made.hold(false);
    for _ in 0..160 {
        let (index, block) = answers.recv().unwrap();
        assert_eq!(*block.unwrap(), contents(index as u64 % 8));
    }
    assert!((0..8).all(|index| made.fetches(index) == 1));
    let counters = store.counters();
    assert_eq!(
        (counters.fetched_blocks_count, counters.frames_count),
        (8, 8)
    );
    assert_eq!(
        counters.local_reads_count + counters.source_reads_count,
        160
    );
    assert_eq!(
        store.read(place(1, 3)).map(|b| b.len()),
        Ok(BLOCK_BYTES as usize)
    );
    assert_eq!(made.fetches(3), 1);
    let counters = store.counters();
    assert_eq!(
        counters.hit_ages.iter().map(|c| c.hits_count).sum::<u64>(),
        counters.local_reads_count
    );
}

#[test]
fn other_bytes_are_never_answered_and_a_sound_copy_is_found() {
    let (made, store) = started(64, LONG);
    lock(&made.wrong).push(1);
    let failed = store.read(place(1, 0));
    assert!(
        matches!(failed, Err(FetchError::Differs { .. })),
        "{failed:?}"
    );
    assert_eq!(store.counters().frames_count, 0);
    // Two readers wait for the same block of two files, of which one is wrong.
    made.hold(true);
    let (sender, answers) = channel();
    let receiver: Arc<dyn BlockReceiver> = Arc::new(ChannelReceiver(Mutex::new(sender)));
    store.request(place(1, 5), 1, &receiver, 0);
    store.request(place(2, 5), 1, &receiver, 1);
    made.hold(false);
    let mut found = [answers.recv().unwrap(), answers.recv().unwrap()];
    found.sort_by_key(|(index, _)| *index);
    assert!(matches!(found[0].1, Err(FetchError::Differs { .. })));
    assert_eq!(*found[1].1.clone().unwrap(), contents(5));
    assert_eq!(store.counters().differing_blocks_count, 2);
}

#[test]
fn a_hanging_fetch_fails_its_readers_in_time_and_serves_later_ones() {
    let (made, store) = started(64, Duration::from_millis(20));
    made.hold(true);
    for index in 0..8 {
        // Four of them hang in the origin's threads, and four never get one.
        assert_eq!(store.read(place(1, index)), Err(FetchError::TimedOut));
    }
    assert_eq!(made.started.load(Ordering::SeqCst), 4);
    made.hold(false);
    wait_for("the hanging fetches to end", || {
        store.counters().frames_count == 4
    });
    assert_eq!(store.read(place(1, 0)).map(|b| b.to_vec()), Ok(contents(0)));
    assert_eq!(made.fetches(0), 1);
}

#[test]
fn blocks_ahead_are_fetched_once_and_are_hits_later() {
    let (made, store) = started(64, LONG);
    for index in 0..8 {
        store.fetch_ahead(place(1, index));
        store.fetch_ahead(place(1, index));
    }
    wait_for("all blocks", || store.counters().frames_count == 8);
    for index in 0..8 {
        store.read(place(1, index)).unwrap();
        store.fetch_ahead(place(1, index));
        assert_eq!(made.fetches(index), 1);
    }
    let counters = store.counters();
    assert_eq!(
        (counters.local_reads_count, counters.ahead_blocks_count),
        (8, 8)
    );
}

#[test]
fn what_is_fetched_ahead_is_bounded_and_waits_for_readers() {
    let (made, store) = started(4096, LONG);
    made.hold(true);
    for index in 0..1000 {
        store.fetch_ahead(place(1, index));
    }
    let most = MOST_AHEAD as u64 + 4; // queued, and one in each thread
    assert!(store.counters().ahead_blocks_count <= most);
    made.hold(false);
    assert!(store.read(place(1, 999)).is_ok());
    assert_eq!(started(3, LONG).1.most_blocks_ahead(), 0);
    assert_eq!(store.most_blocks_ahead(), 32);
}

#[test]
fn hanging_fetches_ahead_leave_threads_to_readers() {
    let (origin, store) = started(4096, LONG);
    origin.hold(true);
    for index in 0..40 {
        store.fetch_ahead(place(1, index));
    }
    let (sender, answers) = channel();
    let receiver: Arc<dyn BlockReceiver> = Arc::new(ChannelReceiver(Mutex::new(sender)));
    store.request(place(1, 99), 1, &receiver, 0);
    store.request(place(1, 98), 1, &receiver, 1);
    wait_for("two fetches ahead and two for readers", || {
        origin.started.load(Ordering::SeqCst) == 4
    });
    origin.hold(false);
    assert!(answers.iter().take(2).all(|(_, block)| block.is_ok()));
    wait_for("all blocks", || store.counters().frames_count == 42);
    assert_eq!(store.counters().fetched_blocks_count, 42);
}

#[test]
fn without_local_memory_every_read_is_a_fetch() {
    let (made, store) = started(0, LONG);
    for _ in 0..3 {
        store.read(place(1, 0)).unwrap();
    }
    assert_eq!(made.fetches(0), 3);
    assert_eq!(store.counters().local_used_bytes, 0);
}

/// Memory of other hosts, as a map.
#[derive(Default)]
struct MapMemory(Mutex<HashMap<Hash, Block>>);

impl ClusterMemory for MapMemory {
    fn find(&self, hash: &Hash, _deadline: Instant) -> Option<Block> {
        lock(&self.0).get(hash).cloned()
    }

    fn offer(&self, hash: &Hash, block: &Block) {
        lock(&self.0).insert(*hash, Arc::clone(block));
    }
}

#[test]
fn a_block_of_another_host_costs_no_fetch_from_the_source() {
    let memory = Arc::new(MapMemory::default());
    let cluster = || Some(Arc::<MapMemory>::clone(&memory) as Arc<dyn ClusterMemory>);
    let (first, store) = started_with(cluster(), 64, LONG);
    store.read(place(1, 7)).unwrap();
    assert_eq!(store.peek(&place(1, 7).hash).unwrap().to_vec(), contents(7));
    wait_for("the offer", || lock(&memory.0).len() == 1);
    let (second, other) = started_with(cluster(), 64, LONG);
    assert_eq!(*other.read(place(1, 7)).unwrap(), contents(7));
    assert_eq!((first.fetches(7), second.fetches(7)), (1, 0));
    let counters = other.counters();
    let reads = (counters.cluster_reads_count, counters.source_reads_count);
    assert_eq!(reads, (1, 0));
    assert_eq!(counters.cluster_bytes, BLOCK_BYTES);
    assert_eq!(counters.fetched_blocks_count, 0);
}

/// Local memory against the slow and obvious way: a vector, sorted by last use.
#[test]
fn local_memory_is_an_exact_lru() {
    let mut random = Random::new();
    let mut memory = LocalMemory::new(20);
    let mut slow: Vec<(Hash, u64, i64)> = Vec::new();
    for now_ms in 0..20_000 {
        let key = random.below(16) as u8;
        let (hash, bytes) = ([key; 32], 1 + u64::from(key) % 4);
        let found = slow.iter().position(|(other, ..)| *other == hash);
        if random.below(2) == 0 {
            let age = memory
                .get(&hash, now_ms)
                .map(|(block, age)| (block.len() as u64, age));
            let wanted = found.map(|at| (bytes, (now_ms - slow[at].2) as u64));
            assert_eq!(age, wanted);
            if let Some(at) = found {
                slow.remove(at);
                slow.insert(0, (hash, bytes, now_ms));
            }
        } else {
            memory.insert(hash, Arc::new(vec![key; bytes as usize]), now_ms);
            if let Some(at) = found {
                slow.remove(at);
            }
            slow.insert(0, (hash, bytes, now_ms));
            while slow.iter().map(|(_, bytes, _)| bytes).sum::<u64>() > 20 {
                slow.pop();
            }
        }
        let wanted: Vec<Hash> = slow.iter().map(|(hash, ..)| *hash).collect();
        assert_eq!(memory.by_last_use().copied().collect::<Vec<_>>(), wanted);
        assert_eq!(
            memory.bytes(),
            slow.iter().map(|(_, bytes, _)| bytes).sum::<u64>()
        );
        assert_eq!(memory.frames(), slow.len() as u64);
    }
}
