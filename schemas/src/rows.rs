//! Every table that a host records, each column declared once.
//!
//! A *record* is a sample with all its rows, a gap, a change of the inventory, or an event. It takes one sequence number of its database, and (host id, database id,
//! sequence) names it for good: delivering a record twice changes nothing.
//!
//! A value that could not be read is absent, and a row of `absences` says why; never 0 instead.
//! Kernel counters that only grow (`…_total_…`) are stored as read: differences are the reader's,
//! and hold inside one boot (`boot_id`) only.

use crate::column::{Row, Table};
use crate::row;

/// The tables that a host records, in the order in which they are created and documented.
pub const TABLES: [Table; 10] = [
    SampleRow::TABLE,
    ProcessRow::TABLE,
    FileRow::TABLE,
    ActivityRow::TABLE,
    AbsenceRow::TABLE,
    GapRow::TABLE,
    HostRow::TABLE,
    NodeRow::TABLE,
    CgroupRow::TABLE,
    EventRow::TABLE,
];

/// All tables of a dataset: the records of hosts, and after them the collector's additions.
pub const DATASET_TABLES: [Table; 11] = {
    let mut all = [ClockRow::TABLE; TABLES.len() + 1];
    let mut at = 0;
    while at < TABLES.len() {
        all[at] = TABLES[at];
        at += 1;
    }
    all
};

/// The table called `name`, of a dataset's.
#[must_use]
pub fn table(name: &str) -> Option<Table> {
    DATASET_TABLES.into_iter().find(|t| t.name == name)
}

