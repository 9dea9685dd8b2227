//! Classes by memory size, and the sizes that are measured where none are asked for.

use std::fmt;

const GIB: i64 = 1 << 30;
const MIB: i64 = 1 << 20;
const KIB: i64 = 1 << 10;
const TIB: i64 = 1 << 40;

/// Hosts of physical memory above 2^(n−1) and up to 2^n bytes: a "32 GiB" host, of which firmware
/// took some, is in `16-32 GiB`. Ordered by size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SizeClass {
    /// n.
    exponent: u32,
}

impl SizeClass {
    pub(crate) fn of(physical_bytes: i64) -> Self {
        let below = u64::try_from(physical_bytes).unwrap_or(0).saturating_sub(1);
        Self {
            exponent: u64::BITS - below.leading_zeros(),
        }
    }

    /// Most memory that a host of the class has.
    pub(crate) fn largest_bytes(self) -> i64 {
        1i64.checked_shl(self.exponent.min(62)).unwrap_or(i64::MAX)
    }
}

impl fmt::Display for SizeClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.exponent == 0 {
            return f.write_str("unknown"); // no host has so little
        }
        let (to, from) = (self.largest_bytes(), self.largest_bytes() / 2);
        // The unit in which the lower end is a whole number.
        let (unit, name) = match from {
            TIB.. => (TIB, "TiB"),
            GIB.. => (GIB, "GiB"),
            MIB.. => (MIB, "MiB"),
            _ => (KIB, "KiB"),
        };
        write!(f, "{}-{} {name}", from / unit, to / unit)
    }
}

/// Regions: powers of four from 64 MiB up to the largest host's memory; from 4 MiB, or 256 KiB,
/// where that would be fewer than three.
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

/// Dips: a sixteenth, an eighth and a quarter of the largest class's memory, the powers of two near
/// 5, 10 and 25 %.
pub(crate) fn default_dip_thresholds(largest_physical_bytes: i64) -> Vec<i64> {
    let largest = SizeClass::of(largest_physical_bytes).largest_bytes();
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
            (i64::MAX, "2097152-4194304 TiB"),
        ];
        for (bytes, name) in cases {
            assert_eq!(SizeClass::of(bytes).to_string(), name, "{bytes}");
        }
        assert!(SizeClass::of(GIB) < SizeClass::of(2 * GIB));
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
