//! Fetches of blocks from the source that are under way in the cluster, as their homes know them.

use crate::catalog::Hash;
use gleaner_policy::global::NodeId;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::timeout;

/// Most fetches that are noted at one time; others are not joined.
const MOST_FETCHES: usize = 1 << 16;
/// Most fetches that are noted for one host.
const MOST_PER_HOST: usize = 1 << 12;

/// A fetch by another host, to wait for.
#[derive(Clone, Debug)]
pub struct PendingFetch {
    until: Instant,
    ended: watch::Receiver<()>,
}

impl PendingFetch {
    /// Waits until the fetch has ended, but not longer than the fetch counts as under way.
    pub async fn wait(mut self) {
        let remaining = self.until.saturating_duration_since(Instant::now());
        // Both results mean the same: the caller looks for the block again. An error is the fetch's end, too.
        let _ = timeout(remaining, self.ended.changed()).await;
    }
}

/// All fetches that are noted.
pub struct Fetches {
    longest: Duration,
    fetches: HashMap<Hash, Fetch>,
    /// Fetches in the order in which they end; one that has landed is no longer in the map.
    order: VecDeque<(Instant, Hash)>,
    by_host: HashMap<NodeId, usize>,
}

struct Fetch {
    by: NodeId,
    until: Instant,
    /// Dropped when the fetch ends, which wakes all waiters.
    end: watch::Sender<()>,
}

impl Fetches {
    /// Makes an empty table. Each fetch counts as under way for `longest`, at most.
    #[must_use]
    pub fn new(longest: Duration) -> Self {
        Self {
            longest,
            fetches: HashMap::new(),
            order: VecDeque::new(),
            by_host: HashMap::new(),
        }
    }

    /// Returns the fetch of a block by another host. If there is none, notes one by `reader`.
    pub fn join(&mut self, hash: &Hash, reader: NodeId, now: Instant) -> Option<PendingFetch> {
        self.expire(now);
        if let Some(fetch) = self.fetches.get(hash) {
            return (fetch.by != reader).then(|| PendingFetch {
                until: fetch.until,
                ended: fetch.end.subscribe(),
            });
        }
        let of_reader = self.by_host.get(&reader).copied().unwrap_or(0);
        if self.order.len() >= MOST_FETCHES || of_reader >= MOST_PER_HOST {
            return None;
        }
        let until = now + self.longest;
        self.by_host.insert(reader, of_reader + 1);
        self.order.push_back((until, *hash));
        self.fetches.insert(
            *hash,
            Fetch {
                by: reader,
                until,
                end: watch::Sender::new(()),
            },
        );
        None
    }

    /// Ends the fetch of a block, and wakes the readers that wait for it.
    pub fn land(&mut self, hash: &Hash) {
        let Some(fetch) = self.fetches.remove(hash) else {
            return;
        };
        if let Some(count) = self.by_host.get_mut(&fetch.by) {
            *count = count.saturating_sub(1);
        }
    }

    fn expire(&mut self, now: Instant) {
        while let Some((until, hash)) = self.order.front().copied() {
            if until > now {
                return;
            }
            self.order.pop_front();
            // A later fetch of the same block ends later.
            if self.fetches.get(&hash).is_some_and(|f| f.until <= now) {
                self.land(&hash);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_millis(500);

    #[test]
    fn one_host_fetches_and_others_wait_until_it_ends() {
        let mut fetches = Fetches::new(LONGEST);
        let (now, hash) = (Instant::now(), [1; 32]);
        assert!(fetches.join(&hash, 1, now).is_none());
        assert!(fetches.join(&hash, 1, now).is_none()); // the same host again
        let waiter = fetches.join(&hash, 2, now).unwrap();
        assert!(!waiter.ended.has_changed().unwrap());
        fetches.land(&hash);
        assert!(waiter.ended.has_changed().is_err());
        assert!(fetches.join(&hash, 2, now).is_none());
        assert!(fetches.join(&hash, 1, now).is_some());
    }

    #[test]
    fn a_host_that_never_finishes_is_waited_for_once() {
        let mut fetches = Fetches::new(LONGEST);
        let (now, hash) = (Instant::now(), [1; 32]);
        fetches.join(&hash, 1, now);
        let before = now + LONGEST - Duration::from_millis(1);
        assert!(fetches.join(&hash, 2, before).is_some());
        assert!(fetches.join(&hash, 2, now + LONGEST).is_none());
        assert!(fetches.join(&hash, 3, now + LONGEST).is_some());
        assert_eq!(fetches.by_host[&1], 0);
    }

    #[test]
    fn one_host_cannot_fill_the_table() {
        let mut fetches = Fetches::new(LONGEST);
        let now = Instant::now();
        for number in 0..100_000_u64 {
            let hash = blake3::hash(&number.to_le_bytes()).into();
            assert!(fetches.join(&hash, 1, now).is_none());
        }
        assert_eq!(fetches.fetches.len(), MOST_PER_HOST);
        assert!(fetches.join(&[7; 32], 2, now).is_none());
        assert!(fetches.join(&[7; 32], 3, now).is_some());
        fetches.join(&[8; 32], 1, now + LONGEST);
        assert_eq!((fetches.fetches.len(), fetches.order.len()), (1, 1));
    }
}
