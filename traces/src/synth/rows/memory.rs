//! The kernel's figures: a page cache that fills free memory, kernel memory that grows, and counters.

use super::SampleMoment;
use super::processes::ProcessTotals;
use crate::synth::dice::Dice;
use crate::synth::fleet::{Class, Lotsfree};
use crate::synth::life::Moment;
use crate::synth::{MIB, PAGE_BYTES, whole_pages};
use gleaner_policy::accounting::{
    InUse, KernelFigures, available_parts, categories, harvestable_bytes,
};
use gleaner_schemas::rows::{NumaNodeRow, SampleRow};
use gleaner_schemas::units::stored;

/// Default headroom: the same share as in the agent.
pub(crate) const HEADROOM_SHARE: f64 = 0.15;

/// Memory sizes that never change on a host, in bytes.
#[derive(Clone, Copy, Debug)]
struct MemorySizes {
    physical: i64,
    total: i64,
    swap: i64,
    cpus: i64,
    lotsfree: i64,
    /// Sum of the zones' low watermarks, by Linux' rule.
    low: i64,
}

impl MemorySizes {
    fn new(class: &Class, lotsfree: Lotsfree, static_bytes: i64) -> Self {
        let physical = class.memory_mib * MIB;
        let total = physical - static_bytes;
        let (lotsfree, low) = match lotsfree {
            Lotsfree::Solaris => (whole_pages(total / 64), whole_pages(total / 128)),
            Lotsfree::Linux => {
                // min_free_kbytes is √(16 × low memory in kB); twice watermark_scale_factor's 0.1 % comes on
                // top (Documentation/admin-guide/sysctl/vm.rst, mm/page_alloc.c).
                let total_kib = (total / 1024) as f64;
                let least = whole_pages(((16.0 * total_kib).sqrt() * 1024.0) as i64);
                let step = (least / 4).max(total / 1000);
                (whole_pages(least + 2 * step), least + step)
            }
        };
        Self {
            physical,
            total,
            swap: class.swap_mib * MIB,
            cpus: class.cpus,
            lotsfree,
            low,
        }
    }
}

/// Counters of the kernel, which only grow within a boot.
#[derive(Clone, Debug, Default)]
struct Counters {
    psi_memory_us: i64,
    psi_cpu_us: i64,
    psi_io_us: i64,
    refault_file: i64,
    refault_anon: i64,
    swap_in: i64,
    swap_out: i64,
    major_fault: i64,
    kswapd: i64,
    direct: i64,
}

/// The kernel of one host since its boot.
#[derive(Debug)]
pub(crate) struct Memory {
    installed: MemorySizes,
    /// Page cache of files that were read but are not in use.
    unused_cache: i64,
    tmpfs: i64,
    swapped: i64,
    load: [f64; 2],
    counters: Counters,
    /// True if the kernel has zswap; otherwise its figures are absent.
    pub(crate) has_zswap: bool,
}

impl Memory {
    pub(crate) fn new(
        dice: &mut Dice,
        class: &Class,
        lotsfree: Lotsfree,
        static_bytes: i64,
    ) -> Self {
        Self {
            installed: MemorySizes::new(class, lotsfree, static_bytes),
            unused_cache: 0,
            tmpfs: 0,
            swapped: 0,
            load: [0.0; 2],
            counters: Counters::default(),
            has_zswap: matches!(lotsfree, Lotsfree::Linux) && dice.chance(0.7),
        }
    }

    /// Restarts the kernel; its cache then holds the files read while booting.
    pub(crate) fn boot(&mut self) {
        let total = self.installed.total;
        self.unused_cache = total / 20;
        self.tmpfs = total / 1000;
        self.swapped = 0;
        self.load = [0.0; 2];
        self.counters = Counters::default();
    }

