//! Every table that a host records, each column declared once.
//!
//! A *record* is a sample with all its rows, a gap, a change of the inventory, or an event. Each record has
//! its own sequence number in its database. (Host id, database id, sequence) identifies the record
//! permanently: delivering a record twice changes nothing.
//!
//! A value that could not be read is absent, never 0, and a row of `missing_values` has the reason. Kernel
//! counters that only grow (`…_total_…`) are stored as read: readers compute the differences between samples,
//! which are valid only within one boot (`boot_id`).

use crate::column::{Row, Table};
use crate::row;

/// The tables that a host records, in the order of their creation and documentation.
pub const TABLES: [Table; 10] = [
    SampleRow::TABLE,
    ProcessRow::TABLE,
    FileRow::TABLE,
    ActivityRow::TABLE,
    MissingValueRow::TABLE,
    GapRow::TABLE,
    HostRow::TABLE,
    NumaNodeRow::TABLE,
    CgroupRow::TABLE,
    EventRow::TABLE,
];

/// All tables of a dataset: first those that hosts record, then the one that only collectors write.
pub const DATASET_TABLES: [Table; 11] = {
    let mut all = [ClockRow::TABLE; TABLES.len() + 1];
    let mut at = 0;
    while at < TABLES.len() {
        all[at] = TABLES[at];
        at += 1;
    }
    all
};

/// Returns the table of a dataset with this name; `None` if there is none.
#[must_use]
pub fn table(name: &str) -> Option<Table> {
    DATASET_TABLES.into_iter().find(|t| t.name == name)
}

