//! Classes by memory size, and the default sizes to be measured.

use serde::{Deserialize, Serialize};
use std::fmt;

const GIB: i64 = 1 << 30;
const MIB: i64 = 1 << 20;
const KIB: i64 = 1 << 10;
const TIB: i64 = 1 << 40;

/// Classes of hosts by physical memory.
#[derive(Clone, Debug)]
pub(crate) struct Classes {
    /// Upper bounds, ascending. If there are none, the bounds are powers of two.
    bounds: Vec<i64>,
}

impl Classes {
    /// Classes with these upper bounds, or powers of two if there are none: a "32 GiB" host, of which
    /// firmware took some memory, is in `16-32 GiB`.
    pub(crate) fn new(bounds: &[i64]) -> Self {
        let mut bounds = bounds.to_vec();
        bounds.sort_unstable();
        bounds.dedup();
        Self { bounds }
    }

    /// The class of a host.
    pub(crate) fn of(&self, physical_bytes: i64) -> SizeClass {
        if self.bounds.is_empty() {
            return SizeClass::power_of_two(physical_bytes);
        }
        let above = self.bounds.partition_point(|bound| *bound < physical_bytes);
        let below = above.checked_sub(1).and_then(|i| self.bounds.get(i));
        SizeClass {
            above_bytes: below.copied().unwrap_or(0),
            to_bytes: self.bounds.get(above).copied().unwrap_or(i64::MAX),
        }
    }
}

/// Class of hosts with physical memory above one size and up to another. Ordered by size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct SizeClass {
    above_bytes: i64,
    to_bytes: i64,
}

impl SizeClass {
    fn power_of_two(physical_bytes: i64) -> Self {
        let below = u64::try_from(physical_bytes).unwrap_or(0).saturating_sub(1);
        let to_bytes = 1i64.checked_shl(u64::BITS - below.leading_zeros());
        let to_bytes = to_bytes.filter(|bytes| *bytes > 0).unwrap_or(i64::MAX);
        Self {
            // 2^63 does not fit into i64; half of it is 2^62.
            above_bytes: (to_bytes / 2).max(if to_bytes == i64::MAX { 1 << 62 } else { 0 }),
            to_bytes,
        }
    }

    /// Maximum memory of a host of the class.
    pub(crate) fn largest_bytes(self) -> i64 {
        self.to_bytes
    }
}

impl fmt::Display for SizeClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (above, to) = (self.above_bytes, self.to_bytes);
        if to <= 1 {
            return f.write_str("unknown"); // no host has so little
        }
        // The largest unit in which both ends are integers.
        let fits = |unit: i64| above % unit == 0 && (to % unit == 0 || to == i64::MAX);
        let units = [(TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")];
        let unit = units
            .into_iter()
            .find(|(unit, _)| fits(*unit) && above.max(to) >= *unit);
        let (unit, name) = unit.unwrap_or((1, "B"));
        match (above, to) {
            (0, _) => write!(f, "up to {} {name}", to / unit),
            (_, i64::MAX) => write!(f, "above {} {name}", above / unit),
            _ => write!(f, "{}-{} {name}", above / unit, to / unit),
        }
    }
}

/// Default region sizes: powers of four from 64 MiB up to the largest host's memory; from 4 MiB, or 256 KiB,
/// if that would be fewer than three.
pub(crate) fn default_regions(largest_physical_bytes: i64) -> Vec<i64> {
    let from = |smallest: i64| -> Vec<i64> {
        std::iter::successors(Some(smallest), |size| size.checked_mul(4))
            .take_while(|size| *size <= largest_physical_bytes)
            .collect()
    };
    [64 * MIB, 4 * MIB, 256 * KIB]
        .into_iter()
        .map(from)
        .find(|sizes| sizes.len() >= 3)
        .unwrap_or_else(|| vec![64 * MIB])
}

/// Default dip thresholds: a sixteenth, an eighth and a quarter of the largest class's memory. These are the
/// powers of two near 5, 10 and 25 %.
pub(crate) fn default_dip_thresholds(largest_physical_bytes: i64) -> Vec<i64> {
    let largest = SizeClass::power_of_two(largest_physical_bytes).largest_bytes();
    let mut sizes: Vec<i64> = [16, 8, 4].map(|part| (largest / part).max(1)).to_vec();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_powers_of_two() {
        let cases = [
            (32 * GIB, "16-32 GiB"),
            (32 * GIB - 600 * MIB, "16-32 GiB"),
            (16 * GIB + 1, "16-32 GiB"),
            (16 * GIB, "8-16 GiB"),
            (GIB, "512-1024 MiB"),
            (2 * GIB, "1-2 GiB"),
            (31 * MIB, "16-32 MiB"),
            (2 * TIB, "1-2 TiB"),
            (0, "unknown"),
            (-1, "unknown"),
            (i64::MAX, "above 4194304 TiB"),
        ];
        for (bytes, name) in cases {
            assert_eq!(Classes::new(&[]).of(bytes).to_string(), name, "{bytes}");
        }
        let of = |bytes| Classes::new(&[]).of(bytes);
        assert!(of(GIB) < of(2 * GIB));
    }

    #[test]
    fn classes_as_asked() {
        let classes = Classes::new(&[256 * MIB, 64 * MIB, GIB]);
        let cases = [
            (32 * MIB, "up to 64 MiB"),
            (64 * MIB, "up to 64 MiB"),
            (65 * MIB, "64-256 MiB"),
            (300 * MIB, "256-1024 MiB"),
            (2 * GIB, "above 1 GiB"),
        ];
        for (bytes, name) in cases {
            assert_eq!(classes.of(bytes).to_string(), name, "{bytes}");
        }
    }

    #[test]
    fn regions_are_at_least_three() {
        assert_eq!(
            default_regions(32 * GIB),
            [64 * MIB, 256 * MIB, GIB, 4 * GIB, 16 * GIB]
        );
        assert_eq!(default_regions(128 * MIB), [4 * MIB, 16 * MIB, 64 * MIB]);
        assert_eq!(default_regions(32 * MIB).first(), Some(&(256 * KIB)));
        assert_eq!(default_regions(0), [64 * MIB]);
    }

    #[test]
    fn dips_of_a_32_gib_class() {
        assert_eq!(
            default_dip_thresholds(31 * GIB),
            [2 * GIB, 4 * GIB, 8 * GIB]
        );
        assert_eq!(default_dip_thresholds(0), [1]);
    }
}
