//! Validity in tables of changes: a row is valid from its sample until the next row of its item, until a
//! sample that lists the full state, or until the run of samples ends, whichever comes first.

use super::HostTrace;
use crate::trace::samples::Samples;
use std::ops::Range;

/// Samples at which the rows of one table are valid.
pub(crate) struct StandingTime {
    sample_of: Vec<Option<usize>>,
    state_ends: Vec<usize>,
}

impl StandingTime {
    /// Validity of the rows of a table; `sample_of` is the sample of each row, in `trace`.
    pub(crate) fn new(trace: &HostTrace<'_>, sample_of: Vec<Option<usize>>) -> Self {
        Self {
            sample_of,
            state_ends: state_ends(&trace.samples, &trace.segments),
        }
    }

    /// The rows of `group`, which concern one item, each with the samples at which it is valid. Rows
    /// without a sample are left out.
    pub(crate) fn spans(&self, group: &[usize]) -> Vec<(usize, Range<usize>)> {
        let of_rows = group.iter().map(|&row| Some((row, self.sample_of[row]?)));
        let begins: Vec<(usize, usize)> = of_rows.flatten().collect();
        let next = begins.iter().skip(1).map(|(_, sample)| *sample);
        let nexts: Vec<usize> = next.chain([usize::MAX]).collect();
        begins
            .iter()
            .zip(nexts)
            .map(|(&(row, sample), next)| {
                let until = next.min(self.state_ends[sample]);
                (row, sample..until.max(sample))
            })
            .collect()
    }
}

/// For each sample, the first one after it at which an earlier state is no longer valid.
pub(crate) fn state_ends(samples: &Samples, segments: &[Range<usize>]) -> Vec<usize> {
    let mut forgotten = vec![0; samples.len()];
    for segment in segments {
        let mut at = segment.end;
        for i in segment.clone().rev() {
            forgotten[i] = at;
            if samples.is_complete_state[i] {
                at = i;
            }
        }
    }
    forgotten
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_forgotten_at_the_next_whole_one_and_at_gaps() {
        let samples = Samples {
            time_ms: vec![0; 6],
            is_complete_state: vec![true, false, true, false, true, false],
            ..Default::default()
        };
        assert_eq!(state_ends(&samples, &[0..4, 4..6]), [2, 2, 4, 4, 6, 6]);
    }

    #[test]
    fn a_row_stands_until_the_next_of_its_group() {
        let standing = StandingTime {
            sample_of: vec![Some(0), None, Some(1), Some(3), Some(3)],
            state_ends: vec![5, 5, 5, 5, 5],
        };
        let spans = |group: &[usize]| standing.spans(group);
        assert_eq!(spans(&[0, 2, 3]), [(0, 0..1), (2, 1..3), (3, 3..5)]);
        assert_eq!(spans(&[0, 1, 4]), [(0, 0..3), (4, 3..5)], "1 has no sample");
        assert_eq!(spans(&[]), []);
    }
}