row! {
    /// A sample of a host: memory by category, the kernel's own figures, load, activity, cost.
    SampleRow = "samples", key [], required ["is_complete_state", "physical_bytes", "available_bytes"] {
        /// Boot that the sample belongs to (`/proc/sys/kernel/random/boot_id`, hashed).
        boot_id: Option<String>,
        /// Time since boot, suspend included (CLOCK_BOOTTIME). For a sample of a captured `/proc` tree: the
        /// tree's `uptime`; absent where the tree has none.
        boottime_ms: Option<i64>,
        /// Time since the previous sample (CLOCK_BOOTTIME); absent for the first sample and after a gap.
        interval_ms: Option<i64>,
        /// True if the rows in `files`, `activity` and `missing_values` are the complete state; false if they
        /// are the changes since the previous sample.
        is_complete_state: bool,

        /// Physical memory: System RAM of /proc/iomem. Where that cannot be read: the present pages of
        /// /proc/zoneinfo, if its managed pages agree with MemTotal; otherwise MemTotal plus balloon. The
        /// categories below sum to physical memory.
        physical_bytes: i64,
        /// Category: memory that the kernel took before it counted MemTotal (its image, struct pages):
        /// physical − MemTotal − balloon.
        static_kernel_bytes: Option<i64>,
        /// Category: memory that the hypervisor's balloon holds.
        balloon_bytes: i64,
        /// Category: kernel memory that cannot be reclaimed. It consists of slab, page tables, per-CPU,
        /// vmalloc, stacks, huge pages set aside, and the rest of MemTotal that no counter explains. The part
        /// of ZFS' ARC above the ARC's minimum size is subtracted.
        dynamic_kernel_bytes: i64,
        /// Category: the kernel's reserve (the paper's lotsfree), which is the sum of the zones' high
        /// watermarks.
        reserve_bytes: Option<i64>,
        /// Category: page cache of files that are open or mapped in active processes, without the pages that
        /// these processes map.
        file_cache_bytes: i64,
        /// Category: memory of active processes. It is their proportional anonymous and shared memory, plus
        /// the cached pages of the files that they map; each file counts once and in full.
        process_bytes: i64,
        /// Category: memory lent to other hosts.
        guest_bytes: i64,
        /// Category: all remaining memory, which the owner is not using.
        available_bytes: i64,
        /// Physical memory less the sum of the categories: negative where the kernel's figures contradict
        /// each other, else 0. The categories and this correction sum to physical memory.
        category_correction_bytes: i64,
        /// Memory that could be taken now without paging out the owner's pages: MemAvailable (which excludes
        /// ZFS' ARC) less the headroom.
        harvestable_bytes: Option<i64>,
        /// Available memory counted independently, part 1: free memory above the reserve.
        available_free_bytes: i64,
        /// Available memory counted independently, part 2: anonymous memory of inactive processes, as their
        /// own counters state it, and the part of Shmem that active processes do not hold.
        available_idle_process_bytes: i64,
        /// Available memory counted independently, part 3: page cache on the kernel's file LRU lists that
        /// belongs to no file in use.
        available_unused_cache_bytes: i64,
        /// Available memory counted independently, part 4: kernel memory that can be reclaimed (KReclaimable,
        /// and the part of ZFS' ARC above its minimum size).
        available_reclaimable_kernel_bytes: i64,
        /// `available_bytes` less the four parts above: the difference between the two counts.
        available_residual_bytes: i64,

        /// `MemTotal` of /proc/meminfo.
        mem_total_bytes: i64,
        /// `MemFree` of /proc/meminfo.
        mem_free_bytes: i64,
        /// Free pages on the per-CPU lists (pagesets of /proc/zoneinfo), which MemFree leaves out.
        pcp_free_bytes: Option<i64>,
        /// `MemAvailable` of /proc/meminfo.
        mem_available_bytes: Option<i64>,
        /// Lowest MemAvailable since the previous sample, including this sample; read every five seconds
        /// unless the owner set another interval.
        mem_available_min_bytes: Option<i64>,
        /// `Buffers` of /proc/meminfo.
        buffers_bytes: Option<i64>,
        /// `Cached` of /proc/meminfo (includes Shmem).
        cached_bytes: Option<i64>,
        /// `SwapCached` of /proc/meminfo.
        swap_cached_bytes: Option<i64>,
        /// `AnonPages` of /proc/meminfo.
        anon_bytes: Option<i64>,
        /// `Shmem` of /proc/meminfo.
        shmem_bytes: Option<i64>,
        /// `Mapped` of /proc/meminfo.
        mapped_bytes: Option<i64>,
        /// `Active(file)` of /proc/meminfo.
        active_file_bytes: Option<i64>,
        /// `Inactive(file)` of /proc/meminfo.
        inactive_file_bytes: Option<i64>,
        /// `Unevictable` of /proc/meminfo.
        unevictable_bytes: Option<i64>,
        /// `Dirty` of /proc/meminfo.
        dirty_bytes: Option<i64>,
        /// `Writeback` of /proc/meminfo.
        writeback_bytes: Option<i64>,
        /// `Slab` of /proc/meminfo.
        slab_bytes: Option<i64>,
        /// `KReclaimable` of /proc/meminfo (`SReclaimable` where the kernel lacks it).
        reclaimable_kernel_bytes: Option<i64>,
        /// `KernelStack` of /proc/meminfo.
        kernel_stack_bytes: Option<i64>,
        /// `PageTables` plus `SecPageTables` of /proc/meminfo.
        page_tables_bytes: Option<i64>,
        /// `Percpu` of /proc/meminfo.
        percpu_bytes: Option<i64>,
        /// `VmallocUsed` of /proc/meminfo (includes kernel stacks that are virtually mapped).
        vmalloc_bytes: Option<i64>,
        /// `Hugetlb` of /proc/meminfo: huge pages set aside, used or not.
        hugetlb_bytes: Option<i64>,
        /// `SwapTotal` of /proc/meminfo.
        swap_total_bytes: Option<i64>,
        /// `SwapFree` of /proc/meminfo.
        swap_free_bytes: Option<i64>,
        /// `Zswap` of /proc/meminfo: memory that holds compressed pages.
        zswap_bytes: Option<i64>,

        /// 1-minute load average.
        load1: Option<f64>,
        /// 5-minute load average, used by the idle rule.
        load5: Option<f64>,
        /// 15-minute load average.
        load15: Option<f64>,
        /// Tasks that are running or ready to run.
        running_tasks_count: Option<i64>,
        /// Number of all tasks.
        tasks_count: Option<i64>,
        /// Pressure: total time in which some task waited for memory.
        psi_memory_some_total_us: Option<i64>,
        /// Pressure: total time in which all tasks waited for memory.
        psi_memory_full_total_us: Option<i64>,
        /// Pressure: total time in which some task waited for a CPU.
        psi_cpu_some_total_us: Option<i64>,
        /// Pressure: total time in which some task waited for I/O.
        psi_io_some_total_us: Option<i64>,
        /// File pages read again soon after they were evicted (workingset_refault_file).
        refault_file_total_pages: Option<i64>,
        /// Anonymous pages swapped in soon after they were swapped out (workingset_refault_anon).
        refault_anon_total_pages: Option<i64>,
        /// Pages swapped in (pswpin).
        swap_in_total_pages: Option<i64>,
        /// Pages swapped out (pswpout).
        swap_out_total_pages: Option<i64>,
        /// Major page faults (pgmajfault).
        major_fault_total_count: Option<i64>,

        /// Time since the owner's last activity, according to the source in `activity` that saw activity
        /// last; absent where no source can tell.
        owner_idle_ms: Option<i64>,
        /// Number of processes, kernel threads excluded.
        processes_count: i64,
        /// Number of active processes: those that used CPU since the previous sample, and those that always
        /// count as active (`always_active` in `processes`).
        active_processes_count: i64,

        /// The agent's own cost: CPU time for taking this sample.
        agent_cpu_us: i64,
        /// The agent's own cost: wall time for taking this sample.
        agent_wall_us: i64,
        /// The agent's own cost: its resident memory.
        agent_rss_bytes: i64,

        /// `Zswapped` of /proc/meminfo: uncompressed size of the pages in zswap.
        zswapped_bytes: Option<i64>,
        /// Memory that zram devices hold (`mem_used_total` of their mm_stat).
        zram_bytes: Option<i64>,
        /// Uncompressed size of the pages in zram (`orig_data_size` of mm_stat).
        zram_stored_bytes: Option<i64>,
        /// Size of ZFS' own cache, the ARC; the part above its minimum size counts as reclaimable kernel
        /// memory.
        arc_bytes: Option<i64>,
        /// Minimum size of the ARC (c_min).
        arc_min_bytes: Option<i64>,
        /// Pressure: total time in which all tasks waited for I/O.
        psi_io_full_total_us: Option<i64>,
        /// Pages that kswapd reclaimed (pgsteal_kswapd).
        reclaimed_kswapd_total_pages: Option<i64>,
        /// Pages that processes had to reclaim themselves (pgsteal_direct).
        reclaimed_direct_total_pages: Option<i64>,
        /// Processes killed for lack of memory (oom_kill).
        oom_kill_total_count: Option<i64>,
        /// DAMON's estimate (DAMON_STAT, where the owner permits reading it): a tenth of memory was idle for
        /// at most this time. A negative value means that the memory had been in use for this time.
        damon_idle_p10_ms: Option<i64>,
        /// Like `damon_idle_p10_ms`, for a quarter of memory.
        damon_idle_p25_ms: Option<i64>,
        /// Like `damon_idle_p10_ms`, for half of memory.
        damon_idle_p50_ms: Option<i64>,
        /// Like `damon_idle_p10_ms`, for three quarters of memory.
        damon_idle_p75_ms: Option<i64>,
        /// Like `damon_idle_p10_ms`, for nine tenths of memory.
        damon_idle_p90_ms: Option<i64>,
        /// Part of `load5` caused by Gleaner's daemons and by the processes that hold guests' memory;
        /// estimated from their CPU time. The idle rule uses `load5` less this part.
        guest_load5: Option<f64>,
    }
}

