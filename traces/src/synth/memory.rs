//! The kernel's figures: a page cache that fills what is free, kernel memory that grows, counters.

use super::dice::Dice;
use super::files::Cached;
use super::processes::Held;
use super::step::Step;
use super::{MIB, PAGE_BYTES, whole_pages};
use gleaner_policy::accounting::{
    InUse, KernelFigures, available_parts, categories, harvestable_bytes,
};
use gleaner_schemas::rows::{NodeRow, SampleRow};
use gleaner_schemas::units::stored;

/// What firmware keeps of the memory that is sold.
const FIRMWARE_BYTES: i64 = 320 * MIB;
/// As the agent's default.
pub(super) const HEADROOM_SHARE: f64 = 0.15;
const DAY_MS: f64 = 86_400_000.0;

/// Sizes that a class has for good.
#[derive(Clone, Copy, Debug)]
pub(super) struct Installed {
    pub(super) physical: i64,
    pub(super) total: i64,
    pub(super) swap: i64,
    /// The zones' high watermarks; the low ones lie in the middle between these and the least.
    pub(super) lotsfree: i64,
    low: i64,
}

impl Installed {
    pub(super) fn new(memory_gib: i64, swap_gib: i64) -> Self {
        let physical = (memory_gib << 30) - FIRMWARE_BYTES;
        let total = whole_pages(physical - physical / 62 - 30 * MIB);
        // min_free_kbytes = √(16 × low memory in kB), and watermark_scale_factor's 0.1 % twice above it
        // (Documentation/admin-guide/sysctl/vm.rst, mm/page_alloc.c).
        let total_kib = (total / 1024) as f64;
        let least = whole_pages(((16.0 * total_kib).sqrt() * 1024.0) as i64);
        let step = (least / 4).max(total / 1000);
        Self {
            physical,
            total,
            swap: swap_gib << 30,
            lotsfree: whole_pages(least + 2 * step),
            low: least + step,
        }
    }
}

/// Counters that only grow within a boot.
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
pub(super) struct Memory {
    installed: Installed,
    /// Page cache of files that nobody uses.
    unused_cache: i64,
    /// Drivers, graphics and the like.
    other_kernel: i64,
    tmpfs: i64,
    swapped: i64,
    load: [f64; 3],
    counters: Counters,
    /// Whether the kernel has zswap: else its figures are absent.
    pub(super) has_zswap: bool,
}

impl Memory {
    pub(super) fn new(dice: &mut Dice, installed: Installed) -> Self {
        Self {
            installed,
            unused_cache: 0,
            other_kernel: 0,
            tmpfs: 0,
            swapped: 0,
            load: [0.0; 3],
            counters: Counters::default(),
            has_zswap: dice.chance(0.7),
        }
    }

    /// Begins anew with a cache that holds what booting read.
    pub(super) fn boot(&mut self, dice: &mut Dice) {
        let total = self.installed.total;
        self.unused_cache = total / 20;
        self.other_kernel = whole_pages(dice.around(0.008 * total as f64, 0.3) as i64);
        self.tmpfs = 8 * MIB;
        self.swapped = 0;
        self.load = [1.0; 3];
        self.counters = Counters::default();
    }

