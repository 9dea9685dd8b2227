//! Stretches of samples in which a region may be available, and the periods in them.
//!
//! Convention: a sample stands for the interval that follows it. A period lasts from its first sample
//! with `available >= s` to the first sample below, so one sample at 90 s counts 90 s; inside an idle
//! period it lasts to that period's end at the latest. Where samples end first, it lasts to the last one.

use crate::owner::idle::IdlePeriod;
use gleaner_schemas::findings::EndCause;
use std::ops::Range;

/// A stretch of samples in which periods are sought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) samples: Range<usize>,
    /// A period that is still open there ends there.
    pub(crate) end_ms: i64,
    /// Whether a period that is open at the first sample began there.
    pub(crate) start_seen: bool,
    /// What ends a period that is still open; `None`: it goes on unseen.
    pub(crate) end: Option<EndCause>,
    /// Where the fate of a period could be followed to, had it not ended before.
    pub(crate) observed_to_ms: i64,
}

/// A time in which a region was available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Period {
    pub(crate) from_ms: i64,
    pub(crate) to_ms: i64,
    pub(crate) start_seen: bool,
    /// `None`: it went on unseen.
    pub(crate) end: Option<EndCause>,
    pub(crate) observed_to_ms: i64,
}

impl Window {
    /// Scope `all`, as seen: a run of samples, cut at both ends. `None` for an empty one.
    pub(crate) fn of_run(time_ms: &[i64], run: &Range<usize>) -> Option<Self> {
        let end_ms = *time_ms.get(run.clone())?.last()?;
        Some(Self {
            samples: run.clone(),
            end_ms,
            start_seen: false,
            end: None,
            observed_to_ms: end_ms,
        })
    }

    /// Scope `idle`, as seen: an idle period.
    pub(crate) fn of_idle(period: &IdlePeriod) -> Self {
        Self {
            samples: period.samples.clone(),
            end_ms: period.to_ms,
            start_seen: !period.start_cut,
            end: period.end,
            observed_to_ms: period.to_ms,
        }
    }

    /// The window's periods of a region of `region_bytes`, in order; those of no length too.
    pub(crate) fn periods<'a>(
        &'a self,
        time_ms: &'a [i64],
        available_bytes: &'a [i64],
        region_bytes: i64,
    ) -> impl Iterator<Item = Period> + 'a {
        let end = self.samples.end;
        let enough = move |i: &usize| available_bytes[*i] >= region_bytes;
        let mut next = self.samples.start;
        std::iter::from_fn(move || {
            let first = (next..end).find(enough)?;
            let below = (first..end).find(|i| !enough(i));
            next = below.unwrap_or(end);
            Some(Period {
                from_ms: time_ms[first],
                to_ms: below.map_or(self.end_ms, |i| time_ms[i]),
                start_seen: self.start_seen || first > self.samples.start,
                end: below.map_or(self.end, |_| Some(EndCause::Memory)),
                observed_to_ms: self.observed_to_ms,
            })
        })
    }
}

impl Period {
    pub(crate) fn length_ms(&self) -> i64 {
        self.to_ms.saturating_sub(self.from_ms)
    }

    /// Whether it counts: one sample before a cut was not seen to last at all.
    pub(crate) fn is_kept(&self, minimum_ms: f64) -> bool {
        self.length_ms() > 0 && self.length_ms() as f64 >= minimum_ms
    }
}
