//! Stack distances from a sample of the pages (SHARDS with a fixed number of pages: Waldspurger, Park, Garthwaite and
//! Ahmad, FAST 2015).
//!
//! A page is in the sample if its hash is below a threshold. Where the sample grows above [`MOST_SAMPLED`] pages, the
//! threshold falls to the largest hash in it, and the page with that hash leaves. A sampled reference at sampling rate
//! R counts as 1/R references at 1/R times its distance. At the end, the difference between the number of references
//! and the counted ones goes to the smallest distance, which corrects most of the error (SHARDS-adj).

use super::counts::Faults;
use super::recency::Recency;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

/// Maximum number of sampled pages.
const MOST_SAMPLED: usize = 8192;
/// Hashes are below 2 to this power.
const HASH_BITS: u32 = 48;
/// Buckets of distances per factor of e; a bucket is half a per cent wide.
const BUCKETS_PER_E: f64 = 200.0;

/// Estimate of the stack distances of a stream.
#[derive(Debug)]
pub struct Shards {
    seed: u64,
    /// Hashes below this one are sampled.
    threshold: u64,
    /// Slot of each sampled page.
    slots: HashMap<u64, u32>,
    /// Slots that no page has, below `slots_end`.
    free: Vec<u32>,
    slots_end: u32,
    /// Sampled pages by hash, the largest first.
    hashes: BinaryHeap<(u64, u64)>,
    order: Recency,
    /// Dirty level of each slot; 0 for a clean page.
    dirty: Vec<f64>,
    /// Estimated reuses by bucket of distance.
    reuses: BTreeMap<u32, f64>,
    /// Change of the estimated write-backs at a bucket of sizes.
    write_back_steps: BTreeMap<u32, f64>,
    /// Estimated references, which are compared with the counted ones.
    estimated: f64,
    references: u64,
}

impl Shards {
    /// Begins an estimate; the seed selects the sample.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            threshold: 1 << HASH_BITS,
            slots: HashMap::new(),
            free: Vec::new(),
            slots_end: 0,
            hashes: BinaryHeap::new(),
            order: Recency::default(),
            dirty: Vec::new(),
            reuses: BTreeMap::new(),
            write_back_steps: BTreeMap::new(),
            estimated: 0.0,
            references: 0,
        }
    }

    /// Makes a reference to a page.
    #[inline]
    pub fn reference(&mut self, page: u64, is_write: bool) {
        self.references += 1;
        let hash = hash(page, self.seed);
        if hash < self.threshold {
            self.sample(page, hash, is_write);
        }
    }

    /// Share of the pages that is in the sample at present.
    #[must_use]
    pub fn sampled_share(&self) -> f64 {
        self.threshold as f64 / (1_u64 << HASH_BITS) as f64
    }

    fn sample(&mut self, page: u64, hash: u64, is_write: bool) {
        let weight = 1.0 / self.sampled_share();
        self.estimated += weight;
        let slot = match self.slots.get(&page) {
            Some(slot) => *slot,
            None => self.begin(page, hash),
        };
        let level = self.dirty.get(slot as usize).copied().unwrap_or(0.0);
        let mut level_now = if is_write { 1.0 } else { level };
        if let Some(position) = self.order.take(slot) {
            let distance = (f64::from(position) * weight).max(1.0);
            *self.reuses.entry(bucket(distance)).or_default() += weight;
            if level > 0.0 {
                self.write_back(level, distance, weight);
                if !is_write {
                    level_now = level.max(distance);
                }
            }
        }
        self.order.push(slot);
        if let Some(level) = self.dirty.get_mut(slot as usize) {
            *level = level_now;
        }
        if self.slots.len() > MOST_SAMPLED {
            self.lower_threshold();
        }
    }

    /// Adds a page to the sample.
    fn begin(&mut self, page: u64, hash: u64) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.dirty.push(0.0);
            self.slots_end += 1;
            self.slots_end - 1
        });
        self.slots.insert(page, slot);
        self.hashes.push((hash, page));
        slot
    }

    /// Removes the page with the largest hash, and all others with the same one.
    fn lower_threshold(&mut self) {
        let Some((largest, _)) = self.hashes.peek().copied() else {
            return;
        };
        let weight = 1.0 / self.sampled_share();
        while let Some((hash, page)) = self.hashes.peek().copied() {
            if hash < largest {
                break;
            }
            self.hashes.pop();
            let Some(slot) = self.slots.remove(&page) else {
                continue;
            };
            // The page is lost from sight. Its dirty levels below its present place were written back.
            let level = self.dirty.get(slot as usize).copied().unwrap_or(0.0);
            if let Some(position) = self.order.take(slot)
                && level > 0.0
            {
                self.write_back(level, f64::from(position) * weight, weight);
            }
            if let Some(level) = self.dirty.get_mut(slot as usize) {
                *level = 0.0;
            }
            self.free.push(slot);
        }
        self.threshold = largest;
    }

    fn write_back(&mut self, from: f64, until: f64, weight: f64) {
        let (from, until) = (bucket(from), bucket(until));
        if from < until {
            *self.write_back_steps.entry(from).or_default() += weight;
            *self.write_back_steps.entry(until).or_default() -= weight;
        }
    }

    /// Returns the estimated faults of these memory sizes (in pages), which must be in ascending order.
    #[must_use]
    pub fn finish(mut self, sizes: &[u64]) -> Vec<Faults> {
        let weight = 1.0 / self.sampled_share();
        let positions = (1..=self.order.len()).rev();
        let last: Vec<(u32, u32)> = self.order.oldest_first().zip(positions).collect();
        for (slot, position) in last {
            let level = self.dirty.get(slot as usize).copied().unwrap_or(0.0);
            if level > 0.0 {
                self.write_back(level, f64::from(position) * weight, weight);
            }
        }
        let missing = self.references as f64 - self.estimated;
        let mut reuse: f64 = self.reuses.values().sum();
        if let Some(first) = self.reuses.values_mut().next() {
            *first += missing;
            reuse += missing;
        }
        let mut write_backs = 0.0_f64;
        let mut reuses = self.reuses.iter().peekable();
        let mut steps = self.write_back_steps.iter().peekable();
        let at = |size: &u64| {
            let until = bucket((*size as f64).max(1.0));
            while let Some((_, count)) = reuses.next_if(|(bucket, _)| **bucket <= until) {
                reuse -= count;
            }
            while let Some((_, step)) = steps.next_if(|(bucket, _)| **bucket <= until) {
                write_backs += step;
            }
            Faults {
                reuse: reuse.max(0.0),
                write_backs: write_backs.max(0.0),
            }
        };
        sizes.iter().map(at).collect()
    }
}

/// Bucket of a distance of at least 1.
fn bucket(distance: f64) -> u32 {
    (distance.ln() * BUCKETS_PER_E) as u32 // below 2^14 for every finite distance of 64 bits
}

/// Hashes a page below 2 to the power of [`HASH_BITS`], by both halves of a product and a second mixing.
#[inline]
fn hash(page: u64, seed: u64) -> u64 {
    let product = u128::from(page ^ seed ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    let mixed = (product as u64) ^ (product >> 64) as u64;
    let product = u128::from(mixed ^ seed.rotate_left(32)) * 0xa076_1d64_78bd_642f;
    ((product as u64) ^ (product >> 64) as u64) >> (64 - HASH_BITS)
}
