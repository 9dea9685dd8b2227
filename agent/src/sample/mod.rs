//! A sample: the kernel's figures, and memory in use, divided among the categories.

pub mod cgroups;
pub mod figures;
pub mod files;
pub(crate) mod mapped;
pub mod numa_nodes;
pub mod opens;
pub mod physical;
pub mod processes;
pub mod proportional;
pub(crate) mod residency;
pub mod sampler;
pub(crate) mod stat_files;

use crate::clock::Moment;
use crate::missing_values::{AbsentValue, MissingValues, Reason};
use crate::read::meminfo::Meminfo;
use crate::sample::figures::Figures;
use crate::sample::files::FilesInUse;
use crate::sample::processes::Processes;
use gleaner_policy::accounting::{
    InUse, KernelFigures, available_parts, categories, harvestable_bytes,
};
use gleaner_schemas::column::{Row, Value};
use gleaner_schemas::rows::{ActivityRow, CgroupRow, FileRow, NumaNodeRow, ProcessRow, SampleRow};
use gleaner_schemas::units::stored;

/// A sample of a host.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Time of the sample.
    pub moment: Moment,
    /// Row of the sample itself: memory, load, cost.
    pub row: SampleRow,
    /// Rows of the active processes.
    pub processes: Vec<ProcessRow>,
    /// Rows of all files in use, with their paths.
    pub files: Vec<FileRow>,
    /// Sources of the owner's activity.
    pub activity: Vec<ActivityRow>,
    /// Rows of the NUMA nodes, if there are several.
    pub numa_nodes: Vec<NumaNodeRow>,
    /// Control groups of active processes.
    pub cgroups: Vec<CgroupRow>,
    /// Values that could not be read.
    pub missing_values: MissingValues,
}

/// Sums the memory in use, for the accounting, from the walks over processes and files.
#[must_use]
pub fn in_use(processes: &Processes, files: &FilesInUse, shmem_bytes: u64) -> InUse {
    let sum = |part: fn(&ProcessRow) -> Option<i64>| -> u64 {
        processes
            .active
            .iter()
            .filter_map(part)
            .filter_map(|b| u64::try_from(b).ok())
            .fold(0, u64::saturating_add) // a captured tree may contain any value
    };
    let active_shmem_bytes = sum(|p| p.shmem_bytes);
    // Lower bounds of mapped file memory: the sum of the processes' proportional parts, which never counts a
    // page twice (a reused reading is nearly as good), and the largest resident file part of any process.
    // These are the only figures if files cannot be examined (before Linux 6.5, files of other users).
    let proportional_file_bytes =
        sum(|p| p.file_bytes.filter(|_| p.memory_source != "rss_estimate"));
    let largest_file_bytes = processes.active.iter().filter_map(|p| p.file_bytes).max();
    let least_mapped_bytes =
        proportional_file_bytes.max(largest_file_bytes.map_or(0, i64::unsigned_abs));
    let mapped_cached_bytes: u64 = files.values().filter_map(|f| f.mapped_cached_bytes).sum();
    let cached_bytes: u64 = files.values().filter_map(|f| f.cached_bytes).sum();
    InUse {
        active_anon_bytes: sum(|p| p.anon_bytes),
        active_shmem_bytes,
        mapped_file_bytes: mapped_cached_bytes.max(least_mapped_bytes),
        file_cache_bytes: cached_bytes.saturating_sub(mapped_cached_bytes),
        // Shared memory counts once: the part of Shmem that active processes do not use belongs to idle
        // processes or is in tmpfs, whichever processes map it, and however often.
        idle_process_bytes: processes
            .idle_anon_bytes
            .saturating_add(shmem_bytes.saturating_sub(active_shmem_bytes)),
        guest_bytes: processes.guest_anon_bytes,
    }
}

