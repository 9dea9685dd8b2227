//! The series that the importer reads, and their columns. All conversions of units are here.

use crate::import::{ColumnOrigin, kernel};
use gleaner_schemas::units::seconds_to_us;

macro_rules! series {
    ($($slot:ident = $name:literal,)*) => {
        /// A series of node_exporter that the importer reads.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub(super) enum Series { $($slot,)* }

        impl Series {
            /// Names of the series, in the order of the variants.
            pub(super) const NAMES: [&str; [$($name),*].len()] = [$($name),*];
            const ALL: [Self; Self::NAMES.len()] = [$(Self::$slot),*];
        }
    };
}

series! {
    MemTotal = "node_memory_MemTotal_bytes",
    MemFree = "node_memory_MemFree_bytes",
    MemAvailable = "node_memory_MemAvailable_bytes",
    Buffers = "node_memory_Buffers_bytes",
    Cached = "node_memory_Cached_bytes",
    SwapCached = "node_memory_SwapCached_bytes",
    AnonPages = "node_memory_AnonPages_bytes",
    Shmem = "node_memory_Shmem_bytes",
    Mapped = "node_memory_Mapped_bytes",
    ActiveFile = "node_memory_Active_file_bytes",
    InactiveFile = "node_memory_Inactive_file_bytes",
    Unevictable = "node_memory_Unevictable_bytes",
    Dirty = "node_memory_Dirty_bytes",
    Writeback = "node_memory_Writeback_bytes",
    Slab = "node_memory_Slab_bytes",
    KReclaimable = "node_memory_KReclaimable_bytes",
    SReclaimable = "node_memory_SReclaimable_bytes",
    KernelStack = "node_memory_KernelStack_bytes",
    PageTables = "node_memory_PageTables_bytes",
    SecPageTables = "node_memory_SecPageTables_bytes",
    Percpu = "node_memory_Percpu_bytes",
    VmallocUsed = "node_memory_VmallocUsed_bytes",
    Hugetlb = "node_memory_Hugetlb_bytes",
    HugePagesTotal = "node_memory_HugePages_Total",
    Hugepagesize = "node_memory_Hugepagesize_bytes",
    SwapTotal = "node_memory_SwapTotal_bytes",
    SwapFree = "node_memory_SwapFree_bytes",
    Zswap = "node_memory_Zswap_bytes",
    Zswapped = "node_memory_Zswapped_bytes",
    Load1 = "node_load1",
    Load5 = "node_load5",
    Load15 = "node_load15",
    ProcsRunning = "node_procs_running",
    Threads = "node_processes_threads",
    PressureMemoryWaiting = "node_pressure_memory_waiting_seconds_total",
    PressureMemoryStalled = "node_pressure_memory_stalled_seconds_total",
    PressureCpuWaiting = "node_pressure_cpu_waiting_seconds_total",
    PressureIoWaiting = "node_pressure_io_waiting_seconds_total",
    PressureIoStalled = "node_pressure_io_stalled_seconds_total",
    RefaultFile = "node_vmstat_workingset_refault_file",
    RefaultAnon = "node_vmstat_workingset_refault_anon",
    SwapIn = "node_vmstat_pswpin",
    SwapOut = "node_vmstat_pswpout",
    MajorFault = "node_vmstat_pgmajfault",
    ReclaimedKswapd = "node_vmstat_pgsteal_kswapd",
    ReclaimedDirect = "node_vmstat_pgsteal_direct",
    OomKill = "node_vmstat_oom_kill",
    ArcSize = "node_zfs_arc_size",
    ArcMin = "node_zfs_arc_c_min",
    BootTime = "node_boot_time_seconds",
    Cpus = "node_cpu_seconds_total",
    Uname = "node_uname_info",
    Os = "node_os_info",
    Dmi = "node_dmi_info",
    CpuInfo = "node_cpu_info",
}

impl Series {
    /// The series called `name`.
    pub(super) fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter().zip(Self::NAMES);
        all.find(|(_, n)| *n == name).map(|(series, _)| series)
    }

    /// Facts about the machine that the series' labels state: columns of `hosts`, each with its label.
    pub(super) fn facts(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Uname => &[
                ("host_name", "nodename"),
                ("kernel_release", "release"),
                ("architecture", "machine"),
            ],
            Self::Os => &[("os_name", "pretty_name")],
            Self::Dmi => &[("machine_model", "product_name")],
            Self::CpuInfo => &[("cpu_model", "model_name")],
            _ => &[],
        }
    }
}