row! {
    /// An active process in one sample.
    ProcessRow = "processes", key ["pid"] {
        /// Process id; with `start_boottime_ms` it identifies a process within a boot.
        pid: i64,
        /// Start of the process, as time since boot.
        start_boottime_ms: i64,
        /// Name of the program (comm).
        name: String,
        /// True if the process counts as active whatever its CPU use (display servers, periodic daemons).
        always_active: bool,
        /// CPU time used since the previous sample; absent if the process did not exist at that sample.
        cpu_ms: Option<i64>,
        /// Resident memory of the process.
        rss_bytes: i64,
        /// Source of the memory columns below. `pss`: smaps_rollup. `pss_reused`: smaps_rollup of one of the
        /// four previous samples, at about the same size (`agent/src/sample/proportional.rs`).
        /// `rss_estimate`: resident sizes from status, which count shared pages in full; used for processes
        /// over 192 MiB, or if smaps_rollup cannot be read.
        memory_source: String,
        /// Proportional anonymous memory: a page that n processes share counts 1/n.
        anon_bytes: Option<i64>,
        /// Proportional file-backed memory.
        file_bytes: Option<i64>,
        /// Proportional shared memory (shmem, tmpfs).
        shmem_bytes: Option<i64>,
        /// Proportional swapped-out memory.
        swap_bytes: Option<i64>,
        /// Resident memory that no other process maps; only with `pss` and `pss_reused`.
        private_bytes: Option<i64>,
        /// Resident memory that other processes map as well; only with `pss` and `pss_reused`.
        shared_bytes: Option<i64>,
        /// The process's control group (cgroup v2), as in `cgroups`.
        cgroup_id: Option<i64>,
    }
}

