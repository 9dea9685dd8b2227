//! Refraction period: time after a refusal or failure in which a client makes no further request (Acharya &
//! Setia, section 3.1, Dodo).
//!
//! A cluster without free memory will hardly have any a moment later: a client that repeats its request
//! immediately has the cost of another request and gets nothing. The same holds for a single host that
//! failed.

/// The refraction period after the last refusal or failure. Times are of any clock that never goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refraction {
    period_ms: i64,
    until_ms: i64,
}

impl Refraction {
    /// State before any refusal; each refusal starts a period of `period_ms`.
    #[must_use]
    pub const fn new(period_ms: i64) -> Self {
        Self {
            period_ms,
            until_ms: i64::MIN,
        }
    }

    /// Returns the period that a refusal at `refused_ms` started.
    #[must_use]
    pub const fn since(refused_ms: i64, period_ms: i64) -> Self {
        let mut refraction = Self::new(period_ms);
        refraction.refused(refused_ms);
        refraction
    }

    /// Returns true if the client may make a request now.
    #[must_use]
    pub const fn may_ask(&self, now_ms: i64) -> bool {
        self.remaining_ms(now_ms) == 0
    }

    /// Remainder of the period; 0 if it is over or never began.
    #[must_use]
    pub const fn remaining_ms(&self, now_ms: i64) -> i64 {
        if now_ms >= self.until_ms {
            return 0;
        }
        self.until_ms.saturating_sub(now_ms)
    }

    /// Records a refusal at `now_ms`.
    pub const fn refused(&mut self, now_ms: i64) {
        self.until_ms = now_ms.saturating_add(self.period_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_from_each_refusal_on() {
        let mut refraction = Refraction::new(60_000);
        assert!(refraction.may_ask(i64::MIN));
        refraction.refused(1_000);
        let asks = [1_000, 60_999, 61_000].map(|now| refraction.may_ask(now));
        assert_eq!(asks, [false, false, true]);
        refraction.refused(61_000);
        assert!(!refraction.may_ask(120_999) && refraction.may_ask(121_000));
        let mut none = Refraction::new(0);
        none.refused(5);
        assert!(none.may_ask(5));
    }

    #[test]
    fn a_second_refusal_is_followed_by_another_whole_period() {
        let mut refraction = Refraction::new(60_000);
        assert_eq!(refraction.remaining_ms(0), 0);
        refraction.refused(0);
        assert_eq!(refraction.remaining_ms(1_000), 59_000);
        assert_eq!(refraction.remaining_ms(60_000), 0);
        refraction.refused(30_000);
        assert_eq!(refraction, Refraction::since(30_000, 60_000));
        assert_eq!(refraction.remaining_ms(60_000), 30_000);
        assert_eq!(refraction.remaining_ms(90_000), 0);
        assert_eq!(Refraction::since(5, i64::MAX).remaining_ms(0), i64::MAX);
    }
}
