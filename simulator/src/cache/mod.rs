//! Replays a stream through caches: counts how often each eviction policy misses at each size. Hosts, network
//! and time play no part.
//!
//! Objects are numbered once, while the stream is read batch by batch; every cache then processes the batch.
//! The counts equal those of libCacheSim for the same stream (tests/readers/test_streams.py). An object keeps
//! the size of its first request, and an object larger than the cache is never stored.

mod run;

use crate::streams::{Objects, StreamError, StreamRequest};
use gleaner_policy::eviction::Policy;
use run::{BatchReplay, RunMaker};

/// Capacity of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Capacity {
    /// Number of objects, of any size.
    Objects(u64),
    /// Total bytes of the objects.
    Bytes(u64),
}

/// A cache that replays the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cache {
    /// Policy that chooses which object leaves.
    pub policy: Policy,
    /// Capacity of the cache.
    pub capacity: Capacity,
}

/// Counts of one cache over a whole stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counts {
    /// Number of requests.
    pub requests: u64,
    /// Number of requests for objects that were not in the cache.
    pub misses: u64,
    /// Bytes of all requests.
    pub bytes: u64,
    /// Bytes of the requests for objects that were not in the cache.
    pub missed_bytes: u64,
}

/// Reason why a replay failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The stream could not be read.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The stream has more objects than can be numbered.
    #[error("the stream has more than 2^32 - 2 objects; replay a part of it")]
    TooManyObjects,
}

/// Requests per batch. A batch is small enough for the processor's cache and large enough for memory accesses
/// to overlap.
const BATCH_REQUESTS: usize = 4096;

/// Replays a stream in every one of `caches` separately, each starting empty, and returns their counts in the
/// same order. Memory use is 12 to 21 bytes per object and cache, and 26 to 52 bytes per object in addition;
/// requests take none.
///
/// # Errors
/// [`ReplayError`].
pub fn replay(
    stream: impl Iterator<Item = Result<StreamRequest, StreamError>>,
    caches: &[Cache],
) -> Result<Vec<Counts>, ReplayError> {
    let begin = |cache: &Cache| cache.policy.visit(RunMaker(cache.capacity));
    let mut runs: Vec<_> = caches.iter().map(begin).collect();
    let mut objects = Objects::default();
    let mut batch = Batch::default();
    for recorded in stream {
        let request = recorded?.request;
        batch.objects.push(request.object);
        batch.bytes.push(request.bytes);
        if batch.objects.len() == BATCH_REQUESTS {
            batch.go(&mut objects, &mut runs)?;
        }
    }
    batch.go(&mut objects, &mut runs)?;
    Ok(runs.iter().map(|run| run.counts()).collect())
}

/// Requests that the caches process together.
#[derive(Default)]
struct Batch {
    objects: Vec<u64>,
    bytes: Vec<u32>,
    numbers: Vec<u32>,
}

impl Batch {
    fn go(
        &mut self,
        objects: &mut Objects,
        runs: &mut [Box<dyn BatchReplay>],
    ) -> Result<(), ReplayError> {
        if !objects.number_all(&self.objects, &mut self.numbers) {
            return Err(ReplayError::TooManyObjects);
        }
        for run in runs {
            run.ask(&self.numbers, &self.bytes, objects.len());
        }
        self.objects.clear();
        self.bytes.clear();
        self.numbers.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