/// Values of all series at one time; NaN where a series has no value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figures(pub(super) [f64; Series::NAMES.len()]);

impl Figures {
    pub(super) const NONE: Self = Self([f64::NAN; Series::NAMES.len()]);

    /// Value of `series`.
    pub(super) fn get(&self, series: Series) -> Option<f64> {
        Some(self.0[series as usize]).filter(|value| value.is_finite())
    }

    /// Value of `series`, converted from seconds to microseconds.
    fn us(&self, series: Series) -> Option<f64> {
        self.get(series).map(seconds_to_us)
    }
}

/// A column of `samples` and its source.
struct Column {
    name: &'static str,
    origin: &'static str,
    value: fn(&Figures) -> Option<f64>,
}

const fn column(
    name: &'static str,
    origin: &'static str,
    value: fn(&Figures) -> Option<f64>,
) -> Column {
    Column {
        name,
        origin,
        value,
    }
}

use Series as S;

/// Columns in addition to those of [`kernel::COLUMNS`], computed as the agent does.
#[rustfmt::skip] // one line a column
const OWN: [Column; 43] = [
    column("mem_free_bytes", "`node_memory_MemFree_bytes`", |f| f.get(S::MemFree)),
    column("buffers_bytes", "`node_memory_Buffers_bytes`", |f| f.get(S::Buffers)),
    column("cached_bytes", "`node_memory_Cached_bytes`", |f| f.get(S::Cached)),
    column("swap_cached_bytes", "`node_memory_SwapCached_bytes`", |f| f.get(S::SwapCached)),
    column("anon_bytes", "`node_memory_AnonPages_bytes`", |f| f.get(S::AnonPages)),
    column("shmem_bytes", "`node_memory_Shmem_bytes`", |f| f.get(S::Shmem)),
    column("mapped_bytes", "`node_memory_Mapped_bytes`", |f| f.get(S::Mapped)),
    column("active_file_bytes", "`node_memory_Active_file_bytes`", |f| f.get(S::ActiveFile)),
    column("inactive_file_bytes", "`node_memory_Inactive_file_bytes`", |f| f.get(S::InactiveFile)),
    column("unevictable_bytes", "`node_memory_Unevictable_bytes`", |f| f.get(S::Unevictable)),
    column("dirty_bytes", "`node_memory_Dirty_bytes`", |f| f.get(S::Dirty)),
    column("writeback_bytes", "`node_memory_Writeback_bytes`", |f| f.get(S::Writeback)),
    column("slab_bytes", "`node_memory_Slab_bytes`", |f| f.get(S::Slab)),
    column("reclaimable_kernel_bytes", "`node_memory_KReclaimable_bytes`; `node_memory_SReclaimable_bytes` where there is none",
        |f| f.get(S::KReclaimable).or_else(|| f.get(S::SReclaimable))),
    column("kernel_stack_bytes", "`node_memory_KernelStack_bytes`", |f| f.get(S::KernelStack)),
    column("page_tables_bytes", "`node_memory_PageTables_bytes`, and `node_memory_SecPageTables_bytes` where there is one",
        |f| Some(f.get(S::PageTables)? + f.get(S::SecPageTables).unwrap_or(0.0))),
    column("percpu_bytes", "`node_memory_Percpu_bytes`", |f| f.get(S::Percpu)),
    column("vmalloc_bytes", "`node_memory_VmallocUsed_bytes`", |f| f.get(S::VmallocUsed)),
    column("hugetlb_bytes", "`node_memory_Hugetlb_bytes`; `node_memory_HugePages_Total` times `node_memory_Hugepagesize_bytes` where there is none",
        |f| f.get(S::Hugetlb).or_else(|| Some(f.get(S::HugePagesTotal)? * f.get(S::Hugepagesize)?))),
    column("swap_total_bytes", "`node_memory_SwapTotal_bytes`", |f| f.get(S::SwapTotal)),
    column("swap_free_bytes", "`node_memory_SwapFree_bytes`", |f| f.get(S::SwapFree)),
    column("zswap_bytes", "`node_memory_Zswap_bytes`", |f| f.get(S::Zswap)),
    column("zswapped_bytes", "`node_memory_Zswapped_bytes`", |f| f.get(S::Zswapped)),
    column("load1", "`node_load1`", |f| f.get(S::Load1)),
    column("load5", "`node_load5`", |f| f.get(S::Load5)),
    column("load15", "`node_load15`", |f| f.get(S::Load15)),
    column("running_tasks_count", "`node_procs_running`", |f| f.get(S::ProcsRunning)),
    column("tasks_count", "`node_processes_threads` (`--collector.processes`)", |f| f.get(S::Threads)),
    column("psi_memory_some_total_us", "`node_pressure_memory_waiting_seconds_total`, in s", |f| f.us(S::PressureMemoryWaiting)),
    column("psi_memory_full_total_us", "`node_pressure_memory_stalled_seconds_total`, in s", |f| f.us(S::PressureMemoryStalled)),
    column("psi_cpu_some_total_us", "`node_pressure_cpu_waiting_seconds_total`, in s", |f| f.us(S::PressureCpuWaiting)),
    column("psi_io_some_total_us", "`node_pressure_io_waiting_seconds_total`, in s", |f| f.us(S::PressureIoWaiting)),
    column("psi_io_full_total_us", "`node_pressure_io_stalled_seconds_total`, in s", |f| f.us(S::PressureIoStalled)),
    column("refault_file_total_pages", "`node_vmstat_workingset_refault_file` (`--collector.vmstat.fields`)", |f| f.get(S::RefaultFile)),
    column("refault_anon_total_pages", "`node_vmstat_workingset_refault_anon` (`--collector.vmstat.fields`)", |f| f.get(S::RefaultAnon)),
    column("swap_in_total_pages", "`node_vmstat_pswpin`", |f| f.get(S::SwapIn)),
    column("swap_out_total_pages", "`node_vmstat_pswpout`", |f| f.get(S::SwapOut)),
    column("major_fault_total_count", "`node_vmstat_pgmajfault`", |f| f.get(S::MajorFault)),
    column("reclaimed_kswapd_total_pages", "`node_vmstat_pgsteal_kswapd` (`--collector.vmstat.fields`)", |f| f.get(S::ReclaimedKswapd)),
    column("reclaimed_direct_total_pages", "`node_vmstat_pgsteal_direct` (`--collector.vmstat.fields`)", |f| f.get(S::ReclaimedDirect)),
    column("oom_kill_total_count", "`node_vmstat_oom_kill`", |f| f.get(S::OomKill)),
    column("arc_bytes", "`node_zfs_arc_size`", |f| f.get(S::ArcSize)),
    column("arc_min_bytes", "`node_zfs_arc_c_min`", |f| f.get(S::ArcMin)),
];