row! {
    /// A file that is open or mapped in an active process; where the owner lets the agent watch every open,
    /// also a file that any process opened. Only files that changed since the previous sample have a row. A
    /// row with zero processes means that the file is no longer in use.
    FileRow = "files", key ["file_id"] {
        /// Keyed hash of device and inode; the key never leaves the deployment.
        file_id: i64,
        /// Path, where the owner allows it (`privacy = "plain"`).
        path: Option<String>,
        /// Number of active processes that have the file open. A row is written when the number rises from 0
        /// or falls to 0, but not for other changes of the number.
        open_processes_count: i64,
        /// Number of active processes that map the file; the same rule decides when a row is written.
        mapping_processes_count: i64,
        /// Size of the file.
        size_bytes: Option<i64>,
        /// Cached bytes: the file's pages in the page cache.
        cached_bytes: Option<i64>,
        /// Part of `cached_bytes` in ranges that active processes map.
        mapped_cached_bytes: Option<i64>,
        /// Number of opens since the previous sample, where the owner lets the agent watch every open
        /// (fanotify). Several opens by one process between two of the agent's readings count once.
        opens_count: Option<i64>,
    }
}

row! {
    /// State of a source of the owner's activity, written when it changes. Until the source's next row, the
    /// time of its last activity stays the same. Version 1 wrote a row at every sample.
    ActivityRow = "activity", key ["source"] {
        /// Name of the source: `input` (/dev/input), `terminal` (tty access times), `session` (a reporter
        /// inside a desktop session), `logind` (its sessions' idle hints).
        source: String,
        /// Time since the last activity that the source recorded; absent when the state is not `ok`.
        idle_ms: Option<i64>,
        /// `ok`, or the reason why the source cannot tell when the owner was last active: `denied`,
        /// `unsupported`, `malformed`, `vanished`.
        state: String,
        /// Number of devices that the source watches.
        devices_count: i64,
    }
}

row! {
    /// An item that could not be read for a sample, with the reason. A row with reason `vanished` concerns
    /// only its own sample; any other row stays valid until the item's next row. Version 1 wrote a row at
    /// every sample.
    MissingValueRow = "missing_values", key ["item", "reason"] {
        /// Item that is absent: a column of `samples`, or `processes`, `files`, `activity`, `numa_nodes`,
        /// `cgroups`, `opens`, `process_kinds`. Rows of older versions have the names of those versions.
        item: String,
        /// Reason: `vanished`, `denied`, `unsupported`, `malformed`, `contradicted`, `exceeded` (more than a
        /// sample can hold).
        reason: String,
        /// Message of the system at the first such failure.
        detail: String,
        /// Number of failures in this sample; 0 when the item can be read again.
        missing_count: i64,
    }
}

