//! How much memory a host may lend (Acharya & Setia, section 5).

use crate::accounting::{Categories, headroom_bytes};
use crate::idle::Verdict;

/// How far lending may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Never more than can be taken without pushing the owner's pages out.
    #[default]
    Gentle,
    /// The paper's: everything not in use, idle processes' pages and unused cache included.
    Paper,
}

/// The limits that an owner sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// How far lending may go.
    pub mode: Mode,
    /// Share of physical memory that is never lent.
    pub headroom_share: f64,
    /// Never more than this.
    pub cap_bytes: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            mode: Mode::Gentle,
            headroom_share: 0.15,
            cap_bytes: None,
        }
    }
}

/// Why a quota is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Idle: the figure is what the accounting gives.
    Idle,
    /// Not idle long enough; it would be at this time.
    NotIdleUntil {
        /// On the clock of the samples.
        at_ms: i64,
    },
    /// The load is too high.
    Loaded,
    /// The owner's activity cannot be seen.
    ActivityUnknown,
    /// MemAvailable is missing, which the gentle mode needs.
    HarvestableUnknown,
}

/// What a host may lend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Now.
    pub quota_bytes: u64,
    /// The paper's recruited memory, were the host idle: total − in use − lotsfree − headroom.
    pub recruitable_bytes: u64,
    /// Once idle, within the mode and the cap.
    pub once_idle_bytes: u64,
    /// Why.
    pub reason: Reason,
}

/// The quota of a host in the state `verdict`.
///
/// `harvestable_bytes` has the headroom taken off already. Memory lent counts as lendable: a lease
/// must not shrink the quota that it was granted from.
#[must_use]
pub fn quota(
    categories: &Categories,
    harvestable_bytes: Option<u64>,
    verdict: Verdict,
    limits: &Limits,
) -> Quota {
    let headroom = headroom_bytes(categories.physical_bytes, limits.headroom_share);
    let recruitable_bytes =
        (categories.available_bytes + categories.guest_bytes).saturating_sub(headroom);
    let bound = match limits.mode {
        Mode::Paper => Some(recruitable_bytes),
        Mode::Gentle => {
            harvestable_bytes.map(|h| recruitable_bytes.min(h + categories.guest_bytes))
        }
    };
    let once_idle_bytes = bound.unwrap_or(0).min(limits.cap_bytes.unwrap_or(u64::MAX));
    let reason = match verdict {
        _ if bound.is_none() => Reason::HarvestableUnknown,
        Verdict::Idle { .. } => Reason::Idle,
        Verdict::Waiting { at_ms } => Reason::NotIdleUntil { at_ms },
        Verdict::Loaded => Reason::Loaded,
        Verdict::Unknown => Reason::ActivityUnknown,
    };
    let quota_bytes = if reason == Reason::Idle {
        once_idle_bytes
    } else {
        0
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

    const IDLE: Verdict = Verdict::Idle { since_ms: 0 };

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
        let paper = Limits {
            mode: Mode::Paper,
            ..gentle
        };
        let capped = Limits {
            cap_bytes: Some(100),
            ..gentle
        };
        let cases = [
            // available, guest, harvestable, verdict, limits → now, once idle, reason
            (600, 0, Some(400), IDLE, gentle, 400, 400, Reason::Idle),
            (600, 0, Some(400), IDLE, paper, 450, 450, Reason::Idle),
            (600, 0, Some(400), IDLE, capped, 100, 100, Reason::Idle),
            (600, 0, None, IDLE, gentle, 0, 0, Reason::HarvestableUnknown),
            (600, 0, None, IDLE, paper, 450, 450, Reason::Idle),
            (
                600,
                0,
                Some(400),
                Verdict::Loaded,
                gentle,
                0,
                400,
                Reason::Loaded,
            ),
            (
                600,
                0,
                Some(400),
                Verdict::Unknown,
                gentle,
                0,
                400,
                Reason::ActivityUnknown,
            ),
            (
                600,
                0,
                Some(400),
                Verdict::Waiting { at_ms: 9 },
                gentle,
                0,
                400,
                Reason::NotIdleUntil { at_ms: 9 },
            ),
            (100, 0, Some(400), IDLE, gentle, 0, 0, Reason::Idle),
            // 300 lent out of the first case's host: the quota stays.
            (300, 300, Some(100), IDLE, gentle, 400, 400, Reason::Idle),
        ];
        for (available, guest, harvestable, verdict, limits, now, once_idle, reason) in cases {
            let q = quota(&host(available, guest), harvestable, verdict, &limits);
            assert_eq!(
                (q.quota_bytes, q.once_idle_bytes, q.reason),
                (now, once_idle, reason),
                "available {available}, guest {guest}, harvestable {harvestable:?}, {verdict:?}, {limits:?}"
            );
        }
    }
}