row! {
    /// One sample of a host: memory by category, the kernel's own figures, load, activity, cost.
    SampleRow = "samples", key [], required ["files_whole", "physical_bytes", "available_bytes"] {
        /// Boot that the sample belongs to (`/proc/sys/kernel/random/boot_id`, hashed).
        boot_id: Option<String>,
        /// Time since boot, suspend included (CLOCK_BOOTTIME); of a captured tree by its `uptime`, absent where it has none.
        boottime_ms: Option<i64>,
        /// Time since the sample before it (CLOCK_BOOTTIME); absent for the first and after a gap.
        interval_ms: Option<i64>,
        /// True if the rows in `files`, `activity` and `absences` are the whole state rather than the changes
        /// since the sample before.
        files_whole: bool,

        /// Physical memory: System RAM of /proc/iomem, or /proc/zoneinfo's present pages where they agree with MemTotal; MemTotal plus balloon where neither can be had. The categories below sum to it.
        physical_bytes: i64,
        /// Category: memory the kernel took before MemTotal was counted (its image, struct pages): physical − MemTotal − balloon.
        static_kernel_bytes: Option<i64>,
        /// Category: memory the hypervisor's balloon holds.
        balloon_bytes: i64,
        /// Category: kernel memory that cannot be reclaimed: slab, page tables, per-CPU, vmalloc, stacks, huge pages set aside, and what MemTotal leaves unexplained, less what ZFS' ARC holds above its least size.
        dynamic_kernel_bytes: i64,
        /// Category: the kernel's reserve, the paper's lotsfree: sum of the zones' high watermarks.
        lotsfree_bytes: Option<i64>,
        /// Category: page cache of files open or mapped in active processes, without the pages they map.
        file_cache_bytes: i64,
        /// Category: memory of active processes: proportional anonymous and shared memory, and the cached pages of files they map, each file once and whole.
        process_bytes: i64,
        /// Category: memory lent to other hosts.
        guest_bytes: i64,
        /// Category: the rest: what the owner is not using.
        available_bytes: i64,
        /// Excess of the categories over physical memory (negative), where the kernel's figures contradict each other; else 0.
        remainder_bytes: i64,
        /// Memory that could be taken now without pushing the owner's pages out: MemAvailable (which leaves ZFS' ARC out) less the headroom.
        harvestable_bytes: Option<i64>,
        /// Available summed independently, part 1: free memory above the reserve.
        available_free_bytes: i64,
        /// Part 2: processes that are not active: anonymous memory by their own counters, and of Shmem what active processes do not hold.
        available_idle_process_bytes: i64,
        /// Part 3: page cache on the kernel's file LRU lists that belongs to no file in use.
        available_unused_cache_bytes: i64,
        /// Part 4: kernel memory that can be reclaimed (KReclaimable, and what ZFS' ARC holds above its least size).
        available_reclaimable_kernel_bytes: i64,
        /// available_bytes less the four parts: how far the two ways to count differ.
        available_residual_bytes: i64,

        /// MemTotal of /proc/meminfo.
        mem_total_bytes: i64,
        /// MemFree.
        mem_free_bytes: i64,
        /// Free pages on the per-CPU lists (pagesets of /proc/zoneinfo), which MemFree leaves out.
        pcp_free_bytes: Option<i64>,
        /// MemAvailable.
        mem_available_bytes: Option<i64>,
        /// Lowest MemAvailable read since the sample before, this one's included: every five seconds, unless the owner set another interval.
        mem_available_min_bytes: Option<i64>,
        /// Buffers.
        buffers_bytes: Option<i64>,
        /// Cached (holds Shmem).
        cached_bytes: Option<i64>,
        /// SwapCached.
        swap_cached_bytes: Option<i64>,
        /// AnonPages.
        anon_bytes: Option<i64>,
        /// Shmem.
        shmem_bytes: Option<i64>,
        /// Mapped.
        mapped_bytes: Option<i64>,
        /// Active(file).
        active_file_bytes: Option<i64>,
        /// Inactive(file).
        inactive_file_bytes: Option<i64>,
        /// Unevictable.
        unevictable_bytes: Option<i64>,
        /// Dirty.
        dirty_bytes: Option<i64>,
        /// Writeback.
        writeback_bytes: Option<i64>,
        /// Slab.
        slab_bytes: Option<i64>,
        /// KReclaimable (SReclaimable where the kernel does not say).
        reclaimable_kernel_bytes: Option<i64>,
        /// KernelStack.
        kernel_stack_bytes: Option<i64>,
        /// PageTables and SecPageTables.
        page_tables_bytes: Option<i64>,
        /// Percpu.
        percpu_bytes: Option<i64>,
        /// VmallocUsed (holds the kernel stacks where they are virtually mapped).
        vmalloc_bytes: Option<i64>,
        /// Hugetlb: huge pages set aside, used or not.
        hugetlb_bytes: Option<i64>,
        /// SwapTotal.
        swap_total_bytes: Option<i64>,
        /// SwapFree.
        swap_free_bytes: Option<i64>,
        /// Zswap: memory that holds compressed pages.
        zswap_bytes: Option<i64>,

        /// 1-minute load average.
        load1: Option<f64>,
        /// 5-minute load average, the one of the idle rule.
        load5: Option<f64>,
        /// 15-minute load average.
        load15: Option<f64>,
        /// Tasks running or ready to.
        running_count: Option<i64>,
        /// Tasks in all.
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
        refault_file_total_count: Option<i64>,
        /// Anonymous pages swapped in soon after they were swapped out (workingset_refault_anon).
        refault_anon_total_count: Option<i64>,
        /// Pages swapped in (pswpin).
        swap_in_total_count: Option<i64>,
        /// Pages swapped out (pswpout).
        swap_out_total_count: Option<i64>,
        /// Major page faults (pgmajfault).
        major_fault_total_count: Option<i64>,

        /// Time since the owner was last active: the least idle of the sources in `activity`; absent where no source can tell.
        owner_idle_ms: Option<i64>,
        /// Processes in all, kernel threads excluded.
        processes_count: i64,
        /// Processes counted as active: CPU used since the sample before, or of an always-active kind.
        active_processes_count: i64,

        /// The agent's own cost: CPU time that this sample took.
        agent_cpu_us: i64,
        /// The agent's own cost: wall time that this sample took.
        agent_wall_us: i64,
        /// The agent's own cost: its resident memory.
        agent_rss_bytes: i64,

        /// Zswapped: what the pages in zswap take uncompressed.
        zswapped_bytes: Option<i64>,
        /// Memory that zram devices hold (mem_used_total of their mm_stat).
        zram_bytes: Option<i64>,
        /// Bytes of zram's pages uncompressed (orig_data_size).
        zram_stored_bytes: Option<i64>,
        /// ZFS' own cache, the ARC; what exceeds its least size counts as reclaimable kernel memory.
        arc_bytes: Option<i64>,
        /// The ARC's least size (c_min).
        arc_min_bytes: Option<i64>,
        /// Pressure: total time in which all tasks waited for I/O.
        psi_io_full_total_us: Option<i64>,
        /// Pages that kswapd reclaimed (pgsteal_kswapd).
        reclaimed_kswapd_total_count: Option<i64>,
        /// Pages that processes had to reclaim themselves (pgsteal_direct).
        reclaimed_direct_total_count: Option<i64>,
        /// Processes killed for want of memory (oom_kill).
        oom_kill_total_count: Option<i64>,
        /// DAMON's estimate (DAMON_STAT, where the owner lets it be read): a tenth of memory was idle for no longer than this; negative where it was in use for so long.
        damon_idle_p10_ms: Option<i64>,
        /// The same for a quarter of memory.
        damon_idle_p25_ms: Option<i64>,
        /// The same for half of memory.
        damon_idle_p50_ms: Option<i64>,
        /// The same for three quarters of memory.
        damon_idle_p75_ms: Option<i64>,
        /// The same for nine tenths of memory.
        damon_idle_p90_ms: Option<i64>,
        /// Part of `load5` that Gleaner's daemons and processes that hold guests' memory add, from their CPU time: an estimate, and not the owner's. The idle rule goes by the rest.
        guest_load5: Option<f64>,
    }
}

