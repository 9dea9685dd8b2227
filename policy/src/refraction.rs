//! How long a client asks for nothing more after it was refused (Acharya & Setia, section 3.1: Dodo's refraction period).
//!
//! When the cluster has no memory left it will hardly have some a moment later: who asks again at once pays for the question
//! and has nothing. [`crate::placement`] has the same for a single host that failed.

/// What a client remembers of its last refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refraction {
    period_ms: i64,
    until_ms: i64,
}

impl Refraction {
    /// Never refused yet; each refusal is respected for `period_ms`.
    #[must_use]
    pub const fn new(period_ms: i64) -> Self {
        Self {
            period_ms,
            until_ms: i64::MIN,
        }
    }

    /// Whether it may ask now.
    #[must_use]
    pub const fn may_ask(&self, now_ms: i64) -> bool {
        now_ms >= self.until_ms
    }

    /// It was refused now.
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
}