/// Filled columns in addition to [`OWN`].
const SHARED: [ColumnOrigin<'static>; 19] = [
    ColumnOrigin::INTERVAL_MS,
    ColumnOrigin::FILES_WHOLE,
    ColumnOrigin::new(
        "samples",
        "boot_id",
        "made of the machine and `node_boot_time_seconds`",
    ),
    ColumnOrigin::new(
        "samples",
        "boottime_ms",
        "time since `node_boot_time_seconds`, a time in whole s",
    ),
    ColumnOrigin::new("samples", "physical_bytes", "`node_memory_MemTotal_bytes`"),
    kernel::AVAILABLE_BYTES,
    ColumnOrigin::new("samples", "mem_total_bytes", "`node_memory_MemTotal_bytes`"),
    ColumnOrigin::new(
        "samples",
        "mem_available_bytes",
        "`node_memory_MemAvailable_bytes`",
    ),
    kernel::HARVESTABLE_BYTES,
    ColumnOrigin::new(
        "hosts",
        "host_name",
        "`nodename` of `node_uname_info`; else the machine's name",
    ),
    ColumnOrigin::new("hosts", "kernel_release", "`release` of `node_uname_info`"),
    ColumnOrigin::new("hosts", "architecture", "`machine` of `node_uname_info`"),
    ColumnOrigin::new("hosts", "os_name", "`pretty_name` of `node_os_info`"),
    ColumnOrigin::new(
        "hosts",
        "machine_model",
        "`product_name` of `node_dmi_info`",
    ),
    ColumnOrigin::new(
        "hosts",
        "cpu_model",
        "`model_name` of `node_cpu_info` of CPU 0 (`--collector.cpu.info`)",
    ),
    ColumnOrigin::new(
        "hosts",
        "cpus_count",
        "number of CPUs with mode `idle` in `node_cpu_seconds_total`",
    ),
    ColumnOrigin::new("hosts", "physical_bytes", "`node_memory_MemTotal_bytes`"),
    kernel::HEADROOM_SHARE,
    ColumnOrigin::new(
        "hosts",
        "source",
        "`Prometheus node_exporter`, and what `--name` says",
    ),
];

