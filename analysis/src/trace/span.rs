//! The analysed span of time: all of a trace, or a part such as a week.
//!
//! A span may begin in the middle of a UTC day, but tables of changes are complete only at a day's first
//! sample. So a host's samples are read from that midnight on, and rows from before the span that are still
//! valid in it are assigned to the span's first sample ([`Lead`]).

use super::samples::Samples;
use super::standing::state_ends;
use gleaner_hosts::recorded::Gap;
use gleaner_schemas::findings::Parameters;
use std::ops::Range;

const DAY_MS: i64 = 86_400_000;

/// Time from `from_ms` to before `until_ms`; `None`: the span is open at that end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from_ms: Option<i64>,
    pub(crate) until_ms: Option<i64>,
}

impl Span {
    pub(crate) const fn of(parameters: &Parameters) -> Self {
        Self {
            from_ms: parameters.from_time_ms,
            until_ms: parameters.until_time_ms,
        }
    }

    /// Returns true unless the span is all time.
    pub(crate) const fn is_cut(&self) -> bool {
        self.from_ms.is_some() || self.until_ms.is_some()
    }

    pub(crate) fn holds(&self, time_ms: i64) -> bool {
        self.from_ms.is_none_or(|from| time_ms >= from)
            && self.until_ms.is_none_or(|until| time_ms < until)
    }

    /// The span, extended back to midnight UTC.
    pub(crate) fn since_midnight(self) -> Self {
        let midnight = |from: i64| from.saturating_sub(from.rem_euclid(DAY_MS));
        Self {
            from_ms: self.from_ms.map(midnight),
            ..self
        }
    }

    /// The span without a begin.
    pub(crate) const fn with_all_before(self) -> Self {
        Self {
            from_ms: None,
            ..self
        }
    }

    /// The span without an end.
    pub(crate) const fn with_all_after(self) -> Self {
        Self {
            until_ms: None,
            ..self
        }
    }

    /// Parts of these gaps that lie in the span. A gap of a clock set back lies at the time to which the
    /// clock was set.
    pub(crate) fn cut(&self, gaps: Vec<Gap>) -> Vec<Gap> {
        let cut = |mut gap: Gap| {
            if gap.to_ms > gap.from_ms {
                gap.from_ms = self
                    .from_ms
                    .map_or(gap.from_ms, |from| gap.from_ms.max(from));
                gap.to_ms = self
                    .until_ms
                    .map_or(gap.to_ms, |until| gap.to_ms.min(until));
                (gap.to_ms > gap.from_ms).then_some(gap)
            } else {
                self.holds(gap.to_ms).then_some(gap)
            }
        };
        gaps.into_iter().filter_map(cut).collect()
    }
}

/// A host's samples from a midnight on; those before the span do not count.
pub(crate) struct Lead {
    pub(crate) samples: Samples,
    /// Index of each sample among the samples that count; `None` if it does not count.
    place: Vec<Option<usize>>,
    /// For each sample that does not count: the next sample that counts, if earlier rows may still be valid
    /// there; otherwise `None`.
    lands_at: Vec<Option<usize>>,
}

impl Lead {
    pub(crate) fn new(samples: Samples, segments: &[Range<usize>], counts: &[bool]) -> Self {
        let mut next_place = 0..;
        let place = counts
            .iter()
            .map(|&c| if c { next_place.next() } else { None });
        let place: Vec<Option<usize>> = place.collect();
        let forgotten = state_ends(&samples, segments);
        let mut next = None;
        let mut lands_at = vec![None; counts.len()];
        for at in (0..counts.len()).rev() {
            if counts[at] {
                next = Some(at);
            } else {
                lands_at[at] = next.filter(|&next| next < forgotten[at]);
            }
        }
        Self {
            samples,
            place,
            lands_at,
        }
    }

    /// Index, among the samples that count, of a sample that is given by its index among all.
    pub(crate) fn place(&self, sample: usize) -> Option<usize> {
        *self.place.get(sample)?
    }

    /// For a sample that does not count, the sample at which its rows land. Both indices are among all
    /// samples.
    pub(crate) fn lands_at(&self, sample: usize) -> Option<usize> {
        *self.lands_at.get(sample)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn span(from_ms: Option<i64>, until_ms: Option<i64>) -> Span {
        Span { from_ms, until_ms }
    }

    #[test]
    fn a_span_holds_its_beginning_and_not_its_end() {
        let held = |span: Span| (0..4).filter(|&t| span.holds(t)).collect::<Vec<_>>();
        assert_eq!(held(span(None, None)), [0, 1, 2, 3]);
        assert_eq!(held(span(Some(1), Some(3))), [1, 2]);
        assert_eq!(held(span(None, Some(1))), [0]);
        assert!(span(None, None).holds(i64::MAX));
        let midnights = [0, 1, DAY_MS - 1, DAY_MS, -1, i64::MIN];
        let midnights = midnights.map(|t| span(Some(t), None).since_midnight().from_ms);
        let expected = [0, 0, 0, DAY_MS, -DAY_MS, i64::MIN];
        assert_eq!(midnights, expected.map(Some));
    }

    #[test]
    fn gaps_are_cut_at_the_edges_and_left_out_beyond() {
        let gap = |from_ms, to_ms| Gap {
            from_ms,
            to_ms,
            cause: "sleep".to_owned(),
        };
        let gaps = [
            (0, 10),
            (5, 12),
            (12, 15),
            (18, 30),
            (20, 30),
            (40, 15),
            (15, 9),
        ];
        let gaps = gaps.map(|(from, to)| gap(from, to)).to_vec();
        let inside = span(Some(10), Some(20)).cut(gaps.clone());
        let expected = [gap(10, 12), gap(12, 15), gap(18, 20), gap(40, 15)];
        assert_eq!(inside, expected);
        assert_eq!(span(None, None).cut(gaps.clone()), gaps);
    }

    #[test]
    fn what_stands_lands_at_the_next_sample_that_counts() {
        let samples = Samples {
            time_ms: vec![0; 8],
            is_complete_state: vec![true, false, false, false, false, true, false, false],
            ..Samples::default()
        };
        // Sample 4 is in another run than 3, and 5 has the full state. After 7 no sample counts.
        let counts = [false, false, true, false, false, true, true, false];
        let lead = Lead::new(samples, &[0..4, 4..8], &counts);
        let lands: Vec<_> = (0..8).map(|i| lead.lands_at(i)).collect();
        assert_eq!(lands[..4], [Some(2), Some(2), None, None]);
        assert_eq!(lands[4..], [None; 4]);
        let places: Vec<_> = (0..8).filter_map(|i| lead.place(i)).collect();
        assert_eq!(places, [0, 1, 2]);
        assert_eq!(
            (lead.place(5), lead.place(0), lead.place(9)),
            (Some(1), None, None)
        );
    }
}
