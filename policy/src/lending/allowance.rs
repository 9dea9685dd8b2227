//! Bytes that may be lent now: the quota that `policy::quota` computes from the host's samples, lowered by
//! the owner's wishes and by kernel pressure.

use super::low_water::LowWater;
use super::steady::SteadyMinimum;
use super::{Cause, Settings};
use crate::accounting::{Categories, headroom_bytes};
use crate::idle::{IdleRule, Verdict};
use crate::quota::{Limits, Quota, Reason, quota};
use gleaner_schemas::lending::{HostQuota, QuotaReason, SLAB_BYTES};

/// Time for which the memory server's own reading of MemAvailable and of the guests' pages is preferred to
/// the agent's figures, which may not include a recent guest.
const FRESH_FOR_MS: i64 = 5000;

/// Time after the owner's activity during which the host is reported as in use rather than as waiting.
const IN_USE_FOR_MS: i64 = 60_000;

/// Tolerance between two clocks: an idle period that began after the owner's return may seem to begin up to
/// this much before it.
const SLACK_MS: i64 = 1000;

/// Bytes that may be lent now, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LendingLimit {
    /// Bytes, in whole slabs.
    pub(super) bytes: u64,
    pub(super) reason: QuotaReason,
    /// Time until the limit may rise, if known.
    pub(super) until_ms: Option<i64>,
}

impl LendingLimit {
    fn none(reason: QuotaReason, until_ms: Option<i64>) -> Self {
        Self {
            bytes: 0,
            reason,
            until_ms,
        }
    }

    /// Returns true while lending is on, even if the limit is 0 at the moment.
    pub(super) fn lends(&self) -> bool {
        matches!(
            self.reason,
            QuotaReason::Idle | QuotaReason::Spare | QuotaReason::Pressure
        )
    }

    /// Returns true if more leases may be granted.
    pub(super) fn grants(&self) -> bool {
        matches!(self.reason, QuotaReason::Idle | QuotaReason::Spare)
    }
}

