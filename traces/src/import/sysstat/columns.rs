//! The dataset's columns, and the figures of sysstat that fill them.

use super::figures::Figures;
use crate::import::{ColumnOrigin, kernel};

/// A column of `samples`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    name: &'static str,
    /// Figures whose sum is the column's value.
    figures: &'static [&'static str],
    /// Factor from the figures' unit to the column's.
    scale: f64,
    /// Description of the column's origin.
    origin: &'static str,
}

impl Column {
    pub(super) fn value(&self, figures: &Figures) -> Option<f64> {
        Some(figures.sum(self.figures)? * self.scale)
    }
}

const fn kib(name: &'static str, figures: &'static [&'static str], origin: &'static str) -> Column {
    Column {
        name,
        figures,
        scale: 1024.0,
        origin,
    }
}

const fn plain(
    name: &'static str,
    figures: &'static [&'static str],
    origin: &'static str,
) -> Column {
    Column {
        name,
        figures,
        scale: 1.0,
        origin,
    }
}

/// Columns in addition to [`kernel::COLUMNS`].
pub(super) const COLUMNS: [Column; 19] = [
    kib("mem_free_bytes", &["memfree"], "memfree [KiB]"),
    kib("buffers_bytes", &["buffers"], "buffers [KiB]"),
    kib("cached_bytes", &["cached"], "cached [KiB]"),
    kib("swap_cached_bytes", &["swpcad"], "swpcad [KiB]"),
    kib("anon_bytes", &["anonpg"], "anonpg [KiB]"),
    kib(
        "shmem_bytes",
        &["shared"],
        "shared [KiB]; since sysstat 12.7.8",
    ),
    kib("dirty_bytes", &["dirty"], "dirty [KiB]"),
    kib("slab_bytes", &["slab"], "slab [KiB]"),
    kib("kernel_stack_bytes", &["kstack"], "kstack [KiB]"),
    kib(
        "page_tables_bytes",
        &["pgtbl"],
        "pgtbl [KiB]; excludes those of virtual machines (SecPageTables, since Linux 6.0)",
    ),
    kib("vmalloc_bytes", &["vmused"], "vmused [KiB]"),
    kib(
        "hugetlb_bytes",
        &["hugfree", "hugused"],
        "hugfree and hugused [KiB], of the default size",
    ),
    kib(
        "swap_total_bytes",
        &["swpfree", "swpused"],
        "swpfree and swpused [KiB]",
    ),
    kib("swap_free_bytes", &["swpfree"], "swpfree [KiB]"),
    plain("load1", &["ldavg-1"], "ldavg-1"),
    plain("load5", &["ldavg-5"], "ldavg-5"),
    plain("load15", &["ldavg-15"], "ldavg-15"),
    plain(
        "running_tasks_count",
        &["runq-sz"],
        "runq-sz, in which sadc does not count itself",
    ),
    plain("tasks_count", &["plist-sz"], "plist-sz"),
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

const MEM_TOTAL: &str = "MemTotal [KiB], the sum of `memused` and the parts that `memused` excludes: memfree before sysstat 11.4.10, 11.6.4 and \
     11.7.4; memfree, buffers, cached and slab up to 12.7.7; avail since";

const BEFORE: [ColumnOrigin<'static>; 7] = [
    ColumnOrigin::INTERVAL_MS,
    ColumnOrigin::FILES_WHOLE,
    ColumnOrigin::new("samples", "physical_bytes", MEM_TOTAL),
    kernel::AVAILABLE_BYTES,
    kernel::HARVESTABLE_BYTES,
    ColumnOrigin::new("samples", "mem_total_bytes", MEM_TOTAL),
    ColumnOrigin::new("samples", "mem_available_bytes", "avail [KiB]"),
];

const AFTER: [ColumnOrigin<'static>; 10] = [
    ColumnOrigin::new("gaps", "from_time_ms", "the last sample before a restart"),
    ColumnOrigin::new("gaps", "to_time_ms", "the first sample after it"),
    ColumnOrigin::new("gaps", "cause", "`boot`: restarts"),
    ColumnOrigin::new("hosts", "host_name", "nodename"),
    ColumnOrigin::new("hosts", "kernel_release", "release"),
    ColumnOrigin::new("hosts", "architecture", "machine"),
    ColumnOrigin::new(
        "hosts",
        "cpus_count",
        "number-of-cpus; cpu_count of a restart",
    ),
    ColumnOrigin::new("hosts", "physical_bytes", "as in `samples`"),
    kernel::HEADROOM_SHARE,
    ColumnOrigin::SOURCE,
];

/// All columns that this source fills.
pub(super) const FILLS: [ColumnOrigin<'static>; BEFORE.len() + COLUMNS.len() + AFTER.len()] = {
    let mut fills = [ColumnOrigin::SOURCE; BEFORE.len() + COLUMNS.len() + AFTER.len()];
    let mut at = 0;
    while at < fills.len() {
        fills[at] = if at < BEFORE.len() {
            BEFORE[at]
        } else if at < BEFORE.len() + COLUMNS.len() {
            let column = &COLUMNS[at - BEFORE.len()];
            ColumnOrigin::new("samples", column.name, column.origin)
        } else {
            AFTER[at - BEFORE.len() - COLUMNS.len()]
        };
        at += 1;
    }
    fills
};
