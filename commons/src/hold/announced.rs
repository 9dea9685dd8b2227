//! Memory that a member announces as its weight among the homes of blocks. Each change moves the homes of some
//! blocks, and their new homes do not have them; so the announced memory changes seldom.

/// Number of the leading bits that the announced size keeps: four sizes for each doubling.
const SIGNIFICANT_BITS: u32 = 3;

/// Blocks to announce after `announced`, if `reachable` blocks fit in the leases and those that can be
/// requested. Never more than `reachable`; the same as before until half as much again is reachable.
pub(super) const fn announced_frames(announced: u32, reachable: u32) -> u32 {
    if announced > 0 && reachable >= announced && reachable - announced < announced / 2 {
        return announced;
    }
    let rounded_bits = (u32::BITS - reachable.leading_zeros()).saturating_sub(SIGNIFICANT_BITS);
    reachable >> rounded_bits << rounded_bits
}

#[cfg(test)]
mod tests {
    use super::announced_frames;
    use proptest::prelude::*;

    #[test]
    fn the_announced_memory_follows_large_changes_alone() {
        // Before, reachable, announced.
        for (announced, reachable, next) in [
            (0, 0, 0),
            (0, 1, 1),
            (0, 1_632, 1_536),
            (1_536, 1_632, 1_536),
            (1_536, 2_303, 1_536),
            (1_536, 2_304, 2_048),
            (1_536, 1_535, 1_280),
            (1_536, 0, 0),
            (1, 1, 1),
            (u32::MAX, u32::MAX, u32::MAX),
        ] {
            assert_eq!(
                announced_frames(announced, reachable),
                next,
                "{announced}, {reachable}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_member_announces_more_than_it_can_reach(announced: u32, reachable: u32) {
            let next = announced_frames(announced, reachable);
            prop_assert!(next <= reachable);
            prop_assert!(u64::from(next) * 8 > u64::from(reachable) * 5 || next == announced);
            prop_assert_eq!(announced_frames(next, reachable), next, "it settles at once");
        }
    }
}
