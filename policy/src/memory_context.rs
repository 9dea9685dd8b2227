//! Cost of lending for an owner who returns (Acharya & Setia, section 3.4): memory that was pushed out for
//! guests and must be read back.

use crate::accounting::Categories;

/// Memory that the owner and others need at the owner's return.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// The paper's A: footprint of the processes that are active in the first 200 s of the busy interval.
    pub footprint_bytes: u64,
    /// G: guest data held when the host becomes busy.
    pub guest_bytes: u64,
    /// K: kernel memory, without the reserve.
    pub kernel_bytes: u64,
    /// M: physical memory.
    pub physical_bytes: u64,
    /// The paging daemon's reserve.
    pub reserve_bytes: u64,
}

impl Demand {
    /// Demand on a host with this division of memory and footprint of processes, if nothing is lent.
    #[must_use]
    pub fn without_guests(memory: &Categories, footprint_bytes: u64) -> Self {
        Self {
            footprint_bytes,
            guest_bytes: 0,
            // Memory in a balloon is available to nobody else either.
            kernel_bytes: (memory.static_kernel_bytes.unwrap_or(0))
                .saturating_add(memory.balloon_bytes)
                .saturating_add(memory.dynamic_kernel_bytes),
            physical_bytes: memory.physical_bytes,
            reserve_bytes: memory.reserve_bytes.unwrap_or(0),
        }
    }
}

/// Memory context size: memory that must be paged in again, `max(0, A + G + K − (M − lotsfree))`.
///
/// The paper's equation 1 prints `A + G + K − M − lotsfree` for the second case. Its first case, 0 while
/// `A + G + K ≤ M − lotsfree`, shows that the parenthesis was lost: as printed, the cost would begin twice the
/// reserve later.
#[must_use]
pub const fn memory_context_bytes(demand: &Demand) -> u64 {
    let wanted = demand
        .footprint_bytes
        .saturating_add(demand.guest_bytes)
        .saturating_add(demand.kernel_bytes);
    wanted.saturating_sub(demand.physical_bytes.saturating_sub(demand.reserve_bytes))
}

/// The paper's loose upper bound: the part of A that was in memory while the host was idle, if all of it was
/// pushed out. `cached_footprint_bytes` is the footprint of those processes of A that had started before the
/// return. At most the available memory can have been pushed out.
#[must_use]
pub const fn upper_bound_bytes(cached_footprint_bytes: u64, available_bytes: u64) -> u64 {
    if cached_footprint_bytes < available_bytes {
        cached_footprint_bytes
    } else {
        available_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(footprint: u64, guest: u64, kernel: u64, physical: u64, lotsfree: u64) -> u64 {
        memory_context_bytes(&Demand {
            footprint_bytes: footprint,
            guest_bytes: guest,
            kernel_bytes: kernel,
            physical_bytes: physical,
            reserve_bytes: lotsfree,
        })
    }

    #[test]
    fn a_balloon_is_the_kernels_and_the_reserve_is_not() {
        let memory = Categories {
            physical_bytes: 1000,
            static_kernel_bytes: Some(30),
            balloon_bytes: 200,
            dynamic_kernel_bytes: 50,
            reserve_bytes: Some(16),
            guest_bytes: 400,
            ..Categories::default()
        };
        let demand = Demand::without_guests(&memory, 300);
        assert_eq!((demand.kernel_bytes, demand.guest_bytes), (280, 0));
        assert_eq!((demand.footprint_bytes, demand.reserve_bytes), (300, 16));
    }

    #[test]
    fn golden_table() {
        let cases = [
            // A, G, K, M, lotsfree → MCS
            // Nothing lent: processes alone seldom exceed memory.
            ([300, 0, 100, 1000, 16], 0),
            // Nothing is pushed out while the sum is at most the memory without the reserve: 1000 − 16 = 984.
            ([300, 584, 100, 1000, 16], 0),
            ([300, 585, 100, 1000, 16], 1),
            // By the formula printed in the paper this would be 400 + 600 + 100 − 1000 − 16 = 84.
            ([400, 600, 100, 1000, 16], 116),
            // The processes alone are larger than memory.
            ([1200, 0, 100, 1000, 16], 316),
            // The reserve is larger than memory, a contradiction: all of the demand is excess.
            ([1, 2, 3, 10, 20], 6),
            ([0, 0, 0, 0, 0], 0),
            ([u64::MAX, u64::MAX, 1, 1000, 0], u64::MAX - 1000),
        ];
        for ([a, g, k, m, lotsfree], expected) in cases {
            assert_eq!(
                of(a, g, k, m, lotsfree),
                expected,
                "{a} {g} {k} {m} {lotsfree}"
            );
        }
    }

    #[test]
    fn no_more_than_was_there_can_be_pushed_out() {
        assert_eq!([upper_bound_bytes(5, 9), upper_bound_bytes(9, 5)], [5, 5]);
    }

    proptest! {
        #[test]
        fn lending_less_never_costs_more(a in 0..2000u64, g in 0..2000u64, less in 0..2000u64, k in 0..500u64) {
            let cost = of(a, g, k, 1000, 16);
            prop_assert!(of(a, g.saturating_sub(less), k, 1000, 16) <= cost);
            // The definition has two cases: all fits, so the cost is 0; or the excess is the cost.
            let fits = a + g + k <= 1000 - 16;
            prop_assert_eq!(cost == 0, fits);
            prop_assert!(fits || cost + 984 == a + g + k);
        }
    }
}
