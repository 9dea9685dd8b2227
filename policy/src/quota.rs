//! Quota of a host: the memory that it may lend (Acharya & Setia, section 5).
//!
//! ```text
//! recruitable = available + guest − headroom                           (the paper's)
//! gentle      = the smaller of that and MemAvailable + guest − headroom
//! ```
//!
//! Memory lent counts as lendable in both: a lease must not shrink the quota that it was granted from. Whatever is
//! below 0 in the end is 0, but only in the end: a host that has lent too much has a smaller quota, not a larger one.

use crate::accounting::{Categories, headroom_bytes};
use crate::idle::Verdict;
pub use gleaner_schemas::lending::Mode;

/// The limits that an owner sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Extent to which lending may go.
    pub mode: Mode,
    /// Share of physical memory that is never lent.
    pub headroom_share: f64,
    /// Share of physical memory that is left alone on a host in use ([`Mode::Spare`]); never less than the headroom.
    pub spare_headroom_share: f64,
    /// Never more than this.
    pub cap_bytes: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            mode: Mode::Gentle,
            headroom_share: 0.15,
            spare_headroom_share: 0.5,
            cap_bytes: None,
        }
    }
}

impl Limits {
    /// Share of physical memory that is left alone on a host in use.
    #[must_use]
    pub fn busy_headroom_share(&self) -> f64 {
        self.spare_headroom_share.max(self.headroom_share)
    }
}

/// Reason of a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Idle: the figure is what the accounting gives.
    Idle,
    /// In use, and more than enough is free ([`Mode::Spare`]).
    Spare,
    /// The host is not idle for long enough; it will be at this time.
    NotIdleUntil {
        /// On the clock of the samples.
        at_ms: i64,
    },
    /// The load is too high.
    Loaded,
    /// The owner's activity cannot be seen.
    ActivityUnknown,
    /// MemAvailable is missing, which all modes but the paper's need.
    HarvestableUnknown,
}

/// Memory that a host may lend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Quota now, in bytes.
    pub quota_bytes: u64,
    /// The paper's recruited memory, were the host idle: total − in use − lotsfree − headroom.
    pub recruitable_bytes: u64,
    /// Once idle, within the mode and the cap.
    pub once_idle_bytes: u64,
    /// Reason of this quota.
    pub reason: Reason,
}

