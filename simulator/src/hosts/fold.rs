//! `policy` over a host's samples: idle rule, quota, and what a return wants.
//!
//! Lending begins at the sample that shows that the host has been idle for long enough, as an idle memory daemon would see
//! it. It ends when the owner is active, which the next sample dates, or with the sample whose load is too high.

use super::footprint::Processes;
use super::samples::Sample;
use super::{Cause, Change, Lendable, Presence, Reading, Return, Timeline, Wanted};
use gleaner_policy::idle::{IdleState, Verdict};
use gleaner_policy::memory_context::{Demand, upper_bound_bytes};
use gleaner_policy::quota::{Limits, Mode, quota};

/// What becomes of one host; `samples` in order of time.
pub(super) fn timeline(
    host_id: &str,
    samples: &[Sample],
    processes: &Processes,
    reading: &Reading,
) -> Timeline {
    let mut fold = Fold {
        reading,
        processes,
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
    timeline: Timeline,
}

impl Fold<'_> {
    /// Samples without a gap between them.
    fn run(&mut self, run: &[Sample]) {
        let mut state = IdleState::default();
        let mut last_idle: Option<&Sample> = None;
        for (at, sample) in run.iter().enumerate() {
            let verdict = if self.reading.is_always_idle {
                Verdict::Idle {
                    since_ms: sample.time_ms,
                }
            } else {
                state.step(&self.reading.idle, sample.observation())
            };
            if let Some(idle) = last_idle
                && !self.reading.is_always_idle
            {
                self.end(idle, verdict, &run[at..]);
            }
            last_idle = verdict.is_idle().then_some(sample);
            let presence = match verdict {
                Verdict::Idle { .. } => Presence::Idle,
                Verdict::Waiting { .. } | Verdict::Loaded => Presence::InUse,
                Verdict::Unknown => Presence::Unseen,
            };
            self.push(sample.time_ms, presence, self.lendable(sample, verdict));
        }
        if let Some(last) = run.last() {
            self.push(last.time_ms, Presence::Unseen, Lendable::default());
        }
    }

    /// Ends an idle period whose last sample is `idle`, where `verdict` on the first of `later` says so.
    fn end(&mut self, idle: &Sample, verdict: Verdict, later: &[Sample]) {
        let Some(now) = later.first() else { return };
        let (at_ms, cause) = match verdict {
            // The owner came and went between two samples.
            Verdict::Idle { since_ms } if since_ms > idle.time_ms => (since_ms, Cause::Owner),
            Verdict::Idle { .. } => return,
            Verdict::Waiting { at_ms } => {
                let active_ms = at_ms.saturating_sub(self.reading.idle.idle_after_ms);
                (active_ms, Cause::Owner)
            }
            Verdict::Loaded => (now.time_ms, Cause::Load),
            Verdict::Unknown => return,
        };
        let at_ms = at_ms.clamp(idle.time_ms, now.time_ms);
        if at_ms < self.reading.from_ms || at_ms >= self.reading.until_ms {
            return;
        }
        // Of a host in use something may be lent at once, by the mode that does that.
        let lendable = match verdict {
            Verdict::Idle { .. } => Lendable::default(),
            _ => self.lendable(now, verdict),
        };
        let returned = u32::try_from(self.timeline.returns.len()).ok();
        self.timeline.returns.push(Return {
            at_ns: self.reading.ns(at_ms),
            cause,
            wanted: self.wanted(idle, at_ms, later),
        });
        self.timeline.push(Change {
            at_ns: self.reading.ns(at_ms),
            presence: Presence::InUse,
            lendable,
            returned,
        });
    }

    fn wanted(&self, idle: &Sample, at_ms: i64, later: &[Sample]) -> Option<Wanted> {
        let until_ms = at_ms.saturating_add(self.reading.return_window_ms);
        let inside = later.partition_point(|s| s.time_ms <= until_ms).max(1);
        let window = later.get(..inside)?;
        let first = window.first().filter(|s| s.has_categories)?;
        let footprint = self.processes.footprint(window, at_ms)?;
        let memory = &first.memory;
        Some(Wanted {
            demand: Demand::without_guests(memory, footprint.bytes),
            upper_bound_bytes: upper_bound_bytes(
                footprint.cached_bytes,
                idle.memory.available_bytes,
            ),
        })
    }

    fn lendable(&self, sample: &Sample, verdict: Verdict) -> Lendable {
        let bytes = |mode| {
            let limits = Limits {
                mode,
                ..self.reading.limits
            };
            quota(&sample.memory, sample.mem_available_bytes, verdict, &limits).quota_bytes
        };
        Lendable {
            paper_bytes: bytes(Mode::Paper),
            gentle_bytes: bytes(Mode::Gentle),
            spare_bytes: bytes(Mode::Spare),
        }
    }

    fn push(&mut self, time_ms: i64, presence: Presence, lendable: Lendable) {
        self.timeline.push(Change {
            at_ns: self.reading.ns(time_ms),
            presence,
            lendable,
            returned: None,
        });
    }
}

#[cfg(test)]
mod tests;