/// Makes the sample's row except for identity, activity and cost, which the sampler adds.
#[must_use]
pub fn row(figures: &Figures, in_use: &InUse, headroom_share: f64) -> SampleRow {
    let meminfo = &figures.meminfo;
    let get = |name| meminfo.get(name);
    let kernel = KernelFigures {
        physical_bytes: figures.physical_bytes,
        balloon_bytes: get("Balloon").unwrap_or(0),
        mem_total_bytes: get("MemTotal").unwrap_or(0), // the parser ensures that there is one
        mem_free_bytes: get("MemFree").unwrap_or(0),
        pcp_free_bytes: figures.pcp_free_bytes.unwrap_or(0),
        mem_available_bytes: get("MemAvailable"),
        buffers_bytes: get("Buffers").unwrap_or(0),
        cached_bytes: get("Cached").unwrap_or(0),
        swap_cached_bytes: get("SwapCached").unwrap_or(0),
        anon_bytes: get("AnonPages").unwrap_or(0),
        reclaimable_kernel_bytes: meminfo.reclaimable_kernel_bytes().unwrap_or(0),
        arc_reclaimable_bytes: figures.arc.map_or(0, |arc| arc.reclaimable_bytes()),
        reserve_bytes: figures.reserve_bytes,
        file_lru_bytes: meminfo.file_lru_bytes().unwrap_or(0),
    };
    let c = categories(&kernel, in_use);
    let parts = available_parts(&kernel, in_use);
    let harvestable = kernel
        .mem_available_bytes
        .map(|available| harvestable_bytes(available, c.physical_bytes, headroom_share));
    let bytes = |name| meminfo.get(name).map(stored);
    let load = figures.load;
    let vmstat = &figures.vmstat;
    SampleRow {
        physical_bytes: stored(c.physical_bytes),
        static_kernel_bytes: c.static_kernel_bytes.map(stored),
        balloon_bytes: stored(c.balloon_bytes),
        dynamic_kernel_bytes: stored(c.dynamic_kernel_bytes),
        reserve_bytes: c.reserve_bytes.map(stored),
        file_cache_bytes: stored(c.file_cache_bytes),
        process_bytes: stored(c.process_bytes),
        guest_bytes: stored(c.guest_bytes),
        available_bytes: stored(c.available_bytes),
        category_correction_bytes: c.category_correction_bytes,
        harvestable_bytes: harvestable.map(stored),
        available_free_bytes: stored(parts.free_bytes),
        available_idle_process_bytes: stored(parts.idle_process_bytes),
        available_unused_cache_bytes: stored(parts.unused_cache_bytes),
        available_reclaimable_kernel_bytes: stored(parts.reclaimable_kernel_bytes),
        available_residual_bytes: stored(c.available_bytes) - stored(parts.sum_bytes()),
        mem_total_bytes: stored(kernel.mem_total_bytes),
        mem_free_bytes: stored(kernel.mem_free_bytes),
        pcp_free_bytes: figures.pcp_free_bytes.map(stored),
        mem_available_bytes: bytes("MemAvailable"),
        buffers_bytes: bytes("Buffers"),
        cached_bytes: bytes("Cached"),
        swap_cached_bytes: bytes("SwapCached"),
        anon_bytes: bytes("AnonPages"),
        shmem_bytes: bytes("Shmem"),
        mapped_bytes: bytes("Mapped"),
        active_file_bytes: bytes("Active(file)"),
        inactive_file_bytes: bytes("Inactive(file)"),
        unevictable_bytes: bytes("Unevictable"),
        dirty_bytes: bytes("Dirty"),
        writeback_bytes: bytes("Writeback"),
        slab_bytes: bytes("Slab"),
        reclaimable_kernel_bytes: meminfo.reclaimable_kernel_bytes().map(stored),
        kernel_stack_bytes: bytes("KernelStack"),
        page_tables_bytes: meminfo.page_tables_bytes().map(stored),
        percpu_bytes: bytes("Percpu"),
        vmalloc_bytes: bytes("VmallocUsed"),
        hugetlb_bytes: meminfo.hugetlb_bytes().map(stored),
        swap_total_bytes: bytes("SwapTotal"),
        swap_free_bytes: bytes("SwapFree"),
        zswap_bytes: bytes("Zswap"),
        load1: load.map(|l| l.load1),
        load5: load.map(|l| l.load5),
        load15: load.map(|l| l.load15),
        running_tasks_count: load.map(|l| l.running),
        tasks_count: load.map(|l| l.tasks),
        psi_memory_some_total_us: figures.memory_pressure.map(|p| stored(p.some_total_us)),
        psi_memory_full_total_us: figures
            .memory_pressure
            .and_then(|p| p.full_total_us)
            .map(stored),
        psi_cpu_some_total_us: figures.cpu_pressure.map(|p| stored(p.some_total_us)),
        psi_io_some_total_us: figures.io_pressure.map(|p| stored(p.some_total_us)),
        refault_file_total_pages: vmstat.refault_file.map(stored),
        refault_anon_total_pages: vmstat.refault_anon.map(stored),
        swap_in_total_pages: vmstat.swap_in.map(stored),
        swap_out_total_pages: vmstat.swap_out.map(stored),
        major_fault_total_count: vmstat.major_fault.map(stored),
        zswapped_bytes: bytes("Zswapped"),
        zram_bytes: figures.zram.map(|z| stored(z.used_bytes)),
        zram_stored_bytes: figures.zram.map(|z| stored(z.stored_bytes)),
        arc_bytes: figures.arc.map(|arc| stored(arc.size_bytes)),
        arc_min_bytes: figures.arc.map(|arc| stored(arc.min_bytes)),
        damon_idle_p10_ms: figures.idle.map(|idle| idle.p10_ms),
        damon_idle_p25_ms: figures.idle.map(|idle| idle.p25_ms),
        damon_idle_p50_ms: figures.idle.map(|idle| idle.p50_ms),
        damon_idle_p75_ms: figures.idle.map(|idle| idle.p75_ms),
        damon_idle_p90_ms: figures.idle.map(|idle| idle.p90_ms),
        psi_io_full_total_us: figures
            .io_pressure
            .and_then(|p| p.full_total_us)
            .map(stored),
        reclaimed_kswapd_total_pages: vmstat.reclaimed_kswapd.map(stored),
        reclaimed_direct_total_pages: vmstat.reclaimed_direct.map(stored),
        oom_kill_total_count: vmstat.oom_kill.map(stored),
        ..SampleRow::default()
    }
}