row! {
    /// A time without samples, over which nothing is interpolated. The row's own time is the end of the gap.
    GapRow = "gaps", key [] {
        /// Time of the last sample before the gap.
        from_time_ms: i64,
        /// Time of the first sample after the gap.
        to_time_ms: i64,
        /// Cause: `sleep`, `stopped` (the agent did not run), `boot`, `clock_step`, `late` (the agent got no
        /// CPU), `unwritable` (samples could not be stored), `damaged` (the database was damaged, and a new
        /// one was begun).
        cause: String,
    }
}

row! {
    /// Inventory of the host; a row is written when the agent starts, at the start of each UTC day, and after
    /// each gap.
    HostRow = "hosts", key [], required ["host_name"] {
        /// Name of the host.
        host_name: String,
        /// Release of the kernel.
        kernel_release: String,
        /// Architecture of the machine.
        architecture: String,
        /// Number of CPUs online.
        cpus_count: i64,
        /// Physical memory, as in `samples`.
        physical_bytes: i64,
        /// Size of a page.
        page_size_bytes: i64,
        /// Time between samples, as configured.
        sample_interval_ms: i64,
        /// Headroom subtracted in `harvestable_bytes`, as a share of physical memory.
        headroom_share: f64,
        /// Version of the agent.
        agent_version: String,
        /// Privacy level: `hashed` or `plain`.
        privacy: String,
        /// Operating system and its version.
        os_name: Option<String>,
        /// Model of the CPU.
        cpu_model: Option<String>,
        /// Number of CPU cores; fewer than CPUs where hardware threads share a core.
        cores_count: Option<i64>,
        /// Model of the machine (DMI product name).
        machine_model: Option<String>,
        /// Number of NUMA nodes with memory.
        numa_nodes_count: Option<i64>,
        /// Program or archive from which the trace comes; absent where Gleaner's own agent recorded it.
        source: Option<String>,
    }
}

impl HostRow {
    /// Beginning of `source` for hosts that `gleaner synth` generates; their figures have the same meaning as
    /// an agent's.
    pub const SYNTHETIC: &'static str = "synthetic ";
}

row! {
    /// A NUMA node in one sample, on hosts with several nodes. `samples` has the sums over all nodes; it also
    /// has all figures of a host with a single node.
    NumaNodeRow = "numa_nodes", key ["numa_node"] {
        /// Number of the node.
        numa_node: i64,
        /// `MemTotal` of the node's meminfo.
        mem_total_bytes: i64,
        /// `MemFree` of the node's meminfo.
        mem_free_bytes: i64,
        /// The kernel's reserve: sum of the high watermarks of the node's zones.
        reserve_bytes: Option<i64>,
        /// `Active(file)` of the node's meminfo.
        active_file_bytes: Option<i64>,
        /// `Inactive(file)` of the node's meminfo.
        inactive_file_bytes: Option<i64>,
        /// `AnonPages` of the node's meminfo.
        anon_bytes: Option<i64>,
        /// `Shmem` of the node's meminfo.
        shmem_bytes: Option<i64>,
        /// `Slab` of the node's meminfo.
        slab_bytes: Option<i64>,
        /// `KReclaimable` of the node's meminfo (`SReclaimable` where the kernel lacks it).
        reclaimable_kernel_bytes: Option<i64>,
        /// Huge pages set aside (`HugePages_Total` of the node's meminfo).
        hugetlb_bytes: Option<i64>,
    }
}

