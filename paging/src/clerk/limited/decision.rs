//! Rules of raising and lowering a limit: a state machine without files or clock.
//!
//! The kernel ends a program of a control group when one attempt to free memory at the group's limit fails, even
//! if there is room in swap. The group's programs therefore wait instead (`memory.oom_control`). Each time they
//! wait, the limit is raised by one step, which wakes them, and lowered again at once; to lower the limit, the
//! kernel tries harder than for a page fault.

/// Bytes by which one step raises the limit.
pub(super) const STEP_BYTES: u64 = 1 << 20;
/// Maximum of bytes above the wanted limit, reached when the limit cannot be lowered again.
pub(super) const MOST_RAISED_BYTES: u64 = 64 << 20;

/// State of the group and of swap, as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// True while programs wait for memory at the limit.
    pub(super) is_short: bool,
    /// Unused bytes of all swap areas.
    pub(super) free_swap_bytes: u64,
}

/// Change of the group's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Sets the limit above the wanted one. The caller reports the success of its next order, [`Limiter::lower`].
    Raise {
        /// New limit of the group.
        limit_bytes: u64,
    },
    /// Sets the limit to the wanted one.
    Lower {
        /// New limit of the group.
        limit_bytes: u64,
    },
    /// Lets the kernel end programs of the group: memory and swap are full.
    AllowKills,
}

/// Limit of one group.
#[derive(Clone, Debug)]
pub(super) struct Limiter {
    local_bytes: u64,
    raised_bytes: u64,
    raises: u64,
    is_kill_allowed: bool,
}

impl Limiter {
    /// Makes the state of a group whose limit is `local_bytes`.
    pub(super) fn new(local_bytes: u64) -> Self {
        Self {
            local_bytes,
            raised_bytes: 0,
            raises: 0,
            is_kill_allowed: false,
        }
    }

    /// Returns the change that a look at the group calls for.
    pub(super) fn next(&mut self, look: Look) -> Option<Order> {
        if self.is_kill_allowed || !look.is_short {
            return self.lower();
        }
        let raised_bytes = self.raised_bytes + STEP_BYTES;
        if look.free_swap_bytes < STEP_BYTES || raised_bytes > MOST_RAISED_BYTES {
            self.is_kill_allowed = true;
            return Some(Order::AllowKills);
        }
        self.raised_bytes = raised_bytes;
        self.raises += 1;
        Some(Order::Raise {
            limit_bytes: self.local_bytes.saturating_add(raised_bytes),
        })
    }

    /// Returns the change that restores the wanted limit; `None` if the limit is not raised.
    pub(super) fn lower(&self) -> Option<Order> {
        self.is_raised().then_some(Order::Lower {
            limit_bytes: self.local_bytes,
        })
    }

    /// Notes that the limit was lowered. Without this call, the limit counts as raised still.
    pub(super) fn lowered(&mut self) {
        self.raised_bytes = 0;
    }

    /// Returns true while the limit is above the wanted one.
    pub(super) fn is_raised(&self) -> bool {
        self.raised_bytes > 0
    }

    /// Number of steps by which the limit was raised so far.
    pub(super) fn raises(&self) -> u64 {
        self.raises
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: u64 = 32 << 20;
    const SHORT: Look = Look {
        is_short: true,
        free_swap_bytes: 1 << 30,
    };
    const CALM: Look = Look {
        is_short: false,
        ..SHORT
    };

    fn raise(steps: u64) -> Option<Order> {
        Some(Order::Raise {
            limit_bytes: LOCAL + steps * STEP_BYTES,
        })
    }

    const LOWER: Option<Order> = Some(Order::Lower { limit_bytes: LOCAL });

    #[test]
    fn each_shortage_raises_by_one_step_and_the_limit_returns() {
        let mut limiter = Limiter::new(LOCAL);
        assert_eq!(limiter.next(CALM), None);
        for number in 1..=200 {
            assert_eq!(limiter.next(SHORT), raise(1));
            assert_eq!(limiter.lower(), LOWER);
            limiter.lowered();
            assert_eq!(limiter.next(CALM), None);
            assert_eq!(limiter.raises(), number);
        }
    }

    #[test]
    fn a_limit_that_cannot_be_lowered_rises_further_and_is_lowered_later() {
        let mut limiter = Limiter::new(LOCAL);
        assert_eq!(limiter.next(SHORT), raise(1));
        assert_eq!(limiter.next(SHORT), raise(2));
        assert_eq!(limiter.next(CALM), LOWER);
        // The kernel refused: the next look tries again.
        assert_eq!(limiter.next(CALM), LOWER);
        assert_eq!(limiter.next(SHORT), raise(3));
        assert_eq!(limiter.next(CALM), LOWER);
        limiter.lowered();
        assert_eq!(limiter.next(CALM), None);
        assert_eq!(limiter.next(SHORT), raise(1));
    }

    #[test]
    fn the_limit_never_exceeds_the_maximum_and_kills_are_allowed_then() {
        let mut limiter = Limiter::new(LOCAL);
        for steps in 1..=MOST_RAISED_BYTES / STEP_BYTES {
            assert_eq!(limiter.next(SHORT), raise(steps));
        }
        assert_eq!(limiter.next(SHORT), Some(Order::AllowKills));
        // The kernel decides from now on; only the wanted limit is restored.
        assert_eq!(limiter.next(SHORT), LOWER);
        limiter.lowered();
        assert_eq!(limiter.next(SHORT), None);
    }

    #[test]
    fn full_swap_allows_kills_at_once() {
        let mut limiter = Limiter::new(LOCAL);
        let full = Look {
            free_swap_bytes: STEP_BYTES - 1,
            ..SHORT
        };
        assert_eq!(
            limiter.next(Look {
                is_short: false,
                ..full
            }),
            None
        );
        assert_eq!(limiter.next(full), Some(Order::AllowKills));
        assert_eq!(limiter.next(full), None);
        assert_eq!(limiter.raises(), 0);
    }
}
