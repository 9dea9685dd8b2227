//! Lending on one host: the allowance, the leases, and the return of memory.
//!
//! One state machine ([`Lender`]) takes observations and requests ([`Event`]) and returns the actions to
//! perform ([`Action`]). The memory server performs them; the simulator replays them. Leases are granted only
//! here.

mod allowance;
mod event;
mod ledger;
mod low_water;
#[cfg(test)]
mod model;
mod refusal;
mod steady;
#[cfg(test)]
mod tests;

pub use event::{Action, Cause, Event, Settings};
pub use low_water::LowWater;

use allowance::{Allowance, LendingLimit, whole_slabs};
use gleaner_schemas::lending::{
    GrantRequest, HostQuota, Lease, Outcome, QuotaReason, Refusal, RequestKind, SLAB_BYTES,
};
use ledger::Ledger;

/// Inverse of the share by which a quota must change to be announced immediately: more than a sixteenth of
/// the last announced quota. A smaller change waits for the next regular announcement.
const WORTH_TELLING_SHARE: u64 = 16;

/// The state of lending on one host.
#[derive(Clone, Debug, Default)]
pub struct Lender {
    settings: Settings,
    allowance: Allowance,
    ledger: Ledger,
    shrinking: ShrinkState,
    told: Option<AnnouncedQuota>,
    is_ending: bool,
    now_ms: i64,
}

/// State of a reclaim in steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct ShrinkState {
    /// True from an [`Action::Shrink`] to its [`Event::Shrunk`].
    is_under_way: bool,
    /// Time of the earliest next step.
    next_ms: Option<i64>,
    /// True if all excess is reclaimed in one step, because the owner demands it.
    is_at_once: bool,
}

/// The last announced quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct AnnouncedQuota {
    bytes: u64,
    reason: QuotaReason,
}

impl Lender {
    /// A lender without leases and without observations of the host.
    ///
    /// `generation` identifies the contents of this run of the memory server: each start uses another one.
    #[must_use]
    pub fn new(settings: Settings, generation: u64) -> Self {
        Self {
            ledger: Ledger::new(generation, settings.outage_grace_ms),
            settings,
            now_ms: i64::MIN,
            ..Self::default()
        }
    }

    /// Handles an event at `now_ms` and returns the actions to perform, in order. `now_ms` is on a clock that
    /// includes sleep and never goes back.
    pub fn step(&mut self, event: &Event, now_ms: i64) -> Vec<Action> {
        let now_ms = now_ms.max(self.now_ms);
        self.now_ms = now_ms;
        let mut actions = Vec::new();
        self.allowance.expire_limits(now_ms);
        for lease_id in self.ledger.expire(now_ms) {
            let cause = Cause::Expired;
            actions.push(Action::Revoke { lease_id, cause });
        }
        let mut cause = None;
        let mut has_news = false;
        match event {
            Event::Sample {
                categories,
                mem_available_bytes,
                headroom_share,
                verdict,
            } => {
                let sample = (*categories, *mem_available_bytes, *headroom_share, *verdict);
                self.allowance.sample(&self.settings, sample, now_ms);
            }
            Event::Returned(why) => {
                cause = Some(*why);
                self.is_ending |= *why == Cause::Ending;
                self.allowance.returned(&self.settings, *why, now_ms);
            }
            Event::Idle { since_ms } => self.allowance.idle(&self.settings, *since_ms, now_ms),
            Event::Available {
                mem_available_bytes,
                resident_bytes,
            } => self.allowance.available(
                &self.settings,
                *mem_available_bytes,
                *resident_bytes,
                now_ms,
            ),
            Event::Pressure => {
                let lent_bytes = self.ledger.lent_bytes();
                self.allowance.pressure(&self.settings, lent_bytes, now_ms);
            }
            Event::Pause { until_ms } => self.allowance.pause(*until_ms),
            Event::Resume => self.allowance.resume(),
            Event::Cap(bytes) => {
                self.allowance.cap(*bytes);
                self.shrinking.is_at_once = true;
            }
            Event::CertificateRevoked(lease_ids) => {
                for lease_id in lease_ids {
                    if self.ledger.end(lease_id) {
                        actions.push(Action::Revoke {
                            lease_id: lease_id.clone(),
                            cause: Cause::Revoked,
                        });
                    }
                }
            }
            Event::Linked(is_linked) => self.ledger.set_linked(*is_linked, now_ms),
            Event::Settings(settings) => {
                self.settings = settings.clone();
                self.ledger.set_grace(settings.outage_grace_ms, now_ms);
                self.allowance.recompute(settings, now_ms);
                has_news = true;
            }
            Event::Shrunk(reclaimed) => {
                self.shrinking.is_under_way = false;
                has_news = !reclaimed.is_empty();
                for lease_id in self.ledger.record_reclaims(reclaimed) {
                    let cause = self.cause_of_shrinking(&self.allowed(now_ms));
                    actions.push(Action::Revoke { lease_id, cause });
                }
            }
            Event::Request {
                link,
                request,
                fresh_id,
            } => {
                let outcome = match self.answer(&request.asked, fresh_id, now_ms, &mut actions) {
                    Ok(outcome) => outcome,
                    Err(refusal) => Outcome::Refused(refusal),
                };
                has_news = matches!(outcome, Outcome::Renewed { .. });
                actions.push(Action::Answer {
                    link: *link,
                    request_id: request.request_id,
                    outcome,
                });
            }
            Event::Tick => {}
        }
        self.reclaim_memory(cause, now_ms, &mut actions);
        has_news |= actions.iter().any(Action::changes_leases);
        if self.is_quota_change_significant(now_ms) || has_news {
            actions.push(Action::Announce);
        }
        actions
    }

