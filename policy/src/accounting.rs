//! Division of physical memory: the six categories of Acharya & Setia (section 2) on Linux.
//!
//! The paper's Solaris had one page cache for everything. Here the categories are computed from the kernel's
//! counters (`Documentation/filesystems/proc.rst`) and from the memory that active processes map:
//!
//! ```text
//! physical = static kernel + balloon + MemTotal
//! MemTotal = free + per-CPU lists + anonymous + page cache + reclaimable kernel + dynamic kernel
//! available = physical − static − balloon − dynamic − reserve − process − file cache − guest
//! ```
//!
//! Dynamic kernel is therefore the part of MemTotal that no counter explains. It includes reserved huge pages
//! (hugetlb), which nobody else can use. No kernel counter contains ZFS' own cache, the ARC: its reclaimable
//! part is moved from dynamic kernel to reclaimable kernel memory. Pages on the allocator's per-CPU lists
//! count as free, although MemFree leaves them out; after a large process has ended, these can be hundreds of
//! MiB. Reclaimable kernel memory counts as available. The categories sum to physical memory exactly. If
//! available would be negative, the figures contradict each other, and the difference is
//! [`Categories::category_correction_bytes`].

/// Figures of the kernel about its own memory use, all in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelFigures {
    /// Physical memory, if known.
    pub physical_bytes: Option<u64>,
    /// Memory held by a balloon.
    pub balloon_bytes: u64,
    /// MemTotal of `/proc/meminfo`.
    pub mem_total_bytes: u64,
    /// MemFree of `/proc/meminfo`.
    pub mem_free_bytes: u64,
    /// Free pages on the per-CPU lists; 0 if unreadable, which makes these pages part of dynamic kernel.
    pub pcp_free_bytes: u64,
    /// MemAvailable; absent before Linux 3.14.
    pub mem_available_bytes: Option<u64>,
    /// Buffers of `/proc/meminfo`.
    pub buffers_bytes: u64,
    /// Cached of `/proc/meminfo`, shmem included.
    pub cached_bytes: u64,
    /// SwapCached of `/proc/meminfo`.
    pub swap_cached_bytes: u64,
    /// AnonPages of `/proc/meminfo`.
    pub anon_bytes: u64,
    /// KReclaimable of `/proc/meminfo`.
    pub reclaimable_kernel_bytes: u64,
    /// Bytes that ZFS' ARC holds above its minimum size; 0 without ZFS.
    pub arc_reclaimable_bytes: u64,
    /// Sum of the zones' high watermarks; absent if unreadable.
    pub reserve_bytes: Option<u64>,
    /// Active(file) + Inactive(file): the page cache that is on the LRU lists.
    pub file_lru_bytes: u64,
}

/// Memory in use, found by walking over processes and files; all in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InUse {
    /// Anonymous memory of active processes; shared pages count proportionally.
    pub active_anon_bytes: u64,
    /// Shared memory (shmem) of active processes, counted proportionally.
    pub active_shmem_bytes: u64,
    /// Cached pages in ranges that active processes map; each file counts once, not proportionally.
    pub mapped_file_bytes: u64,
    /// Cached pages of files that active processes have open or mapped, except the pages in
    /// `mapped_file_bytes`.
    pub file_cache_bytes: u64,
    /// Resident anonymous and shared memory of all other processes, by their own counters.
    pub idle_process_bytes: u64,
    /// Memory lent to other hosts.
    pub guest_bytes: u64,
}

/// Upper limit of every figure, more than any machine can address. Larger figures are lowered to it, so that
/// all sums fit into the signed 64 bits that are stored.
const LARGEST_BYTES: u64 = 1 << 56;

const fn bounded(bytes: u64) -> u64 {
    if bytes < LARGEST_BYTES {
        bytes
    } else {
        LARGEST_BYTES
    }
}

impl KernelFigures {
    fn bounded(&self) -> Self {
        Self {
            physical_bytes: self.physical_bytes.map(bounded),
            balloon_bytes: bounded(self.balloon_bytes),
            mem_total_bytes: bounded(self.mem_total_bytes),
            mem_free_bytes: bounded(self.mem_free_bytes),
            pcp_free_bytes: bounded(self.pcp_free_bytes),
            mem_available_bytes: self.mem_available_bytes.map(bounded),
            buffers_bytes: bounded(self.buffers_bytes),
            cached_bytes: bounded(self.cached_bytes),
            swap_cached_bytes: bounded(self.swap_cached_bytes),
            anon_bytes: bounded(self.anon_bytes),
            reclaimable_kernel_bytes: bounded(self.reclaimable_kernel_bytes),
            reserve_bytes: self.reserve_bytes.map(bounded),
            file_lru_bytes: bounded(self.file_lru_bytes),
            arc_reclaimable_bytes: bounded(self.arc_reclaimable_bytes),
        }
    }
}

