//! Counts of reads, fetches and failures.

use super::{FetchError, Supplier};
use gleaner_policy::global::age::{CLASSES, class_begin_ms, class_of};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};

/// Figures of a store since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoreCounters {
    /// Maximum bytes of blocks in local memory.
    pub local_size_bytes: u64,
    /// Bytes of the blocks in local memory.
    pub local_used_bytes: u64,
    /// Blocks in local memory.
    pub frames_count: u64,
    /// Requests of blocks that were answered from local memory.
    pub local_reads_count: u64,
    /// Bytes that readers used of these blocks.
    pub local_read_bytes: u64,
    /// Requests of blocks that were answered by a fetch from another host's memory.
    pub cluster_reads_count: u64,
    /// Bytes that readers used of these blocks.
    pub cluster_read_bytes: u64,
    /// Requests of blocks that were answered by a fetch from the source.
    pub source_reads_count: u64,
    /// Bytes that readers used of these blocks.
    pub source_read_bytes: u64,
    /// Blocks fetched from the source; requests of the same block at the same time share one fetch.
    pub fetched_blocks_count: u64,
    /// Bytes fetched from the source.
    pub fetched_bytes: u64,
    /// Blocks fetched from other hosts' memory.
    pub cluster_blocks_count: u64,
    /// Bytes fetched from other hosts' memory.
    pub cluster_bytes: u64,
    /// Fetches that were begun before a reader requested the block.
    pub ahead_blocks_count: u64,
    /// Fetches whose bytes differed from the catalog.
    pub differing_blocks_count: u64,
    /// Fetches that failed because the source lacks the file.
    pub missing_blocks_count: u64,
    /// Fetches that failed because the source does not work.
    pub unavailable_blocks_count: u64,
    /// Requests and fetches that timed out.
    pub timed_out_count: u64,
    /// Hits in local memory by the time since the block's last use; classes without hits are left out.
    pub hit_ages: Vec<AgeClass>,
}

/// Hits of blocks in one class of ages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgeClass {
    /// Least age in the class, in ms; the next class begins where this one ends.
    pub from_ms: u64,
    /// Number of hits.
    pub hits_count: u64,
}

pub(super) struct Counts {
    local_reads: AtomicU64,
    local_bytes: AtomicU64,
    cluster_reads: AtomicU64,
    cluster_read_bytes: AtomicU64,
    cluster_blocks: AtomicU64,
    cluster_bytes: AtomicU64,
    source_reads: AtomicU64,
    source_bytes: AtomicU64,
    fetched: AtomicU64,
    fetched_bytes: AtomicU64,
    ahead: AtomicU64,
    differing: AtomicU64,
    missing: AtomicU64,
    unavailable: AtomicU64,
    timed_out: AtomicU64,
    hit_ages: [AtomicU64; CLASSES],
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            local_reads: AtomicU64::default(),
            local_bytes: AtomicU64::default(),
            cluster_reads: AtomicU64::default(),
            cluster_read_bytes: AtomicU64::default(),
            cluster_blocks: AtomicU64::default(),
            cluster_bytes: AtomicU64::default(),
            source_reads: AtomicU64::default(),
            source_bytes: AtomicU64::default(),
            fetched: AtomicU64::default(),
            fetched_bytes: AtomicU64::default(),
            ahead: AtomicU64::default(),
            differing: AtomicU64::default(),
            missing: AtomicU64::default(),
            unavailable: AtomicU64::default(),
            timed_out: AtomicU64::default(),
            hit_ages: std::array::from_fn(|_| AtomicU64::default()),
        }
    }
}

fn add(count: &AtomicU64, number: u64) {
    count.fetch_add(number, Ordering::Relaxed);
}

impl Counts {
    pub(super) fn count_hit(&self, age_ms: u64, used_bytes: u64) {
        add(&self.local_reads, 1);
        add(&self.local_bytes, used_bytes);
        if let Some(class) = self.hit_ages.get(class_of(age_ms)) {
            add(class, 1);
        }
    }

    pub(super) fn count_read(&self, supplier: Supplier, used_bytes: u64) {
        let (reads, bytes) = match supplier {
            Supplier::Cluster => (&self.cluster_reads, &self.cluster_read_bytes),
            Supplier::Source => (&self.source_reads, &self.source_bytes),
        };
        add(reads, 1);
        add(bytes, used_bytes);
    }

    pub(super) fn count_fetch(&self, supplier: Supplier, fetched_bytes: u64) {
        let (blocks, bytes) = match supplier {
            Supplier::Cluster => (&self.cluster_blocks, &self.cluster_bytes),
            Supplier::Source => (&self.fetched, &self.fetched_bytes),
        };
        add(blocks, 1);
        add(bytes, fetched_bytes);
    }

    pub(super) fn count_ahead(&self) {
        add(&self.ahead, 1);
    }

    pub(super) fn count_failure(&self, error: &FetchError) {
        let count = match error {
            FetchError::Differs { .. } => &self.differing,
            FetchError::Missing { .. } => &self.missing,
            FetchError::Unavailable { .. } => &self.unavailable,
            FetchError::TimedOut => &self.timed_out,
        };
        add(count, 1);
    }

    pub(super) fn snapshot(&self, size_bytes: u64, frames: u64, used_bytes: u64) -> StoreCounters {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let classes = self.hit_ages.iter().map(read).enumerate();
        let hit_ages = classes.filter(|(_, hits)| *hits > 0);
        StoreCounters {
            local_size_bytes: size_bytes,
            local_used_bytes: used_bytes,
            frames_count: frames,
            local_reads_count: read(&self.local_reads),
            local_read_bytes: read(&self.local_bytes),
            cluster_reads_count: read(&self.cluster_reads),
            cluster_read_bytes: read(&self.cluster_read_bytes),
            cluster_blocks_count: read(&self.cluster_blocks),
            cluster_bytes: read(&self.cluster_bytes),
            source_reads_count: read(&self.source_reads),
            source_read_bytes: read(&self.source_bytes),
            fetched_blocks_count: read(&self.fetched),
            fetched_bytes: read(&self.fetched_bytes),
            ahead_blocks_count: read(&self.ahead),
            differing_blocks_count: read(&self.differing),
            missing_blocks_count: read(&self.missing),
            unavailable_blocks_count: read(&self.unavailable),
            timed_out_count: read(&self.timed_out),
            hit_ages: hit_ages
                .map(|(class, hits_count)| AgeClass {
                    from_ms: class_begin_ms(class),
                    hits_count,
                })
                .collect(),
        }
    }
}
