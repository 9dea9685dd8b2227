//! Busy and idle periods as runs of samples, and how far each looks ahead.

use gleaner_hosts::derived::{BusyPeriod, IdlePeriod};
use std::ops::Range;

/// The samples of one busy or idle period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) samples: Range<usize>,
    /// True if the files accessed in the next stretch count for this one: an idle period whose end was seen.
    pub(super) leads: bool,
    /// True if some files that may count for the stretch are unknown.
    pub(super) cut: bool,
}

/// All stretches of one host, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Stretches {
    pub(super) all: Vec<Stretch>,
    /// For each sample, the first stretch that does not end before the sample.
    next: Vec<usize>,
    /// For each stretch, the last of the stretches that follow it without a sample between them.
    joined: Vec<usize>,
}

impl Stretches {
    pub(super) fn new(samples_count: usize, idle: &[IdlePeriod], busy: &[BusyPeriod]) -> Self {
        let away = idle.iter().map(|p| Stretch {
            samples: p.samples.clone(),
            leads: p.end.is_some(),
            cut: p.is_start_censored || p.end.is_none(),
        });
        let there = busy.iter().map(|p| Stretch {
            samples: p.samples.clone(),
            leads: false,
            cut: p.is_start_censored || p.is_end_censored,
        });
        let mut all: Vec<Stretch> = away.chain(there).collect();
        // A visit between two samples has no samples, and comes before the idle period that begins there.
        all.sort_by_key(|s| (s.samples.start, s.samples.end));
        for i in 1..all.len() {
            all[i - 1].cut |= all[i - 1].leads && all[i].cut;
        }
        let mut next = vec![all.len(); samples_count];
        let mut ended = 0;
        for (i, stretch) in all.iter().enumerate() {
            next[ended..stretch.samples.end].fill(i);
            ended = stretch.samples.end;
        }
        let mut joined: Vec<usize> = (0..all.len()).collect();
        for i in (1..all.len()).rev() {
            if all[i - 1].samples.end == all[i].samples.start {
                joined[i - 1] = joined[i];
            }
        }
        Self { all, next, joined }
    }

    /// The stretch of a sample; `None` if idleness is unknown.
    pub(super) fn of_sample(&self, sample: usize) -> Option<&Stretch> {
        let stretch = self.all.get(*self.next.get(sample)?)?;
        stretch.samples.contains(&sample).then_some(stretch)
    }

    pub(super) fn samples_count(&self) -> usize {
        self.next.len()
    }

    /// The samples at which a file is live if it is accessed in `accessed` (sorted, not empty): ranges in
    /// order, disjoint and not empty.
    pub(super) fn live(&self, accessed: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
        let mut live: Vec<Range<usize>> = Vec::new();
        let mut reached = 0;
        for samples in accessed {
            let first = self.next[samples.start];
            let end = match self.next[samples.end - 1] {
                last if self.of_sample(samples.end - 1).is_some() => last + 1,
                none => none,
            };
            let leading = first
                .checked_sub(1)
                .filter(|&b| first < end && self.all[b].leads);
            let mut at = leading.unwrap_or(first).max(reached);
            while at < end {
                let last = self.joined[at].min(end - 1);
                extend(
                    &mut live,
                    self.all[at].samples.start..self.all[last].samples.end,
                );
                at = last + 1;
            }
            reached = reached.max(end);
        }
        live
    }
}

fn extend(live: &mut Vec<Range<usize>>, samples: Range<usize>) {
    match live.last_mut() {
        Some(last) if last.end == samples.start => last.end = samples.end,
        _ => live.push(samples),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::findings::EndCause;

    fn idle(samples: Range<usize>, is_end_censored: bool) -> IdlePeriod {
        IdlePeriod {
            samples,
            from_ms: 0,
            to_ms: 0,
            is_start_censored: false,
            end: (!is_end_censored).then_some(EndCause::Owner),
        }
    }

    fn busy(samples: Range<usize>, is_end_censored: bool) -> BusyPeriod {
        BusyPeriod {
            samples,
            from_ms: 0,
            to_ms: 0,
            is_start_censored: false,
            is_end_censored,
        }
    }

    #[test]
    fn an_absence_looks_ahead_to_the_next_presence_and_no_further() {
        // Idle 0-2, busy 2-4, idle 4-6, busy 6-8; then a gap; busy 8-9, idle 9-11 to the end. At sample 11
        // idleness is unknown.
        let stretches = Stretches::new(
            12,
            &[idle(0..2, false), idle(4..6, false), idle(9..11, true)],
            &[busy(2..4, false), busy(6..8, true), busy(8..9, false)],
        );
        let live = |accessed: &[Range<usize>]| stretches.live(accessed.iter().cloned());
        assert_eq!(live(&[0..1]), [0..2]);
        assert_eq!(live(&[3..4]), [0..4]);
        assert_eq!(live(&[6..7]), [4..8]);
        assert_eq!(live(&[1..2, 7..8]), [0..2, 4..8]);
        assert_eq!(live(&[3..7]), [0..8]);
        assert_eq!(live(&[8..9]), [8..9], "not across the gap");
        assert_eq!(live(&[10..12]), [9..11]);
        assert!(live(&[11..12]).is_empty());
        let cut: Vec<bool> = stretches.all.iter().map(|s| s.cut).collect();
        // The second idle period looks ahead to a busy period that the gap cuts.
        assert_eq!(cut, [false, false, true, true, false, true]);
    }

    #[test]
    fn a_visit_between_two_samples_shows_nothing() {
        let stretches = Stretches::new(
            4,
            &[idle(0..2, false), idle(2..4, true)],
            &[busy(2..2, false)],
        );
        assert_eq!(stretches.live([3..4].into_iter()), [2..4]);
        assert!(!stretches.all[0].cut && stretches.all[2].cut);
    }
}