/// All columns that this source fills.
pub(super) const FILLS: [ColumnOrigin<'static>; SHARED.len() + OWN.len()] = {
    let mut fills = [SHARED[0]; SHARED.len() + OWN.len()];
    let mut at = 0;
    while at < fills.len() {
        fills[at] = if at < SHARED.len() {
            SHARED[at]
        } else {
            let own = &OWN[at - SHARED.len()];
            ColumnOrigin::new("samples", own.name, own.origin)
        };
        at += 1;
    }
    fills
};

/// Columns of `samples` for which this source's readings have values.
pub(super) const COLUMNS: [&str; kernel::COLUMNS.len() + OWN.len()] = {
    let mut columns = [""; kernel::COLUMNS.len() + OWN.len()];
    let mut at = 0;
    while at < columns.len() {
        columns[at] = if at < kernel::COLUMNS.len() {
            kernel::COLUMNS[at]
        } else {
            OWN[at - kernel::COLUMNS.len()].name
        };
        at += 1;
    }
    columns
};

/// Values for [`COLUMNS`], in their order.
pub(super) fn values(
    figures: &Figures,
    mem_total_bytes: i64,
    mem_available_bytes: i64,
) -> [Option<f64>; COLUMNS.len()] {
    let mut values = [None; COLUMNS.len()];
    let (shared, own) = values.split_at_mut(kernel::COLUMNS.len());
    shared.copy_from_slice(&kernel::values(mem_total_bytes, mem_available_bytes));
    for (value, column) in own.iter_mut().zip(&OWN) {
        *value = (column.value)(figures).filter(|value| *value >= 0.0);
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::column::Row;
    use gleaner_schemas::rows::{HostRow, SampleRow};

    #[test]
    fn every_series_and_column_is_there_once() {
        for (at, series) in Series::ALL.into_iter().enumerate() {
            assert_eq!(series as usize, at);
            assert_eq!(Series::named(Series::NAMES[at]), Some(series));
        }
        let mut filled: Vec<_> = FILLS.iter().map(|f| (f.table, f.column)).collect();
        for (table, column) in &filled {
            let table = [SampleRow::TABLE, HostRow::TABLE]
                .into_iter()
                .find(|t| t.name == *table);
            assert!(
                table.unwrap().columns.iter().any(|c| c.name == *column),
                "{column}"
            );
        }
        filled.sort_unstable();
        filled.dedup();
        assert_eq!(filled.len(), FILLS.len());
        for column in COLUMNS {
            assert!(filled.contains(&("samples", column)), "{column}");
        }
        let facts = Series::ALL.iter().flat_map(|s| s.facts());
        for (column, _) in facts {
            assert!(filled.contains(&("hosts", column)), "{column}");
        }
    }

    /// Older kernels lack some fields. The columns are then computed as in the agent's reader of /proc/meminfo.
    #[test]
    fn older_kernels_say_it_otherwise() {
        let value = |column: &str, said: &[(Series, f64)]| {
            let mut figures = Figures::NONE;
            for (series, value) in said {
                figures.0[*series as usize] = *value;
            }
            let at = COLUMNS.iter().position(|c| *c == column).unwrap();
            values(&figures, 1, 1)[at]
        };
        let reclaimable = |said: &[(Series, f64)]| value("reclaimable_kernel_bytes", said);
        assert_eq!(
            reclaimable(&[(S::KReclaimable, 5.0), (S::SReclaimable, 4.0)]),
            Some(5.0)
        );
        assert_eq!(reclaimable(&[(S::SReclaimable, 4.0)]), Some(4.0));
        assert_eq!(reclaimable(&[]), None);
        let huge = |said: &[(Series, f64)]| value("hugetlb_bytes", said);
        let pages = [(S::HugePagesTotal, 3.0), (S::Hugepagesize, 2_097_152.0)];
        assert_eq!(huge(&pages), Some(6_291_456.0));
        assert_eq!(huge(&pages[..1]), None);
        assert_eq!(huge(&[pages[0], pages[1], (S::Hugetlb, 0.0)]), Some(0.0));
        let tables = |said: &[(Series, f64)]| value("page_tables_bytes", said);
        assert_eq!(
            tables(&[(S::PageTables, 5.0), (S::SecPageTables, 2.0)]),
            Some(7.0)
        );
        assert_eq!(tables(&[(S::PageTables, 5.0)]), Some(5.0));
        assert_eq!(tables(&[(S::SecPageTables, 2.0)]), None);
        assert_eq!(value("load1", &[(S::Load1, -1.0)]), None);
    }
}