row! {
    /// One active process in one sample.
    ProcessRow = "processes", key ["pid"] {
        /// Process id; with started_ms it names a process within a boot.
        pid: i64,
        /// Start, as time since boot.
        started_ms: i64,
        /// Name (comm).
        name: String,
        /// True if it counts as active whatever its CPU use (display servers, periodic daemons).
        always_active: bool,
        /// CPU time used since the sample before; absent when it was not there then.
        cpu_ms: Option<i64>,
        /// Resident memory.
        rss_bytes: i64,
        /// Source of the split below: `pss` (smaps_rollup), `pss_reused` (one of the four samples before, at
        /// about the same size: `agent/src/sample/proportional.rs`) or `rss_estimate` (resident sizes from
        /// status, sharers counted in full: processes over 192 MiB, or if smaps_rollup cannot be read).
        memory_source: String,
        /// Proportional anonymous memory.
        anon_bytes: Option<i64>,
        /// Proportional file-backed memory.
        file_bytes: Option<i64>,
        /// Proportional shared memory (shmem, tmpfs).
        shmem_bytes: Option<i64>,
        /// Proportional swapped-out memory.
        swap_bytes: Option<i64>,
        /// Resident memory that no other process maps; with `pss` and `pss_reused` alone.
        private_bytes: Option<i64>,
        /// Resident memory that other processes map as well; with `pss` and `pss_reused` alone.
        shared_bytes: Option<i64>,
        /// Its control group (cgroup v2), as in `cgroups`.
        cgroup_id: Option<i64>,
    }
}

row! {
    /// A file open or mapped in an active process, or opened by any where the owner has every open watched, as far as it changed since the sample before; one that counts nobody when it is no longer.
    FileRow = "files", key ["file_id"] {
        /// Keyed hash of device and inode; the key never leaves the deployment.
        file_id: i64,
        /// Path, where the owner allows it (`privacy = "plain"`).
        path: Option<String>,
        /// Active processes that have it open; a row is written when there come to be some or none, not at every count.
        open_count: i64,
        /// Active processes that map it; the same.
        mapped_count: i64,
        /// Size of the file.
        size_bytes: Option<i64>,
        /// Its pages in the page cache.
        cached_bytes: Option<i64>,
        /// Of those, the pages in ranges that active processes map.
        mapped_cached_bytes: Option<i64>,
        /// Number of times that processes opened it since the sample before, where the owner has every open watched (fanotify); several opens by one process before the agent looked count once.
        opened_count: Option<i64>,
    }
}

row! {
    /// State of one source of the owner's activity, when that is news: until its next row its last activity stays the same moment. Version 1 wrote a row at every sample.
    ActivityRow = "activity", key ["source"] {
        /// Source: `input` (/dev/input), `terminal` (tty access times), `session` (a reporter inside a desktop session), `logind` (its sessions' idle hints).
        source: String,
        /// Time since the last activity it saw; absent when the state is not `ok`.
        idle_ms: Option<i64>,
        /// `ok`, or why it cannot tell: `denied`, `unsupported`, `malformed`, `vanished`.
        state: String,
        /// Number of devices that it watches.
        devices_count: i64,
    }
}

row! {
    /// Items that a sample could not read, with the reason. An item that `vanished` is of that sample alone; all else stands until its next row. Version 1 wrote a row at every sample.
    AbsenceRow = "absences", key ["item", "reason"] {
        /// Item that is absent: a column of `samples`, or `processes`, `files`, `activity`, `nodes`, `cgroups`, `opens`, `process_kinds`.
        item: String,
        /// `vanished`, `denied`, `unsupported`, `malformed`, `contradicted`, `exceeded` (more than a sample holds).
        reason: String,
        /// Message of the system, once.
        detail: String,
        /// Number of times in this sample; 0 when it can be read again.
        absent_count: i64,
    }
}

row! {
    /// A time without samples, which nothing is interpolated across. Its own time is its end.
    GapRow = "gaps", key [] {
        /// Last sample before it.
        from_time_ms: i64,
        /// First sample after it.
        to_time_ms: i64,
        /// `sleep`, `stopped` (the agent did not run), `boot`, `clock_step`, `late` (the agent got no CPU), `unwritable` (samples could not be stored), `damaged` (the database was, and a new one begun).
        cause: String,
    }
}

