//! Cached part of each file at each sample, summed over the files that are live at the sample.
//!
//! The trace has the cached bytes of a file only while it is in use. At other times, the last known value in
//! the same run of samples stands in, or else the next known value in that run. This is an estimate, too high
//! if the kernel has dropped pages meanwhile.

use super::stretches::Stretches;
use ahash::HashMap;
use std::ops::Range;

/// Facts of one row of `files`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) file_id: i64,
    pub(super) sample: usize,
    /// The first sample at which the row no longer holds.
    pub(super) until: usize,
    /// True if an active process has the file open or mapped, or if it was opened since the sample before.
    pub(super) in_use: bool,
    /// True if an active process maps the file.
    pub(super) mapped: bool,
    pub(super) cached_bytes: Option<i64>,
    pub(super) mapped_cached_bytes: Option<i64>,
}

/// Samples in which one file's state and size are the same.
struct Piece {
    samples: Range<usize>,
    in_use: bool,
    bytes: i128,
}

/// For each sample, the cached bytes of all files that are live there by lookahead. `changes` are in the
/// order of recording; `segments` are the runs of samples.
pub(super) fn live_bytes(
    changes: &[Change],
    segments: &[Range<usize>],
    stretches: &Stretches,
) -> Vec<i128> {
    let changes = by_file(changes);
    let mut grows = vec![0; stretches.samples_count() + 1];
    for of_file in changes.chunk_by(|a, b| a.file_id == b.file_id) {
        let mut rest = of_file;
        while let Some(first) = rest.first() {
            let after = segments.partition_point(|s| s.end <= first.sample);
            let Some(segment) = segments.get(after) else {
                break;
            };
            let (run, later) = rest.split_at(rest.partition_point(|c| c.sample < segment.end));
            rest = later;
            add_run(run, segment, stretches, &mut grows);
        }
    }
    let running = grows.iter().scan(0, |sum: &mut i128, grows| {
        *sum += grows;
        Some(*sum)
    });
    running.take(stretches.samples_count()).collect()
}

/// The rows of each file together, in the order of recording. Rows are counted and then placed, which is faster
/// than sorting: a file has many rows.
fn by_file(changes: &[Change]) -> Vec<Change> {
    let mut numbers: HashMap<i64, usize> = HashMap::default();
    let mut number = |change: &Change| {
        let next = numbers.len();
        *numbers.entry(change.file_id).or_insert(next)
    };
    let number_of: Vec<usize> = changes.iter().map(&mut number).collect();
    let mut places = vec![0; numbers.len() + 1];
    for &number in &number_of {
        places[number + 1] += 1;
    }
    for number in 1..places.len() {
        places[number] += places[number - 1];
    }
    let mut grouped = vec![Change::default(); changes.len()];
    for (change, number) in changes.iter().zip(number_of) {
        grouped[places[number]] = *change;
        places[number] += 1;
    }
    grouped
}

/// Adds one file in one run of samples. `grows` holds each sample's difference from the sample before.
fn add_run(run: &[Change], segment: &Range<usize>, stretches: &Stretches, grows: &mut [i128]) {
    let pieces = pieces(run, segment);
    let accessed = pieces.iter().filter(|p| p.in_use);
    let live = stretches.live(accessed.map(|p| p.samples.clone()));
    let mut from = 0;
    for samples in live {
        from += pieces[from..].partition_point(|p| p.samples.end <= samples.start);
        for piece in pieces[from..]
            .iter()
            .take_while(|p| p.samples.start < samples.end)
        {
            grows[piece.samples.start.max(samples.start)] += piece.bytes;
            grows[piece.samples.end.min(samples.end)] -= piece.bytes;
        }
    }
}