    /// Moves on by one step: the sample's row, but for identity, activity and cost; and how much anonymous
    /// memory the kernel would like to swap out.
    pub(super) fn step(
        &mut self,
        dice: &mut Dice,
        step: &Step<'_>,
        held: &Held,
        files: &Cached,
    ) -> (SampleRow, i64) {
        let Installed {
            total, lotsfree, ..
        } = self.installed;
        let intervals = step.interval_ms as f64 / 90_000.0;
        let read_mib = if step.is_present { 12.0 } else { 0.8 } * intervals.min(40.0);
        self.unused_cache += files.released - files.claimed.min(self.unused_cache / 2);
        self.unused_cache += (dice.around(read_mib, 1.2) * MIB as f64) as i64;
        let written = ((dice.share() - 0.48) * MIB as f64) as i64;
        self.tmpfs = (self.tmpfs + written).clamp(MIB, total / 50);

        // Roots alone, and no logarithm: they are the same on every machine.
        let grown = 1.0 + 0.04 * (step.boottime_ms as f64 / DAY_MS).sqrt();
        let slab_unreclaimable = whole_pages((total as f64 * 0.004 * grown) as i64 + 90 * MIB);
        let tasks = 3 * held.count + 10 * step.class.cpus;
        let kernel_stack = tasks * (16 << 10);
        let page_tables = whole_pages(held.anon() / 180 + held.count * (256 << 10));
        let percpu = step.class.cpus * 1200 * 1024;
        let vmalloc = 70 * MIB + kernel_stack;
        let dynamic = slab_unreclaimable + page_tables + percpu + vmalloc + self.other_kernel;

        // A forked page counts once here and twice in its processes, some pages are nobody's any more, and
        // others are on no list yet: the two ways to count what is available differ, mostly.
        let (nobodys, waiting) = if dice.chance(0.8) {
            let nobodys = dice.between(-2 * MIB, 3 * MIB);
            (whole_pages(nobodys), PAGE_BYTES * dice.between(0, 300))
        } else {
            (0, 0)
        };
        let anon = (held.anon() + nobodys).max(0);
        let shmem = whole_pages(held.shmem + self.tmpfs);
        let buffers = whole_pages(24 * MIB + total / 600);
        let swap_cached = whole_pages(held.swap / 50);
        let pcp_free =
            whole_pages(dice.between(step.class.cpus * 100, step.class.cpus * 900) * 1024);
        // Processes map more than the files that are listed, libraries above all.
        let mapped = files.mapped.max(held.active_file).max(held.largest_file);
        let used_cache = files.cached + mapped - files.mapped;
        let used = |unused_cache: i64| {
            let reclaimable = whole_pages(40 * MIB + unused_cache / 14);
            let cached = whole_pages(unused_cache) + used_cache + shmem;
            let explained = anon + buffers + cached + swap_cached + reclaimable + pcp_free;
            (dynamic + explained, cached, reclaimable)
        };
        let floor = 2 * lotsfree + total / 80;
        let missing = used(self.unused_cache).0 + floor - total;
        if missing > 0 {
            let reclaimed = (missing + missing / 8 + total / 300).min(self.unused_cache);
            self.unused_cache -= reclaimed;
            self.counters.reclaim(reclaimed, missing > total / 40);
        }
        self.unused_cache = whole_pages(self.unused_cache);
        let (used, cached, reclaimable) = used(self.unused_cache);
        let free = (total - used).max(0);
        let swap_free = (self.installed.swap - held.swap).max(0);
        let short = (floor / 2 - free).clamp(0, swap_free);
        self.counters.swap(held.swap - self.swapped);
        self.swapped = held.swap;

        let file_lru = (cached + buffers - shmem - waiting).max(0);
        let active_file = whole_pages(file_lru * 2 / 5);
        let available = mem_available(free, file_lru, reclaimable, &self.installed);
        let kernel = KernelFigures {
            physical_bytes: Some(unsigned(self.installed.physical)),
            mem_total_bytes: unsigned(total),
            mem_free_bytes: unsigned(free),
            pcp_free_bytes: unsigned(pcp_free),
            mem_available_bytes: Some(unsigned(available)),
            buffers_bytes: unsigned(buffers),
            cached_bytes: unsigned(cached),
            swap_cached_bytes: unsigned(swap_cached),
            anon_bytes: unsigned(anon),
            reclaimable_kernel_bytes: unsigned(reclaimable),
            lotsfree_bytes: Some(unsigned(lotsfree)),
            file_lru_bytes: unsigned(file_lru),
            ..KernelFigures::default()
        };
        let in_use = InUse {
            active_anon_bytes: unsigned(held.active_anon),
            active_shmem_bytes: unsigned(held.active_shmem),
            mapped_file_bytes: unsigned(mapped),
            file_cache_bytes: unsigned(files.cached - files.mapped),
            idle_process_bytes: unsigned(held.idle_anon + shmem - held.active_shmem),
            guest_bytes: 0,
        };
        let dip = if step.is_present { 0.02 } else { 0.001 } * dice.share() * dice.share();
        self.count(dice, step, held);
        let counters = &self.counters;
        let mut row = SampleRow {
            boottime_ms: step.boottime_ms,
            files_whole: step.is_whole,
            mem_available_min_bytes: Some(
                (available - whole_pages((total as f64 * dip) as i64)).max(0),
            ),
            shmem_bytes: Some(shmem),
            mapped_bytes: Some(mapped + whole_pages(shmem / 2)),
            active_file_bytes: Some(active_file),
            inactive_file_bytes: Some(file_lru - active_file),
            unevictable_bytes: Some(16 * MIB),
            dirty_bytes: Some(whole_pages(
                (dice.around(read_mib, 1.0) * MIB as f64 / 8.0) as i64,
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
            load5: Some(hundredths(self.load[1])),
            load15: Some(hundredths(self.load[2])),
            running_count: Some(1 + self.load[0].round() as i64),
            tasks_count: Some(tasks),
            psi_memory_some_total_us: Some(counters.psi_memory_us),
            psi_memory_full_total_us: Some(counters.psi_memory_us / 2),
            psi_cpu_some_total_us: Some(counters.psi_cpu_us),
            psi_io_some_total_us: Some(counters.psi_io_us),
            psi_io_full_total_us: Some(counters.psi_io_us / 2),
            refault_file_total_count: Some(counters.refault_file),
            refault_anon_total_count: Some(counters.refault_anon),
            swap_in_total_count: Some(counters.swap_in),
            swap_out_total_count: Some(counters.swap_out),
            major_fault_total_count: Some(counters.major_fault),
            reclaimed_kswapd_total_count: Some(counters.kswapd),
            reclaimed_direct_total_count: Some(counters.direct),
            oom_kill_total_count: Some(0),
            processes_count: held.count,
            ..SampleRow::default()
        };
        account(&mut row, &kernel, &in_use);
        (row, short)
    }

    fn count(&mut self, dice: &mut Dice, step: &Step<'_>, held: &Held) {
        let interval_ms = step.interval_ms as f64;
        for (load, over_ms) in self.load.iter_mut().zip([60e3, 300e3, 900e3]) {
            let kept = over_ms / (over_ms + interval_ms); // near enough to a decay by e
            *load = *load * kept + held.load * (1.0 - kept);
        }
        let contention = held.load / step.class.cpus as f64;
        let counters = &mut self.counters;
        counters.psi_cpu_us += (interval_ms * 1000.0 * (0.001 + 0.2 * contention)) as i64;
        counters.psi_io_us +=
            dice.wait(interval_ms * if step.is_present { 3.0 } else { 0.3 }) as i64;
        counters.psi_memory_us += if self.swapped > 0 {
            dice.wait(interval_ms / 20.0) as i64
        } else {
            0
        };
        counters.major_fault +=
            dice.wait(interval_ms / if step.is_present { 900.0 } else { 9000.0 }) as i64;
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

/// Divides memory among the categories, as the agent does, and enters the figures that they come from.
fn account(row: &mut SampleRow, kernel: &KernelFigures, in_use: &InUse) {
    let c = categories(kernel, in_use);
    let parts = available_parts(kernel, in_use);
    row.physical_bytes = stored(c.physical_bytes);
    row.static_kernel_bytes = c.static_kernel_bytes.map(stored);
    row.balloon_bytes = stored(c.balloon_bytes);
    row.dynamic_kernel_bytes = stored(c.dynamic_kernel_bytes);
    row.lotsfree_bytes = c.lotsfree_bytes.map(stored);
    row.file_cache_bytes = stored(c.file_cache_bytes);
    row.process_bytes = stored(c.process_bytes);
    row.guest_bytes = stored(c.guest_bytes);
    row.available_bytes = stored(c.available_bytes);
    row.remainder_bytes = c.remainder_bytes;
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

/// As the kernel reckons MemAvailable (`si_mem_available`, mm/show_mem.c).
fn mem_available(free: i64, file_lru: i64, reclaimable: i64, installed: &Installed) -> i64 {
    let without_low = |bytes: i64| bytes - (bytes / 2).min(installed.low);
    (free - installed.lotsfree + without_low(file_lru) + without_low(reclaimable)).max(0)
}

/// Two nodes of about the same size that sum to the sample.
pub(super) fn nodes(sample: &SampleRow) -> Vec<NodeRow> {
    let second = |bytes: i64| whole_pages(bytes * 48 / 100);
    let node = |node, part: &dyn Fn(i64) -> i64| {
        let of = |bytes: Option<i64>| bytes.map(part);
        NodeRow {
            node,
            mem_total_bytes: part(sample.mem_total_bytes),
            mem_free_bytes: part(sample.mem_free_bytes),
            lotsfree_bytes: of(sample.lotsfree_bytes),
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
