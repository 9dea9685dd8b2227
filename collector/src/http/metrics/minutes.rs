//! Counts events by minute, for a rate that several collectors can add up.

use std::sync::{Mutex, MutexGuard, PoisonError};

const MINUTE_MS: i64 = 60_000;

/// Numbers of events in the present minute and in the last one.
#[derive(Debug, Default)]
pub(super) struct Minutes(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// Number of the present minute since 1970-01-01 UTC.
    minute: i64,
    present: u64,
    last: u64,
}

impl Minutes {
    /// Counts an event at `now_ms`, in ms since 1970-01-01 UTC.
    pub(super) fn count(&self, now_ms: i64) {
        self.at(now_ms).present += 1;
    }

    /// Number of events in the last full minute before `now_ms`. After a step of the clock it is 0 for a minute.
    pub(super) fn last(&self, now_ms: i64) -> u64 {
        self.at(now_ms).last
    }

    fn at(&self, now_ms: i64) -> MutexGuard<'_, Counts> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let minute = now_ms.div_euclid(MINUTE_MS);
        if minute != counts.minute {
            let is_next = minute == counts.minute + 1;
            *counts = Counts {
                minute,
                present: 0,
                last: if is_next { counts.present } else { 0 },
            };
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_full_minute_is_counted() {
        let minutes = Minutes::default();
        for now_ms in [60_000, 90_000, 119_999, 120_000] {
            minutes.count(now_ms);
        }
        assert_eq!(minutes.last(120_001), 3);
        assert_eq!(minutes.last(180_000), 1);
        assert_eq!(minutes.last(240_000), 0);
        minutes.count(240_000);
        assert_eq!(minutes.last(360_000), 0); // a whole minute without events lies between
        assert_eq!(minutes.last(0), 0); // the clock was set back
    }
}