row! {
    /// A control group (cgroup v2) of active processes in one sample: the kernel's own account of the group's
    /// memory, descendants included.
    CgroupRow = "cgroups", key ["cgroup_id"] {
        /// Keyed hash of the group's path; the key never leaves the deployment.
        cgroup_id: i64,
        /// Path under the root group, where the owner allows it (`privacy = "plain"`).
        path: Option<String>,
        /// Active processes in the group.
        active_processes_count: i64,
        /// Memory of the group, from memory.current.
        memory_bytes: Option<i64>,
        /// `anon` of memory.stat.
        anon_bytes: Option<i64>,
        /// `file` of memory.stat.
        file_bytes: Option<i64>,
        /// `shmem` of memory.stat (part of `file`).
        shmem_bytes: Option<i64>,
        /// `kernel` of memory.stat.
        kernel_bytes: Option<i64>,
        /// Swap of the group, from memory.swap.current.
        swap_bytes: Option<i64>,
    }
}

row! {
    /// An event on the host at the row's time.
    EventRow = "events", key [] {
        /// Kind: `agent_start`, `agent_stop`, `boot`, `sleep`, `wake`, `clock_step`, `overload` (a sample
        /// took longer than permitted), `missed_sample`, `owner_returned`, `storage_failed`,
        /// `storage_recovered`, `database_damaged`.
        kind: String,
        /// Length of the sleep, of the clock's step (negative: backwards), of the delay, of the owner's
        /// absence, or of the time without storage; `kind` tells which.
        duration_ms: Option<i64>,
        /// Further detail in words, without names of people or files.
        detail: Option<String>,
    }
}

row! {
    /// Comparison of a host's clock with the collector's clock, made when a batch of the host's records
    /// arrived. Only collectors write this table: no host's database has it. The row's time is by the
    /// collector's clock; its sequence is that of the last record that arrived.
    ClockRow = "clocks", key [] {
        /// The host's clock less the collector's: positive where the host's clock is ahead. The batch's time
        /// in transit is included, so that a host with a correct clock has a value slightly below 0.
        skew_ms: i64,
        /// Name of the collector, where several collectors write into one dataset.
        collector: Option<String>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Value;

    #[test]
    fn a_row_comes_back_as_it_went() {
        let row = ProcessRow {
            pid: 7,
            name: "x".into(),
            always_active: true,
            anon_bytes: Some(4096),
            ..Default::default()
        };
        assert_eq!(ProcessRow::from_values(row.to_values()), Some(row.clone()));
        let mut long = row.to_values();
        long.push(Value::Null);
        assert_eq!(ProcessRow::from_values(long), None);
        let mut wrong = row.to_values();
        wrong[0] = Value::Null; // pid may not be absent
        assert_eq!(ProcessRow::from_values(wrong), None);
    }

    #[test]
    fn what_a_dataset_requires_is_a_column_that_agents_always_fill_in() {
        for table in DATASET_TABLES {
            for name in table.required.unwrap_or_default() {
                let column = table.columns.iter().find(|c| c.name == *name);
                assert!(column.is_some_and(|c| !c.nullable), "{}.{name}", table.name);
            }
        }
        let optional = |name| {
            let samples = SampleRow::TABLE;
            let column = samples.columns.iter().find(|c| c.name == name).copied();
            column.map(|c| !samples.is_required(&c))
        };
        assert_eq!(optional("available_bytes"), Some(false));
        assert_eq!(optional("mem_free_bytes"), Some(true));
    }

    #[test]
    fn every_number_says_its_unit() {
        let without_unit: Vec<String> = DATASET_TABLES
            .iter()
            .flat_map(|t| t.columns.iter().map(move |c| (t, c)))
            .filter(|(_, c)| {
                matches!(
                    c.kind,
                    crate::column::Kind::Integer | crate::column::Kind::Real
                ) && c.unit().is_none()
            })
            .map(|(t, c)| format!("{}.{}", t.name, c.name))
            .collect();
        // Identities and shares have no unit.
        assert_eq!(
            without_unit,
            [
                "processes.pid",
                "processes.cgroup_id",
                "files.file_id",
                "hosts.headroom_share",
                "numa_nodes.numa_node",
                "cgroups.cgroup_id"
            ]
        );
    }
}
