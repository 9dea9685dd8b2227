//! Quota of a host: the memory that it may lend (Acharya & Setia, section 5).
//!
//! ```text
//! paper  = available + guest − headroom
//! gentle = the smaller of that and MemAvailable + guest − headroom
//! ```
//!
//! Lent memory counts in both: a lease must not shrink the quota that it was granted from. Only
//! the final result is clamped to 0: a host that has lent too much has a smaller quota, not a larger one.

use crate::accounting::{Categories, headroom_bytes};
use crate::idle::Verdict;
pub use gleaner_schemas::lending::Mode;

/// The limits that an owner sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Mode, which decides how much may be lent.
    pub mode: Mode,
    /// Share of physical memory that is never lent.
    pub headroom_share: f64,
    /// Share of physical memory that is not lent on a host in use ([`Mode::Spare`]); at least the headroom.
    pub spare_headroom_share: f64,
    /// Maximum quota; `None`: no cap.
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
    /// Share of physical memory that is not lent on a host in use.
    #[must_use]
    pub fn busy_headroom_share(&self) -> f64 {
        self.spare_headroom_share.max(self.headroom_share)
    }
}

/// Reason of a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The host is idle: the quota follows from the division of memory.
    Idle,
    /// In use, but with spare memory ([`Mode::Spare`]).
    Spare,
    /// The host has not been idle for long enough; it will be at this time.
    NotIdleUntil {
        /// Time on the clock of the samples.
        at_ms: i64,
    },
    /// The load is too high.
    Loaded,
    /// The owner's activity is unknown.
    ActivityUnknown,
    /// MemAvailable is missing, which all modes except the paper's need.
    HarvestableUnknown,
}

/// Memory that a host may lend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Quota now, in bytes.
    pub quota_bytes: u64,
    /// The paper's quota, as if the host were idle: physical memory − in use − lotsfree − headroom.
    pub paper_quota_bytes: u64,
    /// Quota once the host is idle, limited by the mode and the cap.
    pub idle_quota_bytes: u64,
    /// Reason of this quota.
    pub reason: Reason,
}

/// The quota of a host in the state `verdict`.
///
/// `mem_available_bytes` is the kernel's MemAvailable, read while `guest_bytes` were lent.
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
    let paper_quota_bytes = above(categories.available_bytes, limits.headroom_share);
    let bound = match limits.mode {
        Mode::Paper => Some(paper_quota_bytes),
        Mode::Gentle | Mode::Spare => gentle(limits.headroom_share),
    };
    let capped = |bytes: u64| bytes.min(limits.cap_bytes.unwrap_or(u64::MAX));
    let idle_quota_bytes = capped(bound.unwrap_or(0));
    let spare_bytes = match limits.mode {
        Mode::Spare => capped(gentle(limits.busy_headroom_share()).unwrap_or(0)),
        Mode::Paper | Mode::Gentle => 0,
    };
    let (reason, quota_bytes) = match verdict {
        _ if bound.is_none() => (Reason::HarvestableUnknown, 0),
        // Without knowledge of the owner's activity, nothing is lent: the owner could not object.
        Verdict::Unknown => (Reason::ActivityUnknown, 0),
        Verdict::Idle { .. } => (Reason::Idle, idle_quota_bytes),
        Verdict::Waiting { .. } | Verdict::Loaded if spare_bytes > 0 => {
            (Reason::Spare, spare_bytes)
        }
        Verdict::Waiting { at_ms } => (Reason::NotIdleUntil { at_ms }, 0),
        Verdict::Loaded => (Reason::Loaded, 0),
    };
    Quota {
        quota_bytes,
        paper_quota_bytes,
        idle_quota_bytes,
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const IDLE: Verdict = Verdict::Idle { since_ms: 0 };
    const WAITING: Verdict = Verdict::Waiting { at_ms: 9 };

    /// A host with 1000 bytes of physical memory: the headroom is 150, that of a host in use 500.
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
            // 300 are lent from the first case's host: the quota stays the same.
            (300, 300, some(250), IDLE, gentle, 400, 400, Reason::Idle),
            (300, 300, some(250), IDLE, paper, 450, 450, Reason::Idle),
            // All of the quota is lent, and MemAvailable is 50 below the headroom: the quota is the lent
            // memory less these 50.
            (200, 400, some(100), IDLE, gentle, 350, 350, Reason::Idle),
            (50, 600, some(0), IDLE, paper, 500, 500, Reason::Idle),
            // In use, with more than half of memory free: the part above half may be lent.
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
                (q.quota_bytes, q.idle_quota_bytes, q.reason),
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
        assert_eq!((q.quota_bytes, q.idle_quota_bytes), (550, 550));
    }

    proptest! {
        /// Lending moves bytes from available to guest and out of MemAvailable: no quota changes, as long as
        /// both have that many bytes.
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

        /// Gentle lends no more than paper, spare no less than gentle, and a host in use never more than an
        /// idle one.
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
            prop_assert!(spare.quota_bytes <= spare.idle_quota_bytes);
            prop_assert_eq!(gentle.idle_quota_bytes, spare.idle_quota_bytes);
        }
    }
}
