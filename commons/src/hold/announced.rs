//! Memory that a member announces as its weight among the homes of blocks. Each change moves the homes of some
//! blocks, and their new homes do not have them; so the announced memory changes seldom.

/// Number of the leading bits that the announced size keeps: four sizes for each doubling.
const SIGNIFICANT_BITS: u32 = 3;

/// Bytes of the leases and of those that can be requested when blocks fill them, if `allowed_bytes` of leases are
/// allowed (`None`: unknown). A host without leases, or that was refused one, counts the leases alone.
pub(super) const fn reachable_bytes(
    leased_bytes: u64,
    allowed_bytes: Option<u64>,
    is_short: bool,
) -> u64 {
    match allowed_bytes {
        Some(allowed_bytes) if leased_bytes > 0 && !is_short => allowed_bytes,
        _ => leased_bytes,
    }
}

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
    use super::{announced_frames, reachable_bytes};
    use proptest::prelude::*;

    #[test]
    fn a_host_whose_leases_grow_announces_the_allowed_memory_from_its_first_lease_on() {
        let growing = [64, 128, 192].map(|leased| reachable_bytes(leased, Some(192), false));
        assert_eq!(growing, [192; 3]);
        assert_eq!(reachable_bytes(0, Some(192), false), 0, "no lease yet");
        assert_eq!(reachable_bytes(64, Some(192), true), 64, "refused");
        assert_eq!(reachable_bytes(64, None, false), 64, "unknown quota");
        assert_eq!(reachable_bytes(128, Some(64), false), 64, "a lowered quota");
    }

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
