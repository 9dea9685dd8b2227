//! Windows: runs of samples in which a region may be available, and the periods in them.
//!
//! Convention: a sample stands for the interval that follows it. A period lasts from its first sample with
//! `available >= s` to the next sample below s, so one sample at 90 s counts as 90 s. In an idle period it
//! lasts at most to the idle period's end. If the samples end first, it lasts to the last sample.

use gleaner_hosts::derived::IdlePeriod;
use gleaner_schemas::findings::EndCause;
use std::ops::Range;

/// A run of samples that is searched for periods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) samples: Range<usize>,
    /// End assumed for a period that is still open at the last sample.
    pub(crate) end_ms: i64,
    /// True if a period that is open at the first sample is known to have begun there.
    pub(crate) start_seen: bool,
    /// Cause that ends a period still open at `end_ms`; `None`: its end was not seen.
    pub(crate) end: Option<EndCause>,
    /// Time up to which the period could have been followed if it had not ended before.
    pub(crate) observed_to_ms: i64,
}

/// A time in which a region was available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Period {
    pub(crate) from_ms: i64,
    pub(crate) to_ms: i64,
    pub(crate) start_seen: bool,
    /// Cause of the end; `None`: the end was not seen.
    pub(crate) end: Option<EndCause>,
    pub(crate) observed_to_ms: i64,
}

impl Window {
    /// Window of the scope `all`, as seen: a run of samples, cut at both ends. `None` for an empty run.
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

    /// Window of the scope `idle`, as seen: an idle period.
    pub(crate) fn of_idle(period: &IdlePeriod) -> Self {
        Self {
            samples: period.samples.clone(),
            end_ms: period.to_ms,
            start_seen: !period.is_start_censored,
            end: period.end,
            observed_to_ms: period.to_ms,
        }
    }

    /// Time that the window's samples cover.
    pub(crate) fn covered_ms(&self, time_ms: &[i64]) -> i64 {
        let first = time_ms.get(self.samples.start);
        first.map_or(0, |&first| self.end_ms.saturating_sub(first))
    }

    /// Parts of the window in which a size is known. `known` are all runs of samples with a known size, in
    /// order. Where the size becomes unknown, a period is cut as at a gap without a cause.
    pub(crate) fn windows_of_known_size<'a>(
        &'a self,
        time_ms: &'a [i64],
        known: &'a [Range<usize>],
    ) -> impl Iterator<Item = Self> + 'a {
        let all = &self.samples;
        let first = known.partition_point(|stretch| stretch.end <= all.start);
        let stretches = known[first..].iter().take_while(|s| s.start < all.end);
        stretches.map(|stretch| {
            let samples = stretch.start.max(all.start)..stretch.end.min(all.end);
            let start_seen = self.start_seen && samples.start == all.start;
            let last = time_ms.get(..samples.end).and_then(<[i64]>::last);
            match last.filter(|_| samples.end < all.end) {
                Some(&last_ms) => Self {
                    samples,
                    end_ms: last_ms,
                    start_seen,
                    end: None,
                    observed_to_ms: last_ms,
                },
                None => Self {
                    samples,
                    start_seen,
                    ..self.clone()
                },
            }
        })
    }

    /// The window's periods of a region of `region_bytes`, in order, periods of length 0 included.
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

    /// Returns true if the period counts. A single sample before a cut has length 0 and does not.
    pub(crate) fn is_kept(&self, minimum_ms: f64) -> bool {
        self.length_ms() > 0 && self.length_ms() as f64 >= minimum_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_unknown_cuts_worked_by_hand() {
        let time = [0, 10, 20, 30, 40, 50, 60, 70];
        let window = Window {
            samples: 1..7,
            end_ms: 65,
            start_seen: true,
            end: Some(EndCause::Owner),
            observed_to_ms: 1000,
        };
        let of = |known: &[Range<usize>]| -> Vec<_> {
            let parts = window.windows_of_known_size(&time, known);
            parts
                .map(|w| (w.samples, w.end_ms, w.start_seen, w.end, w.observed_to_ms))
                .collect()
        };
        let owner = Some(EndCause::Owner);
        assert_eq!(of(&[0..8]), [(1..7, 65, true, owner, 1000)]);
        let parts = [
            (1..3, 20, true, None, 20),
            (4..5, 40, false, None, 40),
            (6..7, 65, false, owner, 1000),
        ];
        assert_eq!(of(&[0..3, 4..5, 6..8]), parts);
        assert!(of(&[]).is_empty() && of(&[0..1, 7..8]).is_empty());
    }

    /// A period's fields except `observed_to_ms`.
    type Brief = (i64, i64, bool, bool);

    /// The definition without shortcuts: `from..to` is a period if each of its samples is known to have
    /// enough memory and neither neighbour in the run is.
    fn slowly(time: &[i64], sizes: &[Option<i64>], run: &Range<usize>, bytes: i64) -> Vec<Brief> {
        let enough = |i: usize| sizes[i].is_some_and(|size| size >= bytes);
        // True if the neighbour's memory is too small; `None` if it is unknown.
        let lacks = |i: Option<usize>| {
            let i = i.filter(|i| run.contains(i))?;
            sizes[i].map(|size| size < bytes)
        };
        let mut found = Vec::new();
        for from in run.clone() {
            for to in from + 1..=run.end {
                let before = lacks(from.checked_sub(1));
                let after = lacks(Some(to));
                if (from..to).all(enough) && before != Some(false) && after != Some(false) {
                    let end_ms = if after.is_some() {
                        time[to]
                    } else {
                        time[to - 1]
                    };
                    found.push((time[from], end_ms, before.is_some(), after.is_some()));
                }
            }
        }
        found
    }

    proptest! {
        #[test]
        fn periods_of_what_is_known_equal_the_slow_version(
            steps in prop::collection::vec((1..100i64, prop::option::weighted(0.8, 0..4i64)), 0..40),
            cut in 0..40usize,
            bytes in 0..5i64,
        ) {
            let time: Vec<i64> = steps.iter().scan(0, |t, s| { *t += s.0; Some(*t) }).collect();
            let sizes: Vec<Option<i64>> = steps.iter().map(|s| s.1).collect();
            let plain: Vec<i64> = sizes.iter().map(|s| s.unwrap_or(0)).collect();
            let known: Vec<Range<usize>> = (0..sizes.len())
                .filter(|&i| sizes[i].is_some() && (i == 0 || sizes[i - 1].is_none()))
                .map(|i| i..(i..sizes.len()).find(|&j| sizes[j].is_none()).unwrap_or(sizes.len()))
                .collect();
            let cut = cut.min(time.len());
            for run in [0..cut, cut..time.len()] {
                let Some(window) = Window::of_run(&time, &run) else { continue };
                let found: Vec<Brief> = window
                    .windows_of_known_size(&time, &known)
                    .flat_map(|w| {
                        let periods = w.periods(&time, &plain, bytes);
                        let brief = |p: Period| (p.from_ms, p.to_ms, p.start_seen, p.end.is_some());
                        periods.map(brief).collect::<Vec<_>>()
                    })
                    .collect();
                prop_assert_eq!(found, slowly(&time, &sizes, &run, bytes));
            }
        }
    }
}