    /// Row of the sample at `moment`; identity, activity and cost are not filled in. Available memory is
    /// divided into free memory, unused cache, idle processes, and reclaimable kernel memory.
    pub(crate) fn step(
        &mut self,
        dice: &mut Dice,
        at: &SampleMoment,
        moment: &Moment,
        held: &ProcessTotals,
        mapped_files: i64,
    ) -> SampleRow {
        let MemorySizes {
            total,
            lotsfree,
            cpus,
            ..
        } = self.installed;
        let static_bytes = self.installed.physical - total;
        let dynamic = (moment.kernel_bytes - static_bytes - lotsfree).max(PAGE_BYTES);
        let intervals = at.interval_ms as f64 / 90_000.0;
        let read = if at.is_present { 8e-4 } else { 5e-5 } * intervals.min(40.0);
        self.unused_cache += (dice.around(read, 1.2) * total as f64) as i64;
        let written = (dice.share() - 0.48) * total as f64 / 20_000.0;
        self.tmpfs = (self.tmpfs + written as i64).clamp(total / 10_000, total / 50);

        let available = moment.available_bytes().max(0);
        let part = |wanted: i64, share: i64| whole_pages(wanted.min(available / share));
        let idle_anon = part(held.idle, 2);
        let tmpfs = part(self.tmpfs, 20);
        let reclaimable = part(total / 25, 10);
        let buffers = part(total / 100, 20);
        let kept = idle_anon + tmpfs + reclaimable + buffers;
        let floor = available / 30;
        let most_cache = (available - kept - floor).max(0);
        let missing = self.unused_cache - most_cache;
        if missing > 0 {
            let reclaimed = (missing + total / 300).min(self.unused_cache);
            self.unused_cache -= reclaimed;
            self.counters.reclaim(reclaimed, missing > total / 40);
        }
        let unused_cache = whole_pages(self.unused_cache);
        // The two ways to count available memory usually differ: a forked page counts once in the kernel's
        // figures and twice in its processes, some pages belong to no process (`nobodys`), and others are not
        // on an LRU list yet (`waiting`).
        let room = floor / 4;
        let (nobodys, waiting) = if dice.chance(0.8) {
            let most = (total / 2000).min(room);
            let nobodys = whole_pages(dice.between(-most, most + 1));
            (nobodys, whole_pages(dice.between(0, most + 1)))
        } else {
            (0, 0)
        };
        let anon = (held.active_anon + idle_anon + nobodys).max(0);
        let shmem = held.active_shmem + tmpfs;
        let mapped = held.mapped.max(mapped_files);
        let cached = shmem + mapped + moment.file_bytes + unused_cache;
        let used = dynamic + anon + cached + buffers + reclaimable;
        let all_free = (total - used).max(0);
        let pcp_free = whole_pages(dice.between(0, all_free / 20 + 1));
        let free = all_free - pcp_free;
        let swapped = (held.idle - idle_anon + held.out).min(self.installed.swap);
        let swap_free = self.installed.swap - swapped;
        self.counters.swap(swapped - self.swapped);
        self.swapped = swapped;
        let swap_cached = 0;
        let tasks = 3 * held.count + 10 * cpus;
        // A share of dynamic kernel memory. Most of the memory outside these shares is in no counter.
        let of_dynamic = |share: f64| whole_pages((dynamic as f64 * share) as i64);
        let slab_unreclaimable = of_dynamic(0.4);
        let page_tables = of_dynamic(0.1);
        let percpu = of_dynamic(0.05);
        let kernel_stack = of_dynamic(0.06);
        let vmalloc = of_dynamic(0.15);

        let file_lru = (cached + buffers - shmem - waiting).max(0);
        let active_file = whole_pages(file_lru * 2 / 5);
        let mem_available = mem_available(free, file_lru, reclaimable, &self.installed);
        let kernel = KernelFigures {
            physical_bytes: Some(unsigned(self.installed.physical)),
            mem_total_bytes: unsigned(total),
            mem_free_bytes: unsigned(free),
            pcp_free_bytes: unsigned(pcp_free),
            mem_available_bytes: Some(unsigned(mem_available)),
            buffers_bytes: unsigned(buffers),
            cached_bytes: unsigned(cached),
            swap_cached_bytes: unsigned(swap_cached),
            anon_bytes: unsigned(anon),
            reclaimable_kernel_bytes: unsigned(reclaimable),
            reserve_bytes: Some(unsigned(lotsfree)),
            file_lru_bytes: unsigned(file_lru),
            ..KernelFigures::default()
        };
        let in_use = InUse {
            active_anon_bytes: unsigned(held.active_anon),
            active_shmem_bytes: unsigned(held.active_shmem),
            mapped_file_bytes: unsigned(mapped),
            file_cache_bytes: unsigned(moment.file_bytes),
            idle_process_bytes: unsigned(idle_anon + tmpfs),
            guest_bytes: 0,
        };
        let dip = if at.is_present { 0.02 } else { 0.001 } * dice.share() * dice.share();
        self.count(dice, at, moment);
        let counters = &self.counters;
        let mut row = SampleRow {
            boottime_ms: Some(at.boottime_ms),
            is_complete_state: at.is_whole,
            mem_available_min_bytes: Some(
                (mem_available - whole_pages((total as f64 * dip) as i64)).max(0),
            ),
            shmem_bytes: Some(shmem),
            mapped_bytes: Some(mapped + whole_pages(shmem / 2)),
            active_file_bytes: Some(active_file),
            inactive_file_bytes: Some(file_lru - active_file),
            unevictable_bytes: Some(whole_pages(total / 1000)),
            dirty_bytes: Some(whole_pages(
                (dice.around(read, 1.0) * total as f64 / 8.0) as i64,
            )),
            writeback_bytes: Some(0),
            slab_bytes: Some(slab_unreclaimable + reclaimable),
            kernel_stack_bytes: Some(kernel_stack),
            page_tables_bytes: Some(page_tables),
            percpu_bytes: Some(percpu),
            vmalloc_bytes: Some(vmalloc),
            hugetlb_bytes: Some(0),
            swap_total_bytes: Some(self.installed.swap),
            swap_free_bytes: Some(swap_free),
            zswap_bytes: self.has_zswap.then_some(0),
            zswapped_bytes: self.has_zswap.then_some(0),
            load1: Some(hundredths(self.load[0])),
            load5: Some(moment.load5),
            guest_load5: Some(0.0), // these hosts lend nothing
            load15: Some(hundredths(self.load[1])),
            running_tasks_count: Some(1 + self.load[0].round() as i64),
            tasks_count: Some(tasks),
            psi_memory_some_total_us: Some(counters.psi_memory_us),
            psi_memory_full_total_us: Some(counters.psi_memory_us / 2),
            psi_cpu_some_total_us: Some(counters.psi_cpu_us),
            psi_io_some_total_us: Some(counters.psi_io_us),
            psi_io_full_total_us: Some(counters.psi_io_us / 2),
            refault_file_total_pages: Some(counters.refault_file),
            refault_anon_total_pages: Some(counters.refault_anon),
            swap_in_total_pages: Some(counters.swap_in),
            swap_out_total_pages: Some(counters.swap_out),
            major_fault_total_count: Some(counters.major_fault),
            reclaimed_kswapd_total_pages: Some(counters.kswapd),
            reclaimed_direct_total_pages: Some(counters.direct),
            oom_kill_total_count: Some(0),
            processes_count: held.count + 12, // and some idle ones
            ..SampleRow::default()
        };
        account(&mut row, &kernel, &in_use);
        row
    }