/// The host's last sample, and the owner's wishes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Allowance {
    seen: Option<LastFigures>,
    /// Time of the owner's last return: earlier observations of idleness no longer count.
    returned_ms: Option<i64>,
    steady: SteadyMinimum,
    low_water: LowWater,
    paused: Option<Pause>,
    owner_cap_bytes: Option<u64>,
    pressed: Option<PressureLimit>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct LastFigures {
    /// Division of memory; its `guest_bytes` were resident when MemAvailable was read.
    categories: Categories,
    mem_available_bytes: Option<u64>,
    headroom_share: f64,
    verdict: Verdict,
    at_ms: i64,
    /// Time at which this process read MemAvailable; absent if the agent's figure is used.
    looked_up_ms: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pause {
    until_ms: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PressureLimit {
    until_ms: i64,
    most_bytes: u64,
}

impl Allowance {
    /// Adds a sample from the agent.
    pub(super) fn sample(
        &mut self,
        settings: &Settings,
        sample: (Categories, Option<u64>, f64, Verdict),
        now_ms: i64,
    ) {
        let (categories, mem_available_bytes, headroom_share, verdict) = sample;
        let mut seen = LastFigures {
            categories,
            mem_available_bytes,
            headroom_share,
            verdict: self.ignore_stale_idle(verdict),
            at_ms: now_ms,
            looked_up_ms: None,
        };
        let fresh = self.seen.filter(|before| {
            let looked_up_ms = before.looked_up_ms;
            looked_up_ms.is_some_and(|ms| now_ms.saturating_sub(ms) < FRESH_FOR_MS)
        });
        if let Some(before) = fresh {
            seen.looked_up_ms = before.looked_up_ms;
            seen.mem_available_bytes = before.mem_available_bytes;
            seen.categories = with_guest(&categories, before.categories.guest_bytes);
        }
        self.apply_figures(settings, seen, now_ms);
    }

    /// Takes in a new reading: MemAvailable and the guests' resident pages, both read at the same moment.
    pub(super) fn available(
        &mut self,
        settings: &Settings,
        mem_available_bytes: u64,
        resident_bytes: u64,
        now_ms: i64,
    ) {
        if let Some(seen) = self.seen {
            let seen = LastFigures {
                categories: with_guest(&seen.categories, resident_bytes),
                mem_available_bytes: Some(mem_available_bytes),
                looked_up_ms: Some(now_ms),
                ..seen
            };
            self.apply_figures(settings, seen, now_ms);
        }
    }

    /// Records the agent's report, between samples, that the host is idle.
    pub(super) fn idle(&mut self, settings: &Settings, since_ms: i64, now_ms: i64) {
        let verdict = self.ignore_stale_idle(Verdict::Idle { since_ms });
        if let Some(seen) = self.seen {
            self.apply_figures(settings, LastFigures { verdict, ..seen }, now_ms);
        }
    }

    /// Records that the owner is back, or must be treated as back.
    pub(super) fn returned(&mut self, settings: &Settings, cause: Cause, now_ms: i64) {
        let verdict = match cause {
            Cause::Owner => Verdict::Waiting {
                at_ms: now_ms.saturating_add(IdleRule::default().idle_after_ms),
            },
            Cause::Load => Verdict::Loaded,
            _ => Verdict::Unknown,
        };
        if matches!(cause, Cause::Owner | Cause::Load) {
            self.returned_ms = Some(now_ms);
        }
        if let Some(seen) = self.seen {
            self.apply_figures(settings, LastFigures { verdict, ..seen }, now_ms);
        }
    }

    /// Ignores an idle period that began before the owner's last return: its sample may have been under way
    /// at that moment.
    fn ignore_stale_idle(&self, verdict: Verdict) -> Verdict {
        match (verdict, self.returned_ms) {
            (Verdict::Idle { since_ms }, Some(returned_ms))
                if since_ms < returned_ms.saturating_sub(SLACK_MS) =>
            {
                Verdict::Waiting {
                    at_ms: returned_ms.saturating_add(IdleRule::default().idle_after_ms),
                }
            }
            _ => verdict,
        }
    }

    fn apply_figures(&mut self, settings: &Settings, seen: LastFigures, now_ms: i64) {
        let was_idle = self.seen.is_some_and(|before| before.verdict.is_idle());
        let found = seen.quota(settings);
        // A busy host's figures do not count once the host is idle, nor the reverse.
        if was_idle != seen.verdict.is_idle() {
            self.steady.reset();
        }
        self.steady
            .push(found.quota_bytes, now_ms, settings.rise_after_ms);
        if found.reason != Reason::HarvestableUnknown {
            self.low_water.push(found.idle_quota_bytes, now_ms);
        }
        self.seen = Some(seen);
    }

    /// Applies changed settings to the last sample: a lower limit holds immediately, a higher one after the
    /// usual delay.
    pub(super) fn recompute(&mut self, settings: &Settings, now_ms: i64) {
        if let Some(seen) = self.seen {
            self.apply_figures(settings, seen, now_ms);
        }
    }

    pub(super) fn pause(&mut self, until_ms: Option<i64>) {
        self.paused = Some(Pause { until_ms });
    }

    pub(super) fn resume(&mut self) {
        self.paused = None;
    }

    pub(super) fn cap(&mut self, bytes: Option<u64>) {
        self.owner_cap_bytes = bytes;
    }

    /// Lowers the limit by an eighth of the lent memory, or by one step if that is more, each time the kernel
    /// reports pressure.
    pub(super) fn pressure(&mut self, settings: &Settings, lent_bytes: u64, now_ms: i64) {
        let before = self.pressed.map_or(u64::MAX, |p| p.most_bytes);
        let less = (lent_bytes / 8).max(settings.shrink_step_bytes);
        self.pressed = Some(PressureLimit {
            until_ms: now_ms.saturating_add(settings.pressure_pause_ms),
            most_bytes: lent_bytes.min(before).saturating_sub(less),
        });
    }

    /// Forgets a pause or pressure limit that has ended by `now_ms`.
    pub(super) fn expire_limits(&mut self, now_ms: i64) {
        let is_over = |until_ms: Option<i64>| until_ms.is_some_and(|until| until <= now_ms);
        self.paused = self.paused.filter(|p| !is_over(p.until_ms));
        self.pressed = self.pressed.filter(|p| !is_over(Some(p.until_ms)));
    }

    /// Time at which a pause or pressure limit ends; the earlier of the two.
    pub(super) fn next_change_ms(&self) -> Option<i64> {
        let pause_ms = self.paused.and_then(|p| p.until_ms);
        let pressed_ms = self.pressed.map(|p| p.until_ms);
        pause_ms.into_iter().chain(pressed_ms).min()
    }

    /// Time at which the quota rises even if no new figure arrives.
    pub(super) fn rises_ms(&self, settings: &Settings, now_ms: i64) -> Option<i64> {
        self.steady.rises_ms(now_ms, settings.rise_after_ms)
    }

    /// Returns the bytes that may be lent now, and the reason.
    pub(super) fn allowed(&self, settings: &Settings, now_ms: i64) -> LendingLimit {
        let until = |ms: i64| ms.saturating_sub(now_ms);
        let is_on = |until_ms: i64| until_ms > now_ms;
        if let Some(pause) = self.paused.filter(|p| p.until_ms.is_none_or(is_on)) {
            return LendingLimit::none(QuotaReason::Paused, pause.until_ms.map(until));
        }
        let Some(seen) = self.seen else {
            return LendingLimit::none(QuotaReason::Unknown, None);
        };
        let in_use = |at_ms: i64| {
            let left_ms = until(at_ms);
            let reason = if left_ms > IdleRule::default().idle_after_ms - IN_USE_FOR_MS {
                QuotaReason::InUse
            } else {
                QuotaReason::Waiting
            };
            LendingLimit::none(reason, Some(left_ms).filter(|ms| *ms > 0))
        };
        let reason = match seen.quota(settings).reason {
            Reason::Idle => QuotaReason::Idle,
            Reason::Spare => QuotaReason::Spare,
            Reason::NotIdleUntil { at_ms } => return in_use(at_ms),
            Reason::Loaded => return LendingLimit::none(QuotaReason::Loaded, None),
            Reason::ActivityUnknown | Reason::HarvestableUnknown => {
                return LendingLimit::none(QuotaReason::Unknown, None);
            }
        };
        let steady = self.steady.bytes(now_ms, settings.rise_after_ms);
        let bytes = self.at_most_limit(settings, steady);
        match self.pressed.filter(|p| is_on(p.until_ms)) {
            Some(pressed) => LendingLimit {
                bytes: whole_slabs(bytes.min(pressed.most_bytes)),
                reason: QuotaReason::Pressure,
                until_ms: Some(until(pressed.until_ms)),
            },
            None => LendingLimit {
                bytes: whole_slabs(bytes),
                reason,
                until_ms: None,
            },
        }
    }

    fn at_most_limit(&self, settings: &Settings, bytes: u64) -> u64 {
        let all = [settings.limits.cap_bytes, self.owner_cap_bytes];
        all.into_iter().flatten().fold(bytes, u64::min)
    }

    /// Bytes that the host would lend once idle.
    pub(super) fn idle_quota_bytes(&self, settings: &Settings) -> u64 {
        let found = self.seen.map(|seen| seen.quota(settings).idle_quota_bytes);
        whole_slabs(self.at_most_limit(settings, found.unwrap_or(0)))
    }

    /// Quota for the recruiter and for people; the caller fills in the lent bytes.
    pub(super) fn describe(&self, settings: &Settings, now_ms: i64) -> HostQuota {
        let allowed = self.allowed(settings, now_ms);
        let (idle_for_ms, idle_in_ms) = match self.seen.map(|seen| seen.verdict) {
            Some(Verdict::Idle { since_ms }) => (Some(now_ms.saturating_sub(since_ms)), None),
            Some(Verdict::Waiting { at_ms }) => (None, Some(at_ms.saturating_sub(now_ms))),
            _ => (None, None),
        };
        let seen_ms = self
            .seen
            .map(|s| s.looked_up_ms.unwrap_or(s.at_ms).max(s.at_ms));
        HostQuota {
            quota_bytes: allowed.bytes,
            idle_quota_bytes: self.idle_quota_bytes(settings),
            physical_bytes: self.seen.map_or(0, |seen| seen.categories.physical_bytes),
            headroom_bytes: self.seen.map_or(0, |seen| {
                let limits = seen.limits(settings);
                let share = match allowed.reason {
                    QuotaReason::Spare => limits.busy_headroom_share(),
                    _ => limits.headroom_share,
                };
                headroom_bytes(seen.categories.physical_bytes, share)
            }),
            mode: settings.limits.mode,
            reason: allowed.reason,
            idle_for_ms: idle_for_ms.map(|ms| ms.max(0)),
            idle_in_ms: idle_in_ms.map(|ms| ms.max(0)),
            low_water_bytes: self.low_water.bytes(now_ms),
            age_ms: seen_ms.map_or(0, |ms| now_ms.saturating_sub(ms)),
            ..HostQuota::default()
        }
    }
}

#[cfg(test)]
impl Allowance {
    /// Hashes the state on which later allowances depend, except parts that are constant in the model.
    pub(super) fn hash_for_the_model<H: std::hash::Hasher>(&self, hasher: &mut H) {
        use std::hash::Hash;
        if let Some(seen) = &self.seen {
            let all = seen.categories.available_bytes + seen.categories.guest_bytes;
            (all, format!("{:?}", seen.verdict)).hash(hasher);
        }
        (self.returned_ms, &self.steady).hash(hasher);
    }
}

impl LastFigures {
    /// Limits without the administrator's cap. It is applied later, so a change of it takes effect
    /// immediately in both directions.
    fn limits(&self, settings: &Settings) -> Limits {
        Limits {
            headroom_share: settings.limits.headroom_share.max(self.headroom_share),
            cap_bytes: None,
            ..settings.limits
        }
    }

    fn quota(&self, settings: &Settings) -> Quota {
        quota(
            &self.categories,
            self.mem_available_bytes,
            self.verdict,
            &self.limits(settings),
        )
    }
}

/// The same division of memory with `guest_bytes` lent, taken from the sum of available and lent memory.
fn with_guest(categories: &Categories, guest_bytes: u64) -> Categories {
    let both = categories
        .available_bytes
        .saturating_add(categories.guest_bytes);
    Categories {
        guest_bytes,
        available_bytes: both.saturating_sub(guest_bytes),
        ..*categories
    }
}

/// Bytes rounded down to whole slabs.
pub(super) fn whole_slabs(bytes: u64) -> u64 {
    bytes / SLAB_BYTES * SLAB_BYTES
}
