//! Share of the blocks that a member was named as a holder of, and had. A member that lacks half of them would
//! lose what is sent to it, too.

use gleaner_policy::refraction::Refraction;

/// Time in which requests are counted, and for which a member without its blocks gets no others.
const WINDOW_MS: i64 = 60_000;
/// Fewest requests from which a share counts. A few may be old entries of the directory.
const FEWEST: u32 = 16;

/// Requests of one member's blocks in the present window.
#[derive(Debug)]
pub(super) struct FoundShare {
    begun_ms: i64,
    requests: u32,
    missing: u32,
    avoided: Refraction,
}

impl Default for FoundShare {
    fn default() -> Self {
        Self {
            begun_ms: 0,
            requests: 0,
            missing: 0,
            avoided: Refraction::new(WINDOW_MS),
        }
    }
}

impl FoundShare {
    /// Counts a request. Returns true if the member is no target from now on, and was one before.
    pub(super) fn note(&mut self, is_found: bool, now_ms: i64) -> bool {
        if now_ms.saturating_sub(self.begun_ms) >= WINDOW_MS {
            (self.begun_ms, self.requests, self.missing) = (now_ms, 0, 0);
        }
        self.requests += 1;
        self.missing += u32::from(!is_found);
        if self.requests < FEWEST || self.missing * 2 < self.requests {
            return false;
        }
        (self.begun_ms, self.requests, self.missing) = (now_ms, 0, 0);
        let was_target = self.is_target(now_ms);
        self.avoided.refused(now_ms);
        was_target
    }

    /// Returns true if evicted blocks may be sent to the member.
    pub(super) const fn is_target(&self, now_ms: i64) -> bool {
        self.avoided.may_ask(now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_blocks_missing_ends_puts_for_a_minute() {
        let mut share = FoundShare::default();
        for number in 1..FEWEST {
            assert!(!share.note(number % 2 == 0, 5), "{number}");
        }
        assert!(share.is_target(5));
        assert!(share.note(true, 5)); // 8 of 16
        assert!(!share.is_target(WINDOW_MS + 4));
        assert!(share.is_target(WINDOW_MS + 5));
    }

    #[test]
    fn fewer_than_half_or_long_ago_is_no_reason() {
        let mut share = FoundShare::default();
        for number in 0..1000 {
            assert!(!share.note(number % 5 < 3, 5), "{number}");
        }
        let mut share = FoundShare::default();
        for number in 0..100 {
            assert!(!share.note(false, number * WINDOW_MS), "{number}");
        }
        assert!(share.is_target(0));
    }
}