    fn count(&mut self, dice: &mut Dice, at: &SampleMoment, moment: &Moment) {
        let interval_ms = at.interval_ms as f64;
        for (load, over_ms) in self.load.iter_mut().zip([60e3, 900e3]) {
            let kept = over_ms / (over_ms + interval_ms); // close to exponential decay
            *load = *load * kept + moment.load * (1.0 - kept);
        }
        let contention = moment.load / self.installed.cpus as f64;
        let counters = &mut self.counters;
        counters.psi_cpu_us += (interval_ms * 1000.0 * (0.001 + 0.2 * contention)) as i64;
        counters.psi_io_us += dice.wait(interval_ms * if at.is_present { 3.0 } else { 0.3 }) as i64;
        counters.psi_memory_us += if self.swapped > 0 {
            dice.wait(interval_ms / 20.0) as i64
        } else {
            0
        };
        counters.major_fault +=
            dice.wait(interval_ms / if at.is_present { 900.0 } else { 9000.0 }) as i64;
    }
}

impl Counters {
    fn reclaim(&mut self, bytes: i64, was_sudden: bool) {
        let pages = bytes / PAGE_BYTES;
        let direct = if was_sudden { pages / 10 } else { 0 };
        self.direct += direct;
        self.kswapd += pages - direct;
        self.refault_file += pages / 50;
    }