    /// Bytes that may be lent, and the reason (without outlook and host id).
    #[must_use]
    pub fn quota(&self, now_ms: i64) -> HostQuota {
        let allowed = self.allowed(now_ms);
        let lent_bytes = self.ledger.lent_bytes();
        let unleased_bytes = if self.settings.grants_leases && allowed.grants() {
            whole_slabs(allowed.bytes.saturating_sub(lent_bytes))
        } else {
            0
        };
        HostQuota {
            quota_bytes: allowed.bytes,
            reason: allowed.reason,
            lent_bytes,
            unleased_bytes,
            ..self.allowance.describe(&self.settings, now_ms)
        }
    }

    /// All leases, ordered by id.
    #[must_use]
    pub fn leases(&self, now_ms: i64) -> Vec<Lease> {
        self.ledger.leases(now_ms)
    }

    /// Time of the next [`Event::Tick`]; `None`: no tick is needed before another event.
    #[must_use]
    pub fn next_tick_ms(&self) -> Option<i64> {
        let step_ms = (!self.shrinking.is_under_way).then_some(self.shrinking.next_ms);
        let all = [
            self.ledger.next_expiry_ms(),
            self.allowance.next_change_ms(),
            step_ms.flatten(),
        ];
        all.into_iter().flatten().min()
    }

    /// Time at which the quota may rise without an event. No action is due then, but [`Lender::quota`]
    /// returns more; a simulation uses it to sum the quota over time.
    #[must_use]
    pub fn next_rise_ms(&self, now_ms: i64) -> Option<i64> {
        self.allowance.rises_ms(&self.settings, now_ms)
    }

    fn allowed(&self, now_ms: i64) -> LendingLimit {
        let allowed = self.allowance.allowed(&self.settings, now_ms);
        if self.is_ending {
            let reason = QuotaReason::Unknown;
            return LendingLimit {
                bytes: 0,
                reason,
                until_ms: None,
            };
        }
        allowed
    }

    fn answer(
        &mut self,
        asked: &RequestKind,
        fresh_id: &str,
        now_ms: i64,
        actions: &mut Vec<Action>,
    ) -> Result<Outcome, Refusal> {
        let most_ms = self.settings.max_term_ms;
        match asked {
            RequestKind::Grant(request) => {
                let request = GrantRequest {
                    term_ms: request.term_ms.min(most_ms),
                    ..request.clone()
                };
                self.grant(&request, fresh_id, now_ms, actions)
            }
            RequestKind::Renew {
                client,
                lease_id,
                term_ms,
            } => {
                let term_ms = (*term_ms).min(most_ms);
                let lease = self
                    .ledger
                    .renew(client.as_deref(), lease_id, term_ms, now_ms)?;
                Ok(Outcome::Renewed { lease })
            }
            RequestKind::Release { client, lease_id } => {
                let lease_id = lease_id.clone();
                if self.ledger.release(client.as_deref(), &lease_id)? {
                    actions.push(Action::Revoke {
                        lease_id: lease_id.clone(),
                        cause: Cause::Released,
                    });
                }
                Ok(Outcome::Released { lease_id })
            }
        }
    }