impl InUse {
    fn bounded(&self) -> Self {
        Self {
            active_anon_bytes: bounded(self.active_anon_bytes),
            active_shmem_bytes: bounded(self.active_shmem_bytes),
            mapped_file_bytes: bounded(self.mapped_file_bytes),
            file_cache_bytes: bounded(self.file_cache_bytes),
            idle_process_bytes: bounded(self.idle_process_bytes),
            guest_bytes: bounded(self.guest_bytes),
        }
    }
}

/// Division of physical memory. The categories and the category correction sum exactly to `physical_bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Categories {
    /// Sum of the categories and the category correction.
    pub physical_bytes: u64,
    /// Physical memory outside MemTotal and the balloon. Absent if physical memory is unknown;
    /// `physical_bytes` is then MemTotal plus the balloon.
    pub static_kernel_bytes: Option<u64>,
    /// Memory held by a balloon.
    pub balloon_bytes: u64,
    /// Kernel memory that cannot be reclaimed, and the part of MemTotal that no counter explains.
    pub dynamic_kernel_bytes: u64,
    /// The kernel's reserve; absent if unreadable.
    pub reserve_bytes: Option<u64>,
    /// Memory of active processes.
    pub process_bytes: u64,
    /// Page cache of files in use.
    pub file_cache_bytes: u64,
    /// Memory lent to guests.
    pub guest_bytes: u64,
    /// Available memory: physical memory less all other categories, at least 0.
    pub available_bytes: u64,
    /// Physical memory less all categories: 0, or negative if the figures contradict each other.
    pub category_correction_bytes: i64,
}

/// Available memory as the sum of its parts, independent of the subtraction that gives
/// [`Categories::available_bytes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AvailableParts {
    /// Free memory above the reserve.
    pub free_bytes: u64,
    /// Memory of processes that are not active.
    pub idle_process_bytes: u64,
    /// Page cache of files not in use.
    pub unused_cache_bytes: u64,
    /// Reclaimable kernel memory.
    pub reclaimable_kernel_bytes: u64,
}

impl AvailableParts {
    /// Sum of the parts, in bytes.
    #[must_use]
    pub const fn sum_bytes(&self) -> u64 {
        self.free_bytes
            + self.idle_process_bytes
            + self.unused_cache_bytes
            + self.reclaimable_kernel_bytes
    }
}

/// Divides physical memory among the categories.
#[must_use]
pub fn categories(kernel: &KernelFigures, in_use: &InUse) -> Categories {
    let (kernel, in_use) = (kernel.bounded(), in_use.bounded());
    let above_total = kernel.mem_total_bytes.saturating_add(kernel.balloon_bytes);
    // Physical memory below MemTotal is a contradiction, which the caller reports; MemTotal is used then.
    let physical = kernel.physical_bytes.filter(|&p| p >= above_total);
    let static_kernel_bytes = physical.map(|p| p - above_total);
    let physical_bytes = physical.unwrap_or(above_total);

    let dynamic_kernel_bytes = unexplained_bytes(&kernel) - arc_in_unexplained_bytes(&kernel);
    let process_bytes =
        in_use.active_anon_bytes + in_use.active_shmem_bytes + in_use.mapped_file_bytes;
    let spoken_for = static_kernel_bytes.unwrap_or(0)
        + kernel.balloon_bytes
        + dynamic_kernel_bytes
        + kernel.reserve_bytes.unwrap_or(0)
        + process_bytes
        + in_use.file_cache_bytes
        + in_use.guest_bytes;
    let rest = signed_difference(physical_bytes, spoken_for);
    Categories {
        physical_bytes,
        static_kernel_bytes,
        balloon_bytes: kernel.balloon_bytes,
        dynamic_kernel_bytes,
        reserve_bytes: kernel.reserve_bytes,
        process_bytes,
        file_cache_bytes: in_use.file_cache_bytes,
        guest_bytes: in_use.guest_bytes,
        available_bytes: u64::try_from(rest).unwrap_or(0),
        category_correction_bytes: rest.min(0),
    }
}

