//! Ages of pages, and their distribution in log-linear classes.

/// Age of a free frame, which is older than every page.
pub const INFINITE_MS: u64 = u64::MAX;

/// Number of classes: below 1 s, four per octave from 1 s to 2¹⁷ s, and the rest.
pub const CLASSES: usize = 70;

/// Age from which a page counts as old.
pub const OLD_MS: u64 = 20_000;

/// Age of a page that was last used at `last_use_ms`; global pages age faster, by `boost_quarters` / 4 (the
/// "boost" of GMS, section 3.1: 5 quarters here).
#[must_use]
#[inline]
pub fn age_ms(last_use_ms: i64, is_global: bool, boost_quarters: u32, at_ms: i64) -> u64 {
    let age = u64::try_from(at_ms.saturating_sub(last_use_ms)).unwrap_or(0);
    if is_global {
        age.saturating_mul(u64::from(boost_quarters)) / 4
    } else {
        age
    }
}

/// Class of an age, from 0.
#[must_use]
#[inline]
pub const fn class_of(age_ms: u64) -> usize {
    // The lower end of every class is a multiple of a quarter second.
    let quarters = age_ms / 250;
    if quarters < 4 {
        return 0;
    }
    let octave = quarters.ilog2() - 2;
    if octave >= 17 {
        return CLASSES - 1;
    }
    1 + 4 * octave as usize + ((quarters >> octave) & 3) as usize
}

/// Youngest age of a class. For `CLASSES`, the end of the last class, which is as wide as its lower end.
#[must_use]
pub const fn class_begin_ms(class: usize) -> u64 {
    if class == 0 {
        return 0;
    }
    if class >= CLASSES {
        return 250 << 20;
    }
    let steps = class as u64 - 1;
    (250 * (4 + steps % 4)) << (steps / 4)
}

/// Distribution of a node's frames by age, and its counts since the last summary.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Summary {
    /// Pages in each class of ages.
    pub classes: [u32; CLASSES],
    /// Frames without a page.
    pub free_frames: u32,
    /// Pages that left the cluster, or took the place of another, by this node's decision.
    pub replaced: u32,
    /// Pages that the node received from others and stored.
    pub received: u32,
    /// Received pages whose victim was younger than the minimum age.
    pub stale: u32,
}

impl Default for Summary {
    fn default() -> Self {
        Self {
            classes: [0; CLASSES],
            free_frames: 0,
            replaced: 0,
            received: 0,
            stale: 0,
        }
    }
}

impl Summary {
    /// Size of the message, in bytes: every field, the epoch's number and the sender.
    pub const BYTES: u64 = 4 * (CLASSES as u64 + 4) + 12;

    /// Counts pages of these ages. Neighbours often have the same class; counts in four arrays need not wait for each
    /// other.
    pub(super) fn count_all(&mut self, ages_ms: impl Iterator<Item = u64>) {
        let mut classes = [[0_u32; CLASSES]; 4];
        for (number, age_ms) in ages_ms.enumerate() {
            classes[number % 4][class_of(age_ms)] += 1;
        }
        for counts in &classes {
            for (sum, count) in self.classes.iter_mut().zip(counts) {
                *sum += count;
            }
        }
    }

    /// The same summary with at most `frames` frames: the oldest of them, since only old frames get a weight.
    /// So no node gets a larger weight than it has frames by another source.
    #[must_use]
    pub fn limited_to(mut self, frames: u64) -> Self {
        let mut left = frames;
        let mut take = |count: u32| {
            let taken = u32::try_from(left).unwrap_or(u32::MAX).min(count);
            left -= u64::from(taken);
            taken
        };
        self.free_frames = take(self.free_frames);
        for count in self.classes.iter_mut().rev() {
            *count = take(*count);
        }
        self
    }

    /// Number of frames, with and without a page.
    #[must_use]
    pub fn frames(&self) -> u64 {
        u64::from(self.free_frames) + self.classes.iter().map(|n| u64::from(*n)).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_begins_where_the_last_one_ends() {
        for class in 1..CLASSES {
            let begin_ms = class_begin_ms(class);
            assert_eq!(class_of(begin_ms), class, "{begin_ms}");
            assert_eq!(class_of(begin_ms - 1), class - 1, "{begin_ms}");
        }
        assert_eq!(class_of(INFINITE_MS), CLASSES - 1);
        assert_eq!(class_begin_ms(CLASSES - 1), (1 << 17) * 1000);
        assert_eq!(class_begin_ms(CLASSES), (1 << 18) * 1000);
        assert_eq!(class_begin_ms(class_of(OLD_MS)), OLD_MS);
    }

    #[test]
    fn a_limited_summary_keeps_its_oldest_frames() {
        let mut summary = Summary {
            free_frames: 10,
            ..Summary::default()
        };
        summary.count_all([500, 30_000].into_iter());
        assert_eq!(summary.clone().limited_to(12), summary);
        assert_eq!(summary.clone().limited_to(u64::MAX), summary);
        let limited = summary.clone().limited_to(11);
        assert_eq!((limited.frames(), limited.free_frames), (11, 10));
        assert_eq!(
            (limited.classes[0], limited.classes[class_of(30_000)]),
            (0, 1)
        );
        assert_eq!(summary.clone().limited_to(4).free_frames, 4);
        assert_eq!(summary.limited_to(0).frames(), 0);
    }

    #[test]
    fn only_global_pages_are_boosted() {
        assert_eq!(age_ms(-50_000, true, 5, 3_000), 66_250);
        assert_eq!(age_ms(-50_000, false, 5, 3_000), 53_000);
        assert_eq!(age_ms(10, true, 5, 3), 0);
    }
}