/// Columns that may be absent without a reason: `interval_ms` (the `gaps` table explains it), figures that a
/// captured tree of one moment cannot give, and figures that need ZFS, zram or the owner's permission to
/// read DAMON.
const ABSENT_WITHOUT_REASON: [&str; 11] = [
    "interval_ms",
    "guest_load5",
    "arc_bytes",
    "arc_min_bytes",
    "zram_bytes",
    "zram_stored_bytes",
    "damon_idle_p10_ms",
    "damon_idle_p25_ms",
    "damon_idle_p50_ms",
    "damon_idle_p75_ms",
    "damon_idle_p90_ms",
];

/// Notes an absence for every other column that has neither a value nor a reason: its field in `meminfo` is
/// malformed, or the kernel does not provide it.
pub fn note_what_is_absent(row: &SampleRow, meminfo: &Meminfo, missing_values: &mut MissingValues) {
    for (column, value) in SampleRow::TABLE.columns.iter().zip(row.to_values()) {
        if value == Value::Null
            && !ABSENT_WITHOUT_REASON.contains(&column.name)
            && !missing_values.has(column.name)
        {
            let absent = match meminfo.malformed(column.name) {
                Some(name) => AbsentValue::new(Reason::Malformed, format!("meminfo: {name}")),
                None => AbsentValue::new(Reason::Unsupported, "the kernel does not give it"),
            };
            missing_values.note(column.name, absent);
        }
    }
}
