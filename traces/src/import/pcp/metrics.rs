//! Assignment of PCP's metrics to the dataset's columns.

use crate::import::{ColumnOrigin, kernel};

/// A column of `samples` and the metrics that can fill it; the first metric that the archive has is used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) metrics: &'static [Metric],
    /// Description of the column's origin.
    origin: &'static str,
}

/// A metric, or one of its instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) instance: Option<&'static str>,
}

impl Metric {
    pub(super) const fn plain(name: &'static str) -> Self {
        Self {
            name,
            instance: None,
        }
    }
}

const fn one(name: &'static str) -> Metric {
    Metric::plain(name)
}

const fn load(instance: &'static str) -> Metric {
    Metric {
        name: "kernel.all.load",
        instance: Some(instance),
    }
}

const fn column(name: &'static str, metrics: &'static [Metric], origin: &'static str) -> Column {
    Column {
        name,
        metrics,
        origin,
    }
}

pub(super) const AVAILABLE: &str = "mem.util.available";
pub(super) const PHYSICAL: &str = "mem.physmem";
pub(super) const USED: &str = "mem.util.used";
pub(super) const FREE: &str = "mem.util.free";
pub(super) const CPUS: &str = "hinv.ncpu";
pub(super) const BOOTED: &str = "kernel.all.boottime";

/// Metrics that a sample needs in addition to those in [`COLUMNS`]; each with a column of the same unit.
pub(super) const NEEDED: [(&str, &str); 5] = [
    (AVAILABLE, "mem_available_bytes"),
    (PHYSICAL, "mem_total_bytes"),
    (USED, "mem_total_bytes"),
    (CPUS, "cpus_count"),
    (BOOTED, "booted_s"),
];

/// Factor from the archive's unit `units` to the unit in the column's name; `None` if no conversion exists.
pub(super) fn scale(column: &str, units: &str) -> Option<f64> {
    let bytes = || {
        let power = ["byte", "Kbyte", "Mbyte", "Gbyte", "Tbyte"]
            .iter()
            .position(|u| *u == units)?;
        Some(1024_f64.powi(i32::try_from(power).ok()?))
    };
    match column.rsplit('_').next() {
        Some("bytes") => bytes(),
        Some("s") => (units == "sec").then_some(1.0),
        Some("us") => match units {
            "nanosec" => Some(1e-3),
            "microsec" => Some(1.0),
            "millisec" => Some(1e3),
            "sec" => Some(1e6),
            _ => None,
        },
        _ => matches!(units, "count" | "none" | "").then_some(1.0),
    }
}

/// Columns of `hosts`, each with the metric that fills it.
pub(super) const FACTS: [(&str, &str); 5] = [
    ("kernel_release", "kernel.uname.release"),
    ("architecture", "kernel.uname.machine"),
    ("os_name", "kernel.uname.distro"),
    ("cpu_model", "hinv.cpu.model_name"),
    ("page_size_bytes", "hinv.pagesize"),
];

/// Columns of `samples` in addition to [`kernel::COLUMNS`].
#[rustfmt::skip]
pub(super) const COLUMNS: [Column; 40] = [
    column("mem_free_bytes", &[one("mem.util.free"), one("mem.freemem")], "mem.util.free, or mem.freemem"),
    column("buffers_bytes", &[one("mem.util.bufmem")], "mem.util.bufmem"),
    column("cached_bytes", &[one("mem.util.cached")], "mem.util.cached"),
    column("swap_cached_bytes", &[one("mem.util.swapCached")], "mem.util.swapCached"),
    column("anon_bytes", &[one("mem.util.anonpages")], "mem.util.anonpages"),
    column("shmem_bytes", &[one("mem.util.shmem")], "mem.util.shmem"),
    column("mapped_bytes", &[one("mem.util.mapped")], "mem.util.mapped"),
    column("active_file_bytes", &[one("mem.util.active_file")], "mem.util.active_file"),
    column("inactive_file_bytes", &[one("mem.util.inactive_file")], "mem.util.inactive_file"),
    column("unevictable_bytes", &[one("mem.util.unevictable")], "mem.util.unevictable"),
    column("dirty_bytes", &[one("mem.util.dirty")], "mem.util.dirty"),
    column("writeback_bytes", &[one("mem.util.writeback")], "mem.util.writeback"),
    column("slab_bytes", &[one("mem.util.slab")], "mem.util.slab"),
    column("reclaimable_kernel_bytes", &[one("mem.util.slabReclaimable")],
        "mem.util.slabReclaimable; excludes KReclaimable memory outside slabs"),
    column("kernel_stack_bytes", &[one("mem.util.kernelStack")], "mem.util.kernelStack"),
    column("page_tables_bytes", &[one("mem.util.pageTables")],
        "mem.util.pageTables; excludes those of virtual machines (SecPageTables, since Linux 6.0)"),
    column("vmalloc_bytes", &[one("mem.util.vmallocUsed")], "mem.util.vmallocUsed"),
    column("hugetlb_bytes", &[one("mem.util.hugepagesTotalBytes")], "mem.util.hugepagesTotalBytes, of the default size"),
    column("swap_total_bytes", &[one("mem.util.swapTotal"), one("swap.length")], "mem.util.swapTotal, or swap.length"),
    column("swap_free_bytes", &[one("mem.util.swapFree"), one("swap.free")], "mem.util.swapFree, or swap.free"),
    column("zswap_bytes", &[one("mem.util.zswap")], "mem.util.zswap"),
    column("zswapped_bytes", &[one("mem.util.zswapped")], "mem.util.zswapped"),
    column("load1", &[load("1 minute")], "kernel.all.load, 1 minute"),
    column("load5", &[load("5 minute")], "kernel.all.load, 5 minute"),
    column("load15", &[load("15 minute")], "kernel.all.load, 15 minute"),
    column("running_tasks_count", &[one("kernel.all.runnable")], "kernel.all.runnable"),
    column("tasks_count", &[one("kernel.all.nprocs")], "kernel.all.nprocs"),
    column("psi_memory_some_total_us", &[one("kernel.all.pressure.memory.some.total")], "kernel.all.pressure.memory.some.total"),
    column("psi_memory_full_total_us", &[one("kernel.all.pressure.memory.full.total")], "kernel.all.pressure.memory.full.total"),
    column("psi_cpu_some_total_us", &[one("kernel.all.pressure.cpu.some.total")], "kernel.all.pressure.cpu.some.total"),
    column("psi_io_some_total_us", &[one("kernel.all.pressure.io.some.total")], "kernel.all.pressure.io.some.total"),
    column("psi_io_full_total_us", &[one("kernel.all.pressure.io.full.total")], "kernel.all.pressure.io.full.total"),
    column("refault_file_total_pages", &[one("mem.vmstat.workingset_refault_file")], "mem.vmstat.workingset_refault_file"),
    column("refault_anon_total_pages", &[one("mem.vmstat.workingset_refault_anon")], "mem.vmstat.workingset_refault_anon"),
    column("swap_in_total_pages", &[one("mem.vmstat.pswpin"), one("swap.pagesin")], "mem.vmstat.pswpin, or swap.pagesin"),
    column("swap_out_total_pages", &[one("mem.vmstat.pswpout"), one("swap.pagesout")], "mem.vmstat.pswpout, or swap.pagesout"),
    column("major_fault_total_count", &[one("mem.vmstat.pgmajfault")], "mem.vmstat.pgmajfault"),
    column("reclaimed_kswapd_total_pages", &[one("mem.vmstat.pgsteal_kswapd")], "mem.vmstat.pgsteal_kswapd"),
    column("reclaimed_direct_total_pages", &[one("mem.vmstat.pgsteal_direct")], "mem.vmstat.pgsteal_direct"),
    column("oom_kill_total_count", &[one("mem.vmstat.oom_kill")], "mem.vmstat.oom_kill"),
];

