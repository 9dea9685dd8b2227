//! Applies `policy` to a host's samples: the idle rule, the quota, and the memory that the owner needs at a
//! return.
//!
//! Lending begins at the sample that shows that the host has been idle for long enough, as an idle memory
//! daemon would see it. It ends at the owner's activity, whose time the next sample records, or at the sample
//! whose load is too high.
//!
//! With a forecast, the quota that a memory daemon would announce is reduced to the part that is expected to
//! stay available.

use super::footprint::Processes;
use super::samples::Sample;
use super::{
    Cause, Change, ModeQuotas, Presence, Reading, RecordedSample, Return, ReturnMemory, Timeline,
};
use gleaner_hosts::derived::{self, Idleness, returns};
use gleaner_policy::accounting::headroom_bytes;
use gleaner_policy::idle::{Observation, Verdict};
use gleaner_policy::lending::LowWater;
use gleaner_policy::memory_context::{Demand, upper_bound_bytes};
use gleaner_policy::quota::{Limits, Mode, Quota, Reason, quota};
use gleaner_schemas::findings::EndCause;
use gleaner_schemas::lending::{HostQuota, QuotaReason};

/// Timeline of one host; `samples` must be in order of time.
pub(super) fn timeline(
    host_id: &str,
    samples: &[Sample],
    processes: &Processes,
    reading: &Reading,
) -> Timeline {
    let mut fold = Fold {
        reading,
        processes,
        low_waters: Default::default(),
        timeline: Timeline {
            host_id: host_id.to_owned(),
            physical_bytes: samples.last().map_or(0, |s| s.memory.physical_bytes),
            ..Timeline::default()
        },
    };
    let runs = samples.chunk_by(|_, next| !next.follows_gap);
    runs.for_each(|run| fold.run(run));
    fold.timeline
}

struct Fold<'a> {
    reading: &'a Reading,
    processes: &'a Processes,
    /// Low water in paper mode, then low water in modes gentle and spare.
    low_waters: [LowWater; 2],
    timeline: Timeline,
}

