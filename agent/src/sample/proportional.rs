//! Chooses the processes whose proportional sizes a sample reads; the others keep an earlier reading.
//!
//! Reading `smaps_rollup` takes 6 to 43 ms per GiB of small pages (measured on an idle host and beside
//! compilers). During this time the process must wait if it needs the lock of its own memory map.

use crate::read::process::Split;

/// Size limit: larger processes are not read. At 43 ms per GiB, reading one of this size takes less than 10
/// ms.
pub const LARGEST_BYTES: u64 = 192 << 20;

/// Maximum resident memory walked in one sample: at most 22 ms. It exceeds [`LARGEST_BYTES`], so that the
/// process whose reading is oldest is read in every sample.
pub const SAMPLE_BYTES: u64 = 512 << 20;

/// Number of later walks in which a reading stays valid. It is small: a fork or exit changes a process'
/// proportional sizes while its own size stays the same.
const SERVES_WALKS: u64 = 4;

/// Two sizes count as equal if they differ by at most this fraction (1/64) of resident memory.
const SAME_SIZE_PART: u64 = 64;

/// Size of a process, from `statm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Resident memory, in bytes.
    pub rss_bytes: u64,
    /// File pages and shared memory within the resident memory, in bytes.
    pub shared_bytes: u64,
}

impl Size {
    const fn is_same_mapping(&self, other: &Self) -> bool {
        let most_apart_bytes = other.rss_bytes / SAME_SIZE_PART;
        self.rss_bytes.abs_diff(other.rss_bytes) <= most_apart_bytes
            && self.shared_bytes.abs_diff(other.shared_bytes) <= most_apart_bytes
    }
}

/// A reading of one process, with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Number of the walk.
    pub walk: u64,
    /// Size of the process at the time of the reading.
    pub size: Size,
    /// Proportional sizes of the process at that time.
    pub split: Split,
}

/// Source of a process' split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Read from `smaps_rollup` now.
    Read,
    /// Reuse an earlier reading.
    Reuse(Split),
    /// Estimate from resident sizes.
    Estimate,
}

/// Chooses how each active process' memory is divided in walk number `walk`. A process is given as its size
/// and its last reading.
///
/// A reading is reused while it is recent and the size is about the same. The other processes are read, as
/// far as [`SAMPLE_BYTES`] allows: first those never read, then those with the oldest readings, and among
/// equals the small ones first. For the remaining processes an older reading is reused if the size is about
/// the same; otherwise their memory is estimated.
#[must_use]
pub fn choose(processes: &[(Size, Option<Reading>)], walk: u64) -> Vec<Choice> {
    let mut choices = Vec::with_capacity(processes.len());
    let mut due = Vec::new();
    for (at, (size, last)) in processes.iter().enumerate() {
        let reading = last.filter(|reading| size.is_same_mapping(&reading.size));
        let is_recent = reading.is_some_and(|reading| walk - reading.walk <= SERVES_WALKS);
        if size.rss_bytes <= LARGEST_BYTES && !is_recent {
            due.push((last.map(|reading| reading.walk), size.rss_bytes, at));
        }
        choices.push(match reading {
            Some(reading) if is_recent || size.rss_bytes <= LARGEST_BYTES => {
                Choice::Reuse(reading.split)
            }
            _ => Choice::Estimate,
        });
    }
    due.sort_unstable();
    let mut left_bytes = SAMPLE_BYTES;
    for (_, rss_bytes, at) in due {
        if rss_bytes <= left_bytes {
            left_bytes -= rss_bytes;
            choices[at] = Choice::Read;
        }
    }
    choices
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    fn size(rss_mib: u64, shared_mib: u64) -> Size {
        Size {
            rss_bytes: rss_mib * MIB,
            shared_bytes: shared_mib * MIB,
        }
    }

    fn reading(walk: u64, rss_mib: u64, shared_mib: u64) -> Option<Reading> {
        Some(Reading {
            walk,
            size: size(rss_mib, shared_mib),
            split: Split {
                anon_bytes: Some(rss_mib),
                ..Split::default()
            },
        })
    }

    /// Choices in walk 10, as words.
    fn words(processes: &[(Size, Option<Reading>)]) -> Vec<&'static str> {
        let word = |choice| match choice {
            Choice::Read => "read",
            Choice::Reuse(_) => "reuse",
            Choice::Estimate => "estimate",
        };
        choose(processes, 10).into_iter().map(word).collect()
    }

    #[test]
    fn one_process() {
        let cases = [
            (size(192, 10), None, "read"),
            (size(193, 10), None, "estimate"),
            (size(128, 64), reading(9, 128, 64), "reuse"),
            (size(128, 64), reading(6, 128, 64), "reuse"),
            (size(128, 64), reading(5, 128, 64), "read"), // five walks ago
            (size(130, 64), reading(9, 128, 64), "reuse"), // a difference of 1/64
            (size(131, 64), reading(9, 128, 64), "read"),
            (size(128, 67), reading(9, 128, 64), "read"), // file pages replaced anonymous ones
            (size(193, 10), reading(9, 192, 10), "reuse"),
            (size(193, 10), reading(5, 192, 10), "estimate"),
        ];
        for (now, last, expected) in cases {
            assert_eq!(words(&[(now, last)]), [expected], "{now:?} {last:?}");
        }
    }

    #[test]
    fn the_longest_unread_come_first_then_the_small_as_far_as_the_budget_reaches() {
        let processes = [
            (size(192, 0), None),
            (size(192, 0), reading(2, 192, 0)), // about the same size eight walks ago
            (size(192, 0), reading(1, 10, 0)),
            (size(150, 0), None),
            (size(50, 0), reading(3, 25, 0)),
            (size(200, 0), None),
        ];
        // Of 512 MiB, the processes never read take 150 + 192. In the remaining 170 MiB only the process of
        // 50 MiB fits.
        let expected = ["read", "reuse", "estimate", "read", "read", "estimate"];
        assert_eq!(words(&processes), expected);
    }

    proptest! {
        #[test]
        fn bounded_and_each_gets_its_turn(sizes in proptest::collection::vec(0..200 * MIB, 1..40)) {
            let mut last: Vec<Option<Reading>> = vec![None; sizes.len()];
            for walk in 1..=sizes.len() as u64 {
                // Sizes always differ, so that no reading is reused.
                let now = |bytes: u64| Size { rss_bytes: bytes, shared_bytes: bytes * (walk % 2) };
                let processes: Vec<_> = sizes.iter().map(|&b| now(b)).zip(last.clone()).collect();
                let choices = choose(&processes, walk);
                let read = |at: usize| matches!(choices[at], Choice::Read);
                let walked: u64 = (0..sizes.len()).filter(|&at| read(at)).map(|at| sizes[at]).sum();
                prop_assert!(walked <= SAMPLE_BYTES);
                for at in 0..sizes.len() {
                    if read(at) {
                        prop_assert!(sizes[at] <= LARGEST_BYTES);
                        last[at] = Some(Reading { walk, size: now(sizes[at]), split: Split::default() });
                    }
                }
            }
            for (bytes, last) in sizes.iter().zip(last) {
                prop_assert_eq!(last.is_some(), *bytes <= LARGEST_BYTES);
            }
        }
    }
}