/// The quota of a host in the state `verdict`.
///
/// `mem_available_bytes` is MemAvailable as the kernel states it, read while `guest_bytes` were lent.
#[must_use]
pub fn quota(
    categories: &Categories,
    mem_available_bytes: Option<u64>,
    verdict: Verdict,
    limits: &Limits,
) -> Quota {
    let above = |bytes: u64, share: f64| {
        bytes
            .saturating_add(categories.guest_bytes)
            .saturating_sub(headroom_bytes(categories.physical_bytes, share))
    };
    let gentle = |share: f64| {
        let harvestable = above(mem_available_bytes?, share);
        Some(harvestable.min(above(categories.available_bytes, share)))
    };
    let recruitable_bytes = above(categories.available_bytes, limits.headroom_share);
    let bound = match limits.mode {
        Mode::Paper => Some(recruitable_bytes),
        Mode::Gentle | Mode::Spare => gentle(limits.headroom_share),
    };
    let capped = |bytes: u64| bytes.min(limits.cap_bytes.unwrap_or(u64::MAX));
    let once_idle_bytes = capped(bound.unwrap_or(0));
    let spare_bytes = match limits.mode {
        Mode::Spare => capped(gentle(limits.busy_headroom_share()).unwrap_or(0)),
        Mode::Paper | Mode::Gentle => 0,
    };
    let (reason, quota_bytes) = match verdict {
        _ if bound.is_none() => (Reason::HarvestableUnknown, 0),
        // An owner who cannot be seen cannot say that it is too much.
        Verdict::Unknown => (Reason::ActivityUnknown, 0),
        Verdict::Idle { .. } => (Reason::Idle, once_idle_bytes),
        Verdict::Waiting { .. } | Verdict::Loaded if spare_bytes > 0 => {
            (Reason::Spare, spare_bytes)
        }
        Verdict::Waiting { at_ms } => (Reason::NotIdleUntil { at_ms }, 0),
        Verdict::Loaded => (Reason::Loaded, 0),
    };
    Quota {
        quota_bytes,
        recruitable_bytes,
        once_idle_bytes,
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const IDLE: Verdict = Verdict::Idle { since_ms: 0 };
    const WAITING: Verdict = Verdict::Waiting { at_ms: 9 };

    /// A host of 1000 bytes of physical memory: the headroom is 150, the larger one 500.
    fn host(available_bytes: u64, guest_bytes: u64) -> Categories {
        Categories {
            physical_bytes: 1000,
            available_bytes,
            guest_bytes,
            ..Default::default()
        }
    }

    #[test]
    fn golden_table() {
        let gentle = Limits::default();
        let of = |mode| Limits { mode, ..gentle };
        let (paper, spare) = (of(Mode::Paper), of(Mode::Spare));
        let capped = Limits {
            cap_bytes: Some(100),
            ..spare
        };
        let none = Reason::HarvestableUnknown;
        let soon = Reason::NotIdleUntil { at_ms: 9 };
        let (loaded, unseen) = (Reason::Loaded, Reason::ActivityUnknown);
        let some = Some;
        #[rustfmt::skip]
        let cases = [
            // available, guest, MemAvailable, verdict, limits → now, once idle, reason
            (600, 0, some(550), IDLE, gentle, 400, 400, Reason::Idle),
            (600, 0, some(550), IDLE, paper, 450, 450, Reason::Idle),
            (600, 0, some(550), IDLE, spare, 400, 400, Reason::Idle),
            (600, 0, some(550), IDLE, capped, 100, 100, Reason::Idle),
            (600, 0, None, IDLE, gentle, 0, 0, none),
            (600, 0, None, IDLE, spare, 0, 0, none),
            (600, 0, None, IDLE, paper, 450, 450, Reason::Idle),
            (600, 0, some(550), Verdict::Loaded, gentle, 0, 400, loaded),
            (600, 0, some(550), Verdict::Unknown, gentle, 0, 400, unseen),
            (600, 0, some(550), WAITING, gentle, 0, 400, soon),
            (100, 0, some(550), IDLE, gentle, 0, 0, Reason::Idle),
            // 300 lent out of the first case's host: the quota stays.
            (300, 300, some(250), IDLE, gentle, 400, 400, Reason::Idle),
            (300, 300, some(250), IDLE, paper, 450, 450, Reason::Idle),
            // All of it, and 50 beyond MemAvailable's headroom: the quota is the memory lent, less those 50.
            (200, 400, some(100), IDLE, gentle, 350, 350, Reason::Idle),
            (50, 600, some(0), IDLE, paper, 500, 500, Reason::Idle),
            // In use, with more than half free: what is above the half.
            (800, 0, some(700), WAITING, spare, 200, 550, Reason::Spare),
            (600, 0, some(700), WAITING, spare, 100, 450, Reason::Spare),
            (800, 0, some(700), Verdict::Loaded, spare, 200, 550, Reason::Spare),
            (600, 200, some(500), WAITING, spare, 200, 550, Reason::Spare),
            (800, 0, some(700), WAITING, capped, 100, 100, Reason::Spare),
            (800, 0, some(500), WAITING, spare, 0, 350, soon),
            (800, 0, some(500), Verdict::Loaded, spare, 0, 350, loaded),
            (800, 0, some(700), Verdict::Unknown, spare, 0, 550, unseen),
            (800, 0, some(700), WAITING, gentle, 0, 550, soon),
        ];
        for (available, guest, mem_available, verdict, limits, now, once_idle, reason) in cases {
            let q = quota(&host(available, guest), mem_available, verdict, &limits);
            assert_eq!(
                (q.quota_bytes, q.once_idle_bytes, q.reason),
                (now, once_idle, reason),
                "available {available}, guest {guest}, MemAvailable {mem_available:?}, {verdict:?}, {limits:?}"
            );
        }
    }

    #[test]
    fn the_larger_headroom_is_never_the_smaller() {
        let limits = Limits {
            mode: Mode::Spare,
            spare_headroom_share: 0.0,
            ..Limits::default()
        };
        let q = quota(&host(800, 0), Some(700), WAITING, &limits);
        assert_eq!((q.quota_bytes, q.once_idle_bytes), (550, 550));
    }

    proptest! {
        /// Lending moves bytes from available to guest, and out of MemAvailable: no quota sees it, as long as both
        /// have as much to give.
        #[test]
        fn what_is_lent_does_not_change_the_quota(
            (available, more) in (0..2000u64, 0..2000u64),
            lent in 0..2000u64,
            mode in prop_oneof![Just(Mode::Gentle), Just(Mode::Paper), Just(Mode::Spare)],
            verdict in prop_oneof![Just(IDLE), Just(WAITING), Just(Verdict::Loaded)],
        ) {
            let limits = Limits { mode, ..Limits::default() };
            let mem_available = available + more;
            let lent = lent.min(available);
            let before = quota(&host(available, 0), Some(mem_available), verdict, &limits);
            let after = quota(&host(available - lent, lent), Some(mem_available - lent), verdict, &limits);
            prop_assert_eq!(before, after);
        }

        /// Gentle lends no more than the paper, spare no less than gentle, and a host in use never more than an idle one.
        #[test]
        fn modes_are_ordered(
            (available, guest, mem_available) in (0..2000u64, 0..500u64, prop::option::of(0..2000u64)),
            verdict in prop_oneof![Just(IDLE), Just(WAITING), Just(Verdict::Loaded), Just(Verdict::Unknown)],
        ) {
            let of = |mode| quota(
                &host(available, guest), mem_available, verdict, &Limits { mode, ..Limits::default() },
            );
            let (gentle, paper, spare) = (of(Mode::Gentle), of(Mode::Paper), of(Mode::Spare));
            prop_assert!(gentle.quota_bytes <= paper.quota_bytes);
            prop_assert!(gentle.quota_bytes <= spare.quota_bytes);
            prop_assert!(spare.quota_bytes <= spare.once_idle_bytes);
            prop_assert_eq!(gentle.once_idle_bytes, spare.once_idle_bytes);
        }
    }
}