    fn grant(
        &mut self,
        request: &GrantRequest,
        fresh_id: &str,
        now_ms: i64,
        actions: &mut Vec<Action>,
    ) -> Result<Outcome, Refusal> {
        let bytes = ledger::whole_bytes(request)?;
        if let Some(lease) = self.ledger.earlier_grant(request, bytes, now_ms)? {
            return Ok(Outcome::Granted { lease });
        }
        if self.is_ending {
            return Err(refusal::ending());
        }
        if !self.settings.grants_leases {
            return Err(refusal::grants_none());
        }
        let allowed = self.allowed(now_ms);
        if !allowed.grants() {
            let idle_quota_bytes = self.allowance.idle_quota_bytes(&self.settings);
            return Err(refusal::not_lending(&allowed, idle_quota_bytes));
        }
        if self.ledger.count() >= self.settings.most_leases_count {
            return Err(refusal::too_many(self.settings.most_leases_count));
        }
        let lent_bytes = self.ledger.lent_bytes();
        if bytes > allowed.bytes.saturating_sub(lent_bytes) {
            return Err(refusal::no_memory(allowed.bytes, lent_bytes, bytes));
        }
        let lease = self.ledger.grant(fresh_id, request, bytes, now_ms)?;
        let (lease_id, client) = (lease.lease_id.clone(), lease.client.clone());
        actions.push(Action::Open {
            lease_id,
            client,
            bytes,
        });
        Ok(Outcome::Granted { lease })
    }

    /// Reclaims all memory if lending ends, or one step if more is lent than allowed.
    fn reclaim_memory(&mut self, cause: Option<Cause>, now_ms: i64, actions: &mut Vec<Action>) {
        let allowed = self.allowed(now_ms);
        if self.ledger.count() > 0 && !allowed.lends() {
            self.ledger.clear();
            self.shrinking = ShrinkState::default();
            // `RevokeAll` replaces single revocations, so that no action precedes the reclaim of all memory.
            actions.retain(|action| !matches!(action, Action::Revoke { .. }));
            let cause = cause.unwrap_or_else(|| cause_of(allowed.reason));
            actions.insert(0, Action::RevokeAll(cause));
            return;
        }
        let excess_bytes = self.ledger.lent_bytes().saturating_sub(allowed.bytes);
        if excess_bytes == 0 {
            // The time of the next step stays, so that a fluttering quota reclaims no faster.
            self.shrinking.is_at_once = false;
            self.shrinking.next_ms = self.shrinking.next_ms.filter(|next| *next > now_ms);
            return;
        }
        let is_due = self.shrinking.next_ms.is_none_or(|next| next <= now_ms);
        if self.shrinking.is_under_way || !(is_due || self.shrinking.is_at_once) {
            return;
        }
        let step_bytes = if self.shrinking.is_at_once {
            u64::MAX
        } else {
            whole_slabs(self.settings.shrink_step_bytes).max(SLAB_BYTES)
        };
        let whole_bytes = excess_bytes.div_ceil(SLAB_BYTES).saturating_mul(SLAB_BYTES);
        actions.push(Action::Shrink {
            bytes: whole_bytes.min(step_bytes),
            cause: self.cause_of_shrinking(&allowed),
        });
        self.shrinking.is_under_way = true;
        self.shrinking.next_ms = Some(now_ms.saturating_add(self.settings.shrink_every_ms.max(1)));
    }

    fn cause_of_shrinking(&self, allowed: &LendingLimit) -> Cause {
        match allowed.reason {
            _ if self.shrinking.is_at_once => Cause::Paused,
            QuotaReason::Pressure => Cause::Pressure,
            QuotaReason::Spare => Cause::Owner,
            _ => Cause::Quota,
        }
    }

    fn is_quota_change_significant(&mut self, now_ms: i64) -> bool {
        let LendingLimit { bytes, reason, .. } = self.allowed(now_ms);
        let is_news = self.told.is_none_or(|told| {
            let moved_bytes = told.bytes.abs_diff(bytes);
            told.reason != reason || moved_bytes > told.bytes / WORTH_TELLING_SHARE
        });
        if is_news {
            self.told = Some(AnnouncedQuota { bytes, reason });
        }
        is_news
    }
}

fn cause_of(reason: QuotaReason) -> Cause {
    match reason {
        QuotaReason::InUse | QuotaReason::Waiting => Cause::Owner,
        QuotaReason::Loaded => Cause::Load,
        QuotaReason::Paused => Cause::Paused,
        QuotaReason::Pressure => Cause::Pressure,
        QuotaReason::Idle | QuotaReason::Spare => Cause::Quota,
        QuotaReason::Unknown => Cause::OwnerUnknown,
    }
}