    fn swap(&mut self, more_bytes: i64) {
        let pages = more_bytes / PAGE_BYTES;
        self.swap_out += pages.max(0);
        self.swap_in += (-pages).max(0);
        self.refault_anon += (-pages).max(0) / 4;
    }
}

/// Divides memory among the categories as the agent does, and stores the figures that this needs in `row`.
fn account(row: &mut SampleRow, kernel: &KernelFigures, in_use: &InUse) {
    let c = categories(kernel, in_use);
    let parts = available_parts(kernel, in_use);
    row.physical_bytes = stored(c.physical_bytes);
    row.static_kernel_bytes = c.static_kernel_bytes.map(stored);
    row.balloon_bytes = stored(c.balloon_bytes);
    row.dynamic_kernel_bytes = stored(c.dynamic_kernel_bytes);
    row.reserve_bytes = c.reserve_bytes.map(stored);
    row.file_cache_bytes = stored(c.file_cache_bytes);
    row.process_bytes = stored(c.process_bytes);
    row.guest_bytes = stored(c.guest_bytes);
    row.available_bytes = stored(c.available_bytes);
    row.category_correction_bytes = c.category_correction_bytes;
    row.harvestable_bytes = kernel.mem_available_bytes.map(|available| {
        stored(harvestable_bytes(
            available,
            c.physical_bytes,
            HEADROOM_SHARE,
        ))
    });
    row.available_free_bytes = stored(parts.free_bytes);
    row.available_idle_process_bytes = stored(parts.idle_process_bytes);
    row.available_unused_cache_bytes = stored(parts.unused_cache_bytes);
    row.available_reclaimable_kernel_bytes = stored(parts.reclaimable_kernel_bytes);
    row.available_residual_bytes = stored(c.available_bytes) - stored(parts.sum_bytes());
    row.mem_total_bytes = stored(kernel.mem_total_bytes);
    row.mem_free_bytes = stored(kernel.mem_free_bytes);
    row.pcp_free_bytes = Some(stored(kernel.pcp_free_bytes));
    row.mem_available_bytes = kernel.mem_available_bytes.map(stored);
    row.buffers_bytes = Some(stored(kernel.buffers_bytes));
    row.cached_bytes = Some(stored(kernel.cached_bytes));
    row.swap_cached_bytes = Some(stored(kernel.swap_cached_bytes));
    row.anon_bytes = Some(stored(kernel.anon_bytes));
    row.reclaimable_kernel_bytes = Some(stored(kernel.reclaimable_kernel_bytes));
}

/// Computes MemAvailable by the kernel's rule (`si_mem_available`, mm/show_mem.c).
fn mem_available(free: i64, file_lru: i64, reclaimable: i64, installed: &MemorySizes) -> i64 {
    let without_low = |bytes: i64| bytes - (bytes / 2).min(installed.low);
    (free - installed.lotsfree + without_low(file_lru) + without_low(reclaimable)).max(0)
}

/// Rows of two NUMA nodes of about equal size; their figures sum to those of the sample.
pub(crate) fn numa_nodes(sample: &SampleRow) -> Vec<NumaNodeRow> {
    let second = |bytes: i64| whole_pages(bytes * 48 / 100);
    let node = |numa_node, part: &dyn Fn(i64) -> i64| {
        let of = |bytes: Option<i64>| bytes.map(part);
        NumaNodeRow {
            numa_node,
            mem_total_bytes: part(sample.mem_total_bytes),
            mem_free_bytes: part(sample.mem_free_bytes),
            reserve_bytes: of(sample.reserve_bytes),
            active_file_bytes: of(sample.active_file_bytes),
            inactive_file_bytes: of(sample.inactive_file_bytes),
            anon_bytes: of(sample.anon_bytes),
            shmem_bytes: of(sample.shmem_bytes),
            slab_bytes: of(sample.slab_bytes),
            reclaimable_kernel_bytes: of(sample.reclaimable_kernel_bytes),
            hugetlb_bytes: of(sample.hugetlb_bytes),
        }
    };
    vec![node(0, &|bytes| bytes - second(bytes)), node(1, &second)]
}

fn unsigned(bytes: i64) -> u64 {
    u64::try_from(bytes).unwrap_or(0)
}

fn hundredths(load: f64) -> f64 {
    (load * 100.0).round() / 100.0
}