impl Fold<'_> {
    /// Adds a run: samples without a gap between them.
    fn run(&mut self, run: &[Sample]) {
        let observations: Vec<Observation> = run.iter().map(Sample::observation).collect();
        let time_ms: Vec<i64> = run.iter().map(|sample| sample.time_ms).collect();
        let all = 0..run.len();
        let whole = std::slice::from_ref(&all);
        let idleness = if self.reading.is_always_idle {
            Idleness {
                verdicts: (time_ms.iter())
                    .map(|&since_ms| Verdict::Idle { since_ms })
                    .collect(),
                ..Idleness::default()
            }
        } else {
            Idleness::of(&observations, whole, &self.reading.idle)
        };
        let returns = returns(&time_ms, whole, &idleness, self.reading.return_window_ms);
        let mut returns = returns.into_iter().peekable();
        for (at, (sample, &verdict)) in run.iter().zip(&idleness.verdicts).enumerate() {
            if let Some(back) = returns.next_if(|back| *back.window.start() == at) {
                self.end(run, verdict, &back);
            }
            let presence = match verdict {
                Verdict::Idle { .. } => Presence::Idle,
                Verdict::Waiting { .. } | Verdict::Loaded => Presence::InUse,
                Verdict::Unknown => Presence::Unseen,
            };
            let quotas = self.quotas(sample, verdict);
            let seen = Some(self.seen(sample, verdict));
            self.push(sample.time_ms, presence, (quotas, seen));
        }
        if let Some(last) = run.last() {
            self.push(last.time_ms, Presence::Unseen, Default::default());
        }
    }

    /// Adds the end of an idle period; `verdict` is the idle rule's verdict on the first sample after the
    /// period.
    fn end(&mut self, run: &[Sample], verdict: Verdict, back: &derived::Return) {
        let Some(now) = run.get(*back.window.start()) else {
            return;
        };
        let at_ms = back.at_ms;
        let cause = match back.cause {
            EndCause::Load => Cause::Load,
            _ => Cause::Owner,
        };
        if at_ms < self.reading.from_ms || at_ms >= self.reading.until_ms {
            return;
        }
        // In spare mode, a host in use may lend immediately. If this sample is idle again, the owner came and
        // went between two samples, and nothing is known of that time.
        let (quotas, seen) = match verdict {
            Verdict::Idle { .. } => Default::default(),
            _ => (self.quotas(now, verdict), Some(self.seen(now, verdict))),
        };
        let returned = u32::try_from(self.timeline.returns.len()).ok();
        self.timeline.returns.push(Return {
            at_ns: self.reading.ns(at_ms),
            cause,
            wanted: self.wanted(run, back),
        });
        self.timeline.push(Change {
            at_ns: self.reading.ns(at_ms),
            presence: Presence::InUse,
            quotas,
            seen,
            returned,
        });
    }

    fn wanted(&self, run: &[Sample], back: &derived::Return) -> Option<ReturnMemory> {
        let window = run.get(back.window.clone())?;
        let first = window.first().filter(|s| s.has_categories)?;
        let idle = run.get(back.last_idle)?;
        let footprint = self.processes.footprint(window, back.at_ms)?;
        let memory = &first.memory;
        Some(ReturnMemory {
            demand: Demand::without_guests(memory, footprint.bytes),
            upper_bound_bytes: upper_bound_bytes(
                footprint.cached_bytes,
                idle.memory.available_bytes,
            ),
        })
    }

    fn seen(&self, sample: &Sample, verdict: Verdict) -> RecordedSample {
        let since_begin = |ms: i64| ms.saturating_sub(self.reading.from_ms);
        // Memory lent while the host was traced counts as available: the simulation decides afresh what is
        // lent.
        let as_if_free = |bytes: u64| bytes.saturating_add(sample.memory.guest_bytes);
        RecordedSample {
            physical_bytes: sample.memory.physical_bytes,
            available_bytes: as_if_free(sample.memory.available_bytes),
            mem_available_bytes: sample.mem_available_bytes.map(as_if_free),
            verdict: match verdict {
                Verdict::Idle { since_ms } => Verdict::Idle {
                    since_ms: since_begin(since_ms),
                },
                Verdict::Waiting { at_ms } => Verdict::Waiting {
                    at_ms: since_begin(at_ms),
                },
                Verdict::Loaded | Verdict::Unknown => verdict,
            },
        }
    }

    fn quotas(&mut self, sample: &Sample, verdict: Verdict) -> ModeQuotas {
        let mut bytes = |mode| {
            let limits = Limits {
                mode,
                ..self.reading.limits
            };
            let found = quota(&sample.memory, sample.mem_available_bytes, verdict, &limits);
            match self.reading.foresight {
                Some(_) => self.expected_bytes(sample, verdict, &limits, found),
                None => found.quota_bytes,
            }
        };
        ModeQuotas {
            paper_bytes: bytes(Mode::Paper),
            gentle_bytes: bytes(Mode::Gentle),
            spare_bytes: bytes(Mode::Spare),
        }
    }

    /// Part of the quota that is expected to stay available, as a recruiter would compute it.
    fn expected_bytes(
        &mut self,
        sample: &Sample,
        verdict: Verdict,
        limits: &Limits,
        found: Quota,
    ) -> u64 {
        let Some(foresight) = &self.reading.foresight else {
            return found.quota_bytes;
        };
        // An idle host lends the same in modes gentle and spare, so these modes share a low water.
        let low_water = &mut self.low_waters[usize::from(limits.mode != Mode::Paper)];
        if found.reason != Reason::HarvestableUnknown {
            low_water.push(found.idle_quota_bytes, sample.time_ms);
        }
        let reason = match found.reason {
            // No owner will return to the host, so it need not stay idle.
            Reason::Idle if self.reading.is_always_idle => QuotaReason::Spare,
            Reason::Idle => QuotaReason::Idle,
            Reason::Spare => QuotaReason::Spare,
            _ => return 0,
        };
        let held_back_share = match found.reason {
            Reason::Spare => limits.busy_headroom_share(),
            _ => limits.headroom_share,
        };
        let announced = HostQuota {
            host_id: self.timeline.host_id.clone(),
            quota_bytes: found.quota_bytes,
            headroom_bytes: headroom_bytes(sample.memory.physical_bytes, held_back_share),
            reason,
            idle_for_ms: match verdict {
                Verdict::Idle { since_ms } => Some(sample.time_ms.saturating_sub(since_ms)),
                _ => None,
            },
            low_water_bytes: low_water.bytes(sample.time_ms),
            ..HostQuota::default()
        };
        foresight.expected_bytes(&announced, sample.time_ms)
    }

    fn push(
        &mut self,
        time_ms: i64,
        presence: Presence,
        (quotas, seen): (ModeQuotas, Option<RecordedSample>),
    ) {
        self.timeline.push(Change {
            at_ns: self.reading.ns(time_ms),
            presence,
            quotas,
            seen,
            returned: None,
        });
    }
}

#[cfg(test)]
mod tests;