row! {
    /// The host, written when the agent starts, at each UTC day's start and after each gap.
    HostRow = "hosts", key [], required ["host_name"] {
        /// Host name.
        host_name: String,
        /// Kernel release.
        kernel_release: String,
        /// Machine's architecture.
        architecture: String,
        /// CPUs online.
        cpus_count: i64,
        /// Physical memory, as in `samples`.
        physical_bytes: i64,
        /// Page size.
        page_size_bytes: i64,
        /// Time between samples, as configured.
        sample_interval_ms: i64,
        /// Headroom that `harvestable_bytes` leaves, as a share of physical memory.
        headroom_share: f64,
        /// Version of the agent.
        agent_version: String,
        /// Privacy level: `hashed` or `plain`.
        privacy: String,
        /// Operating system and its version.
        os_name: Option<String>,
        /// CPU model.
        cpu_model: Option<String>,
        /// CPU cores, where threads share one.
        cores_count: Option<i64>,
        /// Model of the machine (DMI product name).
        machine_model: Option<String>,
        /// NUMA nodes with memory.
        nodes_count: Option<i64>,
        /// Program or archive that the trace comes from; absent where Gleaner's own agent recorded it.
        source: Option<String>,
    }
}

impl HostRow {
    /// Begin of the source of hosts that `gleaner synth` makes up; their figures mean what an agent's do.
    pub const SYNTHETIC: &'static str = "synthetic ";
}

row! {
    /// One NUMA node in one sample, on hosts with several; `samples` has the sum, and all figures of a host
    /// with a single node.
    NodeRow = "nodes", key ["node"] {
        /// Number of the node.
        node: i64,
        /// MemTotal of the node's meminfo.
        mem_total_bytes: i64,
        /// MemFree.
        mem_free_bytes: i64,
        /// The kernel's reserve: sum of the high watermarks of the node's zones.
        lotsfree_bytes: Option<i64>,
        /// Active(file).
        active_file_bytes: Option<i64>,
        /// Inactive(file).
        inactive_file_bytes: Option<i64>,
        /// AnonPages.
        anon_bytes: Option<i64>,
        /// Shmem.
        shmem_bytes: Option<i64>,
        /// Slab.
        slab_bytes: Option<i64>,
        /// KReclaimable.
        reclaimable_kernel_bytes: Option<i64>,
        /// Huge pages set aside (HugePages_Total).
        hugetlb_bytes: Option<i64>,
    }
}

row! {
    /// A control group (cgroup v2) of active processes in one sample: the kernel's own account of its memory, descendants included.
    CgroupRow = "cgroups", key ["cgroup_id"] {
        /// Keyed hash of its path; the key never leaves the deployment.
        cgroup_id: i64,
        /// Path under the root group, where the owner allows it (`privacy = "plain"`).
        path: Option<String>,
        /// Active processes in it.
        active_processes_count: i64,
        /// memory.current.
        memory_bytes: Option<i64>,
        /// anon of memory.stat.
        anon_bytes: Option<i64>,
        /// file of memory.stat.
        file_bytes: Option<i64>,
        /// shmem of memory.stat (part of file).
        shmem_bytes: Option<i64>,
        /// kernel of memory.stat.
        kernel_bytes: Option<i64>,
        /// memory.swap.current.
        swap_bytes: Option<i64>,
    }
}

row! {
    /// Something that happened on the host at the row's time.
    EventRow = "events", key [] {
        /// `agent_start`, `agent_stop`, `boot`, `sleep`, `wake`, `clock_step`, `overload` (a sample took longer than it may), `missed_sample`, `owner_returned`, `storage_failed`, `storage_recovered`, `database_damaged`.
        kind: String,
        /// Length of the sleep, the clock's step (negative: back), the delay, the owner's absence, the time without storage.
        amount_ms: Option<i64>,
        /// More, in words, without names of people or files.
        detail: Option<String>,
    }
}

row! {
    /// A host's clock beside the collector's, when a batch of its records arrived. Written by collectors: no host's database has it. The time is the collector's, the sequence that of the last record that arrived.
    ClockRow = "clocks", key [] {
        /// The host's clock less the collector's: positive where the host's is ahead. Off by the time that the batch took on its way, so that a host with a right clock shows a little less than 0.
        skew_ms: i64,
        /// Name of the collector, where several write into one dataset.
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
                "nodes.node",
                "cgroups.cgroup_id"
            ]
        );
    }
}
