//! Which column is made of which figures.

use super::figures::Figures;
use crate::import::{Filled, kernel};

/// A column of `samples`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    name: &'static str,
    /// Figures of which it is the sum.
    figures: &'static [&'static str],
    /// What one of them is in the column's unit.
    scale: f64,
    /// For people.
    from: &'static str,
}

impl Column {
    pub(super) fn value(&self, figures: &Figures) -> Option<f64> {
        Some(figures.sum(self.figures)? * self.scale)
    }
}

const fn kib(name: &'static str, figures: &'static [&'static str], from: &'static str) -> Column {
    Column {
        name,
        figures,
        scale: 1024.0,
        from,
    }
}

const fn plain(name: &'static str, figures: &'static [&'static str], from: &'static str) -> Column {
    Column {
        name,
        figures,
        scale: 1.0,
        from,
    }
}

/// Those beside [`kernel::COLUMNS`].
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
        "pgtbl [KiB]; those of virtual machines (SecPageTables, since Linux 6.0) are not among them",
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
        "running_count",
        &["runq-sz"],
        "runq-sz, in which sadc does not count itself",
    ),
    plain("tasks_count", &["plist-sz"], "plist-sz"),
];

/// Columns of `samples` that readings carry.
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

const MEM_TOTAL: &str = "MemTotal, which `memused` and what that leaves out sum to [KiB]: memfree before sysstat 11.4.10, 11.6.4 and \
     11.7.4; memfree, buffers, cached and slab up to 12.7.7; avail since";

const BEFORE: [Filled<'static>; 7] = [
    Filled::INTERVAL_MS,
    Filled::FILES_WHOLE,
    Filled::new("samples", "physical_bytes", MEM_TOTAL),
    kernel::AVAILABLE_BYTES,
    kernel::HARVESTABLE_BYTES,
    Filled::new("samples", "mem_total_bytes", MEM_TOTAL),
    Filled::new("samples", "mem_available_bytes", "avail [KiB]"),
];

const AFTER: [Filled<'static>; 10] = [
    Filled::new("gaps", "from_time_ms", "the last sample before a restart"),
    Filled::new("gaps", "to_time_ms", "the first sample after it"),
    Filled::new("gaps", "cause", "`boot`: restarts"),
    Filled::new("hosts", "host_name", "nodename"),
    Filled::new("hosts", "kernel_release", "release"),
    Filled::new("hosts", "architecture", "machine"),
    Filled::new(
        "hosts",
        "cpus_count",
        "number-of-cpus; cpu_count of a restart",
    ),
    Filled::new("hosts", "physical_bytes", "as in `samples`"),
    kernel::HEADROOM_SHARE,
    Filled::SOURCE,
];

/// All that is filled.
pub(super) const FILLS: [Filled<'static>; BEFORE.len() + COLUMNS.len() + AFTER.len()] = {
    let mut fills = [Filled::SOURCE; BEFORE.len() + COLUMNS.len() + AFTER.len()];
    let mut at = 0;
    while at < fills.len() {
        fills[at] = if at < BEFORE.len() {
            BEFORE[at]
        } else if at < BEFORE.len() + COLUMNS.len() {
            let column = &COLUMNS[at - BEFORE.len()];
            Filled::new("samples", column.name, column.from)
        } else {
            AFTER[at - BEFORE.len() - COLUMNS.len()]
        };
        at += 1;
    }
    fills
};