/// Sums available memory from its parts.
///
/// Idle processes come from their own counters, and unused cache from the LRU lists. The sum therefore does
/// not repeat the subtraction of [`categories`], and a difference between the two shows memory that one of
/// them misses.
#[must_use]
pub fn available_parts(kernel: &KernelFigures, in_use: &InUse) -> AvailableParts {
    let (kernel, in_use) = (kernel.bounded(), in_use.bounded());
    AvailableParts {
        free_bytes: (kernel.mem_free_bytes + kernel.pcp_free_bytes)
            .saturating_sub(kernel.reserve_bytes.unwrap_or(0)),
        idle_process_bytes: in_use.idle_process_bytes,
        unused_cache_bytes: kernel
            .file_lru_bytes
            .saturating_sub(in_use.mapped_file_bytes + in_use.file_cache_bytes),
        reclaimable_kernel_bytes: kernel.reclaimable_kernel_bytes
            + arc_in_unexplained_bytes(&kernel),
    }
}

/// Bytes of MemTotal that no counter explains.
fn unexplained_bytes(kernel: &KernelFigures) -> u64 {
    let explained = kernel.mem_free_bytes
        + kernel.pcp_free_bytes
        + kernel.anon_bytes
        + kernel.buffers_bytes
        + kernel.cached_bytes
        + kernel.swap_cached_bytes
        + kernel.reclaimable_kernel_bytes;
    kernel.mem_total_bytes.saturating_sub(explained)
}

/// Reclaimable part of the ARC, limited to the unexplained bytes: some of the ARC's bookkeeping is in slabs,
/// which are counted already, and no more than the unexplained bytes may become available.
fn arc_in_unexplained_bytes(kernel: &KernelFigures) -> u64 {
    kernel.arc_reclaimable_bytes.min(unexplained_bytes(kernel))
}

/// Memory that could be taken now without pushing out the owner's pages: MemAvailable, from which the kernel
/// has subtracted its reserve, less the headroom. MemAvailable does not contain ZFS' ARC. The ARC's
/// reclaimable part is left out here too: it shrinks slowly, and the kernel does not promise it.
#[must_use]
pub fn harvestable_bytes(
    mem_available_bytes: u64,
    physical_bytes: u64,
    headroom_share: f64,
) -> u64 {
    mem_available_bytes.saturating_sub(headroom_bytes(physical_bytes, headroom_share))
}

/// Memory never lent, so that the owner finds some free memory on return (Acharya & Setia, section 5: 15 %).
#[must_use]
pub fn headroom_bytes(physical_bytes: u64, headroom_share: f64) -> u64 {
    (physical_bytes as f64 * headroom_share.clamp(0.0, 1.0)) as u64
}