/// States of one file over a whole run; no pieces if its cached bytes are unknown throughout the run.
fn pieces(run: &[Change], segment: &Range<usize>) -> Vec<Piece> {
    let known = |c: &Change| Some((c.cached_bytes?, c.mapped_cached_bytes.unwrap_or(0)));
    let (Some(mut size), Some(first)) = (run.iter().find_map(known), run.first()) else {
        return Vec::new();
    };
    // Cached pages that active processes map count as the processes' memory.
    let bytes = |(cached, mapped): (i64, i64), is_mapped: bool| {
        let mapped = if is_mapped { mapped.max(0) } else { 0 };
        (i128::from(cached) - i128::from(mapped)).max(0)
    };
    let mut pieces = vec![Piece {
        samples: segment.start..first.sample,
        in_use: false,
        bytes: bytes(size, false),
    }];
    let nexts = run.iter().skip(1).map(|c| c.sample).chain([segment.end]);
    for (change, next) in run.iter().zip(nexts) {
        size = known(change).unwrap_or(size);
        let until = change.until.clamp(change.sample, next);
        pieces.push(Piece {
            samples: change.sample..until,
            in_use: change.in_use,
            bytes: bytes(size, change.mapped),
        });
        pieces.push(Piece {
            samples: until..next,
            in_use: false,
            bytes: bytes(size, false),
        });
    }
    pieces.retain(|p| !p.samples.is_empty());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_hosts::derived::{BusyPeriod, IdlePeriod};
    use gleaner_schemas::findings::EndCause;
    use proptest::prelude::*;

    /// Stretches over `count` samples; `all` has for each its samples, whether it is idle, and whether its
    /// end is cut.
    fn stretches(count: usize, all: &[(Range<usize>, bool, bool)]) -> Stretches {
        let idle: Vec<IdlePeriod> = all
            .iter()
            .filter(|s| s.1)
            .map(|(samples, _, is_end_censored)| IdlePeriod {
                samples: samples.clone(),
                from_ms: 0,
                to_ms: 0,
                is_start_censored: false,
                end: (!is_end_censored).then_some(EndCause::Owner),
            })
            .collect();
        let busy: Vec<BusyPeriod> = all
            .iter()
            .filter(|s| !s.1)
            .map(|(samples, _, is_end_censored)| BusyPeriod {
                samples: samples.clone(),
                from_ms: 0,
                to_ms: 0,
                is_start_censored: false,
                is_end_censored: *is_end_censored,
            })
            .collect();
        Stretches::new(count, &idle, &busy)
    }

    fn open(file_id: i64, sample: usize, until: usize, cached_bytes: Option<i64>) -> Change {
        Change {
            file_id,
            sample,
            until,
            in_use: true,
            cached_bytes,
            ..Change::default()
        }
    }

    fn closed(file_id: i64, sample: usize, until: usize) -> Change {
        Change {
            file_id,
            sample,
            until,
            ..Change::default()
        }
    }

    /// A trace of 11 samples: idle 0-3, busy 3-5, idle 5-7, busy 7-9 up to a gap; idle 9-11, where the trace
    /// ends.
    fn week() -> (Vec<Range<usize>>, Stretches) {
        let all = [
            (0..3, true, false),
            (3..5, false, false),
            (5..7, true, false),
            (7..9, false, true),
            (9..11, true, true),
        ];
        (vec![0..9, 9..11], stretches(11, &all))
    }

    fn of(changes: &[Change]) -> Vec<i128> {
        let (segments, stretches) = week();
        live_bytes(changes, &segments, &stretches)
    }

    #[test]
    fn lookahead_by_hand() {
        // Used in the first busy period only: live in the idle period before it, with the next known size.
        let once = [open(1, 4, 9, Some(10)), closed(1, 5, 9)];
        assert_eq!(of(&once), [10, 10, 10, 10, 10, 0, 0, 0, 0, 0, 0]);
        // Used in the second busy period only: live from the idle period before that on.
        let later = [open(1, 8, 9, Some(10))];
        assert_eq!(of(&later), [0, 0, 0, 0, 0, 10, 10, 10, 10, 0, 0]);
        // Used in an idle period only: live in that period, with the last known size after the use ends.
        let away = [open(1, 5, 9, Some(10)), closed(1, 6, 9)];
        assert_eq!(of(&away), [0, 0, 0, 0, 0, 10, 10, 0, 0, 0, 0]);
        // A file used before the gap is not known after it, nor is a file used after the gap known before it.
        let after = [open(1, 10, 11, Some(7)), open(2, 0, 9, Some(1))];
        assert_eq!(of(&after), [1, 1, 1, 1, 1, 1, 1, 1, 1, 7, 7]);
    }

    #[test]
    fn sizes_by_hand() {
        // The file has 10, then 30 bytes while it is open in the first busy period. Before, the next known
        // size stands in; after, the last known. In the second idle period the file is not live.
        let grows = [
            open(1, 3, 9, Some(10)),
            open(1, 4, 9, Some(30)),
            closed(1, 5, 9),
        ];
        assert_eq!(of(&grows), [10, 10, 10, 10, 30, 0, 0, 0, 0, 0, 0]);
        // The mapped bytes belong to the process while it maps them, and to the cache before.
        let mapped = [
            Change {
                mapped: true,
                mapped_cached_bytes: Some(8),
                ..open(1, 3, 9, Some(10))
            },
            closed(1, 4, 9),
        ];
        assert_eq!(of(&mapped), [10, 10, 10, 2, 10, 0, 0, 0, 0, 0, 0]);
        // A file that is open with a size known only later, and a file whose size is never known.
        let unknown = [
            open(1, 3, 9, None),
            open(1, 4, 9, Some(5)),
            open(1, 5, 9, None),
            closed(1, 6, 9),
            open(2, 0, 9, None),
        ];
        assert_eq!(of(&unknown), [5, 5, 5, 5, 5, 5, 5, 0, 0, 0, 0]);
        // Dropped from the list by a full sample that does not name it: its size still stands.
        let forgotten = [open(1, 3, 4, Some(5))];
        assert_eq!(of(&forgotten), [5, 5, 5, 5, 5, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn contradictory_sizes_give_an_answer() {
        let odd = [
            open(1, 3, 9, Some(-10)),
            open(2, 3, 9, Some(i64::MAX)),
            open(3, 3, 9, Some(i64::MAX)),
            Change {
                mapped: true,
                mapped_cached_bytes: Some(20),
                ..open(4, 3, 9, Some(10))
            },
        ];
        assert_eq!(of(&odd)[4], 2 * i128::from(i64::MAX));
        assert_eq!(of(&[]), [0; 11]);
    }

    /// The definition, evaluated separately for each sample and file.
    fn slowly(
        changes: &[Change],
        segments: &[Range<usize>],
        all: &[(Range<usize>, bool, bool)],
        at: usize,
    ) -> i128 {
        let segment = segments.iter().find(|s| s.contains(&at)).unwrap();
        let Some(here) = all.iter().position(|s| s.0.contains(&at)) else {
            return 0;
        };
        let mut counts = vec![all[here].0.clone()];
        if let (_, true, false) = all[here] {
            counts.push(all[here + 1].0.clone());
        }
        let mut ids: Vec<i64> = changes.iter().map(|c| c.file_id).collect();
        ids.sort_unstable();
        ids.dedup();
        let standing = |id: i64, t: usize| {
            let last = changes.iter().rfind(|c| c.file_id == id && c.sample <= t);
            last.filter(|c| t < c.until)
        };
        let mut sum = 0;
        for id in ids {
            let mut accessed = counts.iter().flat_map(Clone::clone);
            if !accessed.any(|t| standing(id, t).is_some_and(|c| c.in_use)) {
                continue;
            }
            let known = |c: &&Change| {
                c.file_id == id && segment.contains(&c.sample) && c.cached_bytes.is_some()
            };
            let before = changes.iter().filter(known).rfind(|c| c.sample <= at);
            let Some(size) = before.or_else(|| changes.iter().find(known)) else {
                continue;
            };
            let mapped = standing(id, at).is_some_and(|c| c.mapped);
            let theirs = size.mapped_cached_bytes.filter(|_| mapped).unwrap_or(0);
            sum += i128::from((size.cached_bytes.unwrap() - theirs).max(0));
        }
        sum
    }

    proptest! {
        #[test]
        fn equals_the_slow_version(
            // For each segment: the lengths of its stretches (0 is a visit, always busy), whether the first
            // is idle, and the number of samples in its middle with unknown idleness.
            plan in prop::collection::vec((prop::collection::vec(0..4usize, 1..6), any::<bool>(), 0..2usize), 1..4),
            rows in prop::collection::vec(
                (0..4i64, 0..40usize, 1..12usize, any::<bool>(), any::<bool>(), prop::option::of(0..100i64), prop::option::of(0..100i64)),
                0..40,
            ),
        ) {
            let mut segments = Vec::new();
            let mut all: Vec<(Range<usize>, bool, bool)> = Vec::new();
            let mut at = 0;
            for (lengths, first_is_idle, blind) in plan {
                let start = at;
                for (i, length) in lengths.iter().enumerate() {
                    let is_idle = first_is_idle == (i % 2 == 0);
                    let last = i + 1 == lengths.len();
                    let length = if is_idle || last { (*length).max(1) } else { *length };
                    all.push((at..at + length, is_idle, last));
                    at += length;
                }
                at += blind;
                segments.push(start..at);
            }
            let mut changes: Vec<Change> = rows
                .into_iter()
                .filter(|r| r.1 < at)
                .map(|(file_id, sample, lasts, in_use, mapped, cached_bytes, mapped_cached_bytes)| {
                    let segment = segments.iter().find(|s| s.contains(&sample)).unwrap();
                    Change {
                        file_id,
                        sample,
                        until: (sample + lasts).min(segment.end),
                        in_use,
                        mapped: in_use && mapped,
                        cached_bytes,
                        mapped_cached_bytes,
                    }
                })
                .collect();
            changes.sort_by_key(|c| c.sample);
            changes.dedup_by_key(|c| (c.sample, c.file_id));
            let found = live_bytes(&changes, &segments, &stretches(at, &all));
            let slow: Vec<i128> = (0..at).map(|t| slowly(&changes, &segments, &all, t)).collect();
            prop_assert_eq!(found, slow);
        }
    }
}