/// Columns of `samples` for which this source's readings have values.
pub(super) const NAMES: [&str; kernel::COLUMNS.len() + COLUMNS.len()] = {
    let mut names = [""; kernel::COLUMNS.len() + COLUMNS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = if at < kernel::COLUMNS.len() {
            kernel::COLUMNS[at]
        } else {
            COLUMNS[at - kernel::COLUMNS.len()].name
        };
        at += 1;
    }
    names
};

const MEM_TOTAL: &str = "mem.physmem, which is MemTotal; or mem.util.used and mem.util.free";

const BEFORE: [ColumnOrigin<'static>; 9] = [
    ColumnOrigin::new("samples", "boot_id", "a hash of kernel.all.boottime"),
    ColumnOrigin::new("samples", "boottime_ms", "time since kernel.all.boottime"),
    ColumnOrigin::INTERVAL_MS,
    ColumnOrigin::FILES_WHOLE,
    ColumnOrigin::new("samples", "physical_bytes", MEM_TOTAL),
    kernel::AVAILABLE_BYTES,
    kernel::HARVESTABLE_BYTES,
    ColumnOrigin::new("samples", "mem_total_bytes", MEM_TOTAL),
    ColumnOrigin::new("samples", "mem_available_bytes", AVAILABLE),
];

const AFTER: [ColumnOrigin<'static>; 12] = [
    ColumnOrigin::new("gaps", "from_time_ms", "the last sample before a `<mark>`"),
    ColumnOrigin::new("gaps", "to_time_ms", "the first sample after it"),
    ColumnOrigin::new("gaps", "cause", "`stopped`: `<mark>` records"),
    ColumnOrigin::new("hosts", "host_name", "the archive's host"),
    ColumnOrigin::new("hosts", FACTS[0].0, FACTS[0].1),
    ColumnOrigin::new("hosts", FACTS[1].0, FACTS[1].1),
    ColumnOrigin::new("hosts", FACTS[2].0, FACTS[2].1),
    ColumnOrigin::new("hosts", FACTS[3].0, FACTS[3].1),
    ColumnOrigin::new("hosts", FACTS[4].0, FACTS[4].1),
    ColumnOrigin::new("hosts", "physical_bytes", "as in `samples`"),
    kernel::HEADROOM_SHARE,
    ColumnOrigin::SOURCE,
];

const CPUS_COUNT: ColumnOrigin<'static> = ColumnOrigin::new("hosts", "cpus_count", CPUS);

/// All columns that this source fills.
pub(super) const FILLS: [ColumnOrigin<'static>; BEFORE.len() + COLUMNS.len() + AFTER.len() + 1] = {
    let mut fills = [CPUS_COUNT; BEFORE.len() + COLUMNS.len() + AFTER.len() + 1];
    let mut at = 0;
    while at < BEFORE.len() {
        fills[at] = BEFORE[at];
        at += 1;
    }
    while at < BEFORE.len() + COLUMNS.len() {
        let column = &COLUMNS[at - BEFORE.len()];
        fills[at] = ColumnOrigin::new("samples", column.name, column.origin);
        at += 1;
    }
    while at < fills.len() - 1 {
        fills[at] = AFTER[at - BEFORE.len() - COLUMNS.len()];
        at += 1;
    }
    fills
};