fn signed_difference(a: u64, b: u64) -> i64 {
    let difference = i128::from(a) - i128::from(b);
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    fn quiet_host() -> (KernelFigures, InUse) {
        let kernel = KernelFigures {
            physical_bytes: Some(1024 * MIB),
            mem_total_bytes: 1000 * MIB,
            mem_free_bytes: 490 * MIB,
            pcp_free_bytes: 10 * MIB,
            mem_available_bytes: Some(700 * MIB),
            buffers_bytes: 10 * MIB,
            cached_bytes: 240 * MIB,
            anon_bytes: 150 * MIB,
            reclaimable_kernel_bytes: 20 * MIB,
            reserve_bytes: Some(16 * MIB),
            file_lru_bytes: 230 * MIB,
            ..Default::default()
        };
        let in_use = InUse {
            active_anon_bytes: 100 * MIB,
            active_shmem_bytes: 5 * MIB,
            mapped_file_bytes: 25 * MIB,
            file_cache_bytes: 40 * MIB,
            idle_process_bytes: 65 * MIB,
            guest_bytes: 0,
        };
        (kernel, in_use)
    }

    #[test]
    fn a_host_worked_by_hand() {
        let (kernel, in_use) = quiet_host();
        let c = categories(&kernel, &in_use);
        assert_eq!(c.static_kernel_bytes, Some(24 * MIB));
        assert_eq!(c.dynamic_kernel_bytes, 80 * MIB); // of MemTotal: 1000 − 490 − 10 − 10 − 240 − 150 − 20
        assert_eq!(c.process_bytes, 130 * MIB);
        assert_eq!(c.available_bytes, (1024 - 24 - 80 - 16 - 130 - 40) * MIB);
        assert_eq!(c.category_correction_bytes, 0);
        let parts = available_parts(&kernel, &in_use);
        assert_eq!(parts.free_bytes, 484 * MIB);
        assert_eq!(parts.unused_cache_bytes, 165 * MIB);
        assert_eq!(parts.sum_bytes(), c.available_bytes);
    }

    #[test]
    fn what_the_arc_would_give_up_is_reclaimable_and_no_more_than_is_unexplained() {
        let (mut kernel, in_use) = quiet_host();
        let without = categories(&kernel, &in_use);
        for (arc_mib, moved_mib) in [(0, 0), (30, 30), (80, 80), (900, 80)] {
            kernel.arc_reclaimable_bytes = arc_mib * MIB;
            let c = categories(&kernel, &in_use);
            assert_eq!(c.dynamic_kernel_bytes, (80 - moved_mib) * MIB, "{arc_mib}");
            let gained = c.available_bytes - without.available_bytes;
            assert_eq!(gained, moved_mib * MIB, "{arc_mib}");
            let parts = available_parts(&kernel, &in_use);
            assert_eq!(parts.reclaimable_kernel_bytes, (20 + moved_mib) * MIB);
            assert_eq!(parts.sum_bytes(), c.available_bytes);
        }
    }

    #[test]
    fn unknown_physical_memory_is_absent_not_zero() {
        let (mut kernel, in_use) = quiet_host();
        kernel.physical_bytes = None;
        let c = categories(&kernel, &in_use);
        assert_eq!(c.static_kernel_bytes, None);
        assert_eq!(c.physical_bytes, 1000 * MIB);
        kernel.physical_bytes = Some(900 * MIB); // less than MemTotal: a contradiction
        assert_eq!(categories(&kernel, &in_use), c);
    }

    #[test]
    fn headroom_bounds_what_is_harvestable() {
        assert_eq!(harvestable_bytes(700, 1000, 0.15), 550);
        assert_eq!(harvestable_bytes(100, 1000, 0.15), 0);
        assert_eq!(harvestable_bytes(700, 1000, 7.0), 0);
    }

    fn sum_bytes(c: &Categories) -> i128 {
        i128::from(c.static_kernel_bytes.unwrap_or(0))
            + i128::from(c.balloon_bytes)
            + i128::from(c.dynamic_kernel_bytes)
            + i128::from(c.reserve_bytes.unwrap_or(0))
            + i128::from(c.process_bytes)
            + i128::from(c.file_cache_bytes)
            + i128::from(c.guest_bytes)
            + i128::from(c.available_bytes)
            + i128::from(c.category_correction_bytes)
    }

    /// Figures of real sizes, and figures that only a broken or hostile `/proc` contains.
    fn figure() -> impl Strategy<Value = u64> {
        prop_oneof![4 => 0u64..1 << 44, 1 => any::<u64>(), 1 => Just(u64::MAX)]
    }

    proptest! {
        #[test]
        fn categories_add_up_whatever_the_kernel_says(
            physical in proptest::option::of(figure()),
            figures in proptest::array::uniform13(figure()),
            lotsfree in proptest::option::of(figure()),
        ) {
            let [balloon_bytes, mem_total_bytes, mem_free_bytes, pcp_free_bytes, buffers_bytes, cached_bytes,
                swap_cached_bytes, anon_bytes, reclaimable_kernel_bytes,
                active_anon_bytes, mapped_file_bytes, file_cache_bytes, arc_reclaimable_bytes] = figures;
            let kernel = KernelFigures {
                physical_bytes: physical, balloon_bytes, mem_total_bytes, mem_free_bytes, pcp_free_bytes,
                mem_available_bytes: None, buffers_bytes, cached_bytes, swap_cached_bytes,
                anon_bytes, reclaimable_kernel_bytes, reserve_bytes: lotsfree,
                file_lru_bytes: cached_bytes, arc_reclaimable_bytes,
            };
            let in_use = InUse { active_anon_bytes, mapped_file_bytes, file_cache_bytes, ..Default::default() };
            let c = categories(&kernel, &in_use);
            prop_assert_eq!(sum_bytes(&c), i128::from(c.physical_bytes));
            prop_assert!(c.category_correction_bytes <= 0);
            prop_assert!(c.category_correction_bytes == 0 || c.available_bytes == 0);
            prop_assert!(c.physical_bytes <= i64::MAX as u64);
            prop_assert!(available_parts(&kernel, &in_use).sum_bytes() <= i64::MAX as u64);
            // ZFS' ARC moves memory from dynamic kernel to available; both ways to compute available agree on
            // the amount.
            let without = KernelFigures { arc_reclaimable_bytes: 0, ..kernel };
            let moved = available_parts(&kernel, &in_use).sum_bytes() - available_parts(&without, &in_use).sum_bytes();
            prop_assert!(moved <= arc_reclaimable_bytes);
            prop_assert_eq!(categories(&without, &in_use).dynamic_kernel_bytes - c.dynamic_kernel_bytes, moved);
        }
    }
}
