//! Walks processes: determines the active ones, and divides memory among processes.

use crate::config::Units;
use crate::missing_values::{AbsentValue, MissingValues, Reason};
use crate::read::Tree;
use crate::read::process::{Split, Stat, Statm};
use crate::sample::proportional::{Choice, Reading, Size, choose};
use crate::sample::stat_files::StatFiles;
use gleaner_policy::active::{ALWAYS_ACTIVE, Activity, classify, holds_guests};
use gleaner_schemas::rows::ProcessRow;
use gleaner_schemas::units::{pages_to_bytes, stored, ticks_to_ms};
use rustix::fd::RawFd;
use rustix::io::Errno;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write;

/// CPU ticks used so far, by process id and start time, so that a reused id counts as another process.
pub type CpuTimes = HashMap<(i32, u64), u64>;

/// Detail of the absence of figures that an old kernel does not give for a process.
const OLDER: &str = "status: RssAnon, RssFile and RssShmem are there since Linux 4.5";

/// Detail of the absence if `/proc` shows only a user's own processes (`hidepid=2`, or a unit's `ProtectProc=`): number
/// and memory of the others are unknown.
const HIDDEN: &str =
    "hidepid: other users' processes are hidden; their memory and files count as available";

/// Findings of one walk over the processes.
#[derive(Debug, Default)]
pub struct Processes {
    /// Rows of the active processes.
    pub active: Vec<ProcessRow>,
    /// Number of processes, kernel threads excluded.
    pub count: u64,
    /// CPU times used so far, for the next walk.
    pub cpu_times: CpuTimes,
    /// Resident anonymous memory of processes that are not active and hold no guests' memory.
    pub idle_anon_bytes: u64,
    /// Resident anonymous memory of processes that hold guests' memory.
    pub guest_anon_bytes: u64,
    /// CPU time of our daemons and of processes that hold guests' memory, since the last walk.
    pub guest_cpu_ms: u64,
    /// Controlling terminals, as (major, minor).
    pub terminals: BTreeSet<(u32, u32)>,
}

impl Processes {
    /// Adds the anonymous memory of a process that is not active. The sum saturates, since a captured tree
    /// may contain any value.
    fn add(&mut self, is_guest: bool, anon_pages: u64, page_size_bytes: u64) {
        let sum = if is_guest {
            &mut self.guest_anon_bytes
        } else {
            &mut self.idle_anon_bytes
        };
        *sum = sum.saturating_add(pages_to_bytes(anon_pages, page_size_bytes));
    }
}

/// Walks the processes below a proc root; keeps its buffers between walks.
#[derive(Debug)]
pub struct ProcessWalk {
    units: Units,
    /// Further names of always-active processes.
    always_active: Vec<String>,
    /// Names of third-party memory servers that use the quota.
    guest_processes: Vec<String>,
    walks: u64,
    /// Proportional sizes by process id and start time, for later walks.
    readings: HashMap<(i32, u64), Reading>,
    /// Sizes of idle processes by process id and start time.
    idle_sizes: HashMap<(i32, u64), IdleSize>,
    stat_files: StatFiles,
    path: String,
    text: Vec<u8>,
}

/// An idle process' memory, read again only when `stat` shows that the process did something.
#[derive(Clone, Copy, Debug)]
struct IdleSize {
    /// Resident pages, from `stat`.
    resident_pages: u64,
    /// Anonymous pages, from `statm`.
    anon_pages: u64,
}

/// An active process whose memory is not divided by kind yet.
#[derive(Debug)]
struct ActiveProcess {
    pid: i32,
    started_ticks: u64,
    name: String,
    always_active: bool,
    cpu_ms: Option<u64>,
    size: Size,
}

impl ProcessWalk {
    /// Makes a walk with the host's units, the owner's further names of always-active processes, and the names of
    /// third-party memory servers that use the quota.
    #[must_use]
    pub fn new(units: Units, always_active: Vec<String>, guest_processes: Vec<String>) -> Self {
        Self {
            units,
            always_active,
            guest_processes,
            walks: 0,
            readings: HashMap::new(),
            idle_sizes: HashMap::new(),
            stat_files: StatFiles::default(),
            path: String::new(),
            text: Vec::new(),
        }
    }

    /// Replaces both lists of process names.
    pub(crate) fn set_names(&mut self, always_active: Vec<String>, guest_processes: Vec<String>) {
        self.always_active = always_active;
        self.guest_processes = guest_processes;
    }

    /// Descriptors of files in /proc that stay open between walks.
    pub(crate) fn open_descriptors(&self) -> HashSet<RawFd> {
        self.stat_files.descriptors()
    }

    /// Reads only CPU times, as the baseline of the first walk.
    ///
    /// # Errors
    /// The root cannot be listed.
    pub fn prime(&mut self, proc: &Tree) -> Result<CpuTimes, Errno> {
        let mut times = CpuTimes::new();
        let pids = pids(proc)?;
        self.stat_files.begin(proc, &pids);
        for pid in pids {
            if self.stat_files.read(proc, pid, &mut self.text).is_ok()
                && let Some(stat) = Stat::parse(&self.text)
            {
                times.insert((pid, stat.started_ticks), stat.cpu_ticks);
            }
        }
        Ok(times)
    }

    /// Walks all processes. `before` has the CPU times of the last walk; `always_active` are further always-active
    /// processes.
    ///
    /// # Errors
    /// The root cannot be listed.
    pub fn walk(
        &mut self,
        proc: &Tree,
        before: &CpuTimes,
        always_active: &HashSet<i32>,
        missing_values: &mut MissingValues,
    ) -> Result<Processes, Errno> {
        let mut found = Processes::default();
        let mut active = Vec::new();
        let pids = pids(proc)?;
        // Every PID namespace has a process 1 for as long as it exists. If this process does not see it,
        // processes are hidden.
        if proc.is_procfs() && pids.first() != Some(&1) {
            missing_values.note("processes", AbsentValue::new(Reason::Denied, HIDDEN));
        }
        self.stat_files.begin(proc, &pids);
        for pid in pids {
            let added = self.add(proc, pid, before, always_active.contains(&pid), &mut found);
            active.extend(missing_values.keep("processes", added).flatten());
        }
        self.walks += 1;
        self.readings
            .retain(|process, _| found.cpu_times.contains_key(process));
        self.idle_sizes
            .retain(|process, _| found.cpu_times.contains_key(process));
        let sizes: Vec<_> = active
            .iter()
            .map(|p| {
                (
                    p.size,
                    self.readings.get(&(p.pid, p.started_ticks)).copied(),
                )
            })
            .collect();
        for (process, choice) in active.into_iter().zip(choose(&sizes, self.walks)) {
            let row = self.row(proc, process, choice, missing_values);
            found.active.extend(missing_values.keep("processes", row));
        }
        Ok(found)
    }

    /// Counts a process; returns it if it is active.
    fn add(
        &mut self,
        proc: &Tree,
        pid: i32,
        before: &CpuTimes,
        always_active: bool,
        found: &mut Processes,
    ) -> Result<Option<ActiveProcess>, AbsentValue> {
        self.stat_files
            .read(proc, pid, &mut self.text)
            .map_err(|e| AbsentValue::from_errno("stat", e))?;
        let stat = Stat::parse(&self.text).ok_or_else(|| malformed("stat"))?;
        if stat.is_kernel_thread {
            return Ok(None);
        }
        let Units {
            page_size_bytes,
            ticks_per_second,
        } = self.units;
        let in_ms = |ticks| ticks_to_ms(ticks, ticks_per_second);
        let name = String::from_utf8_lossy(stat.name).into_owned();
        let started_ticks = stat.started_ticks;
        let cpu_ticks = stat.cpu_ticks;
        found.count += 1;
        found.terminals.extend(stat.terminal);
        found.cpu_times.insert((pid, started_ticks), cpu_ticks);

        let process = (pid, started_ticks);
        let ticks_before = before.get(&process).copied();
        let cpu_ms = ticks_before.map(|ticks| in_ms(cpu_ticks.saturating_sub(ticks)));
        let activity = classify(&name, cpu_ms, in_ms(cpu_ticks));
        let always_active = always_active
            || ALWAYS_ACTIVE.contains(&name.as_str())
            || self.always_active.contains(&name);
        let is_guest = holds_guests(&name, &self.guest_processes);
        if is_guest || activity == Activity::Own {
            let used_ms = cpu_ms.unwrap_or(in_ms(cpu_ticks)); // a captured tree may contain any value
            found.guest_cpu_ms = found.guest_cpu_ms.saturating_add(used_ms);
        }
        let is_active =
            !is_guest && (activity.is_active() || (always_active && activity == Activity::Idle));
        let resident_pages = stat.resident_pages;
        if !is_active
            && ticks_before == Some(cpu_ticks)
            && let Some(size) = self.idle_sizes.get(&process)
            && size.resident_pages == resident_pages
        {
            found.add(is_guest, size.anon_pages, page_size_bytes);
            return Ok(None);
        }

        self.read(proc, pid, "statm")
            .map_err(|e| AbsentValue::from_errno("statm", e))?;
        let statm = Statm::parse(&self.text).ok_or_else(|| malformed("statm"))?;
        if !is_active {
            // `shared_pages` are file pages and shared memory; the remaining resident pages are anonymous.
            // The shared memory of idle processes is computed from Shmem as a whole (`sample`), which counts
            // each page once.
            let anon_pages = statm.resident_pages.saturating_sub(statm.shared_pages);
            found.add(is_guest, anon_pages, page_size_bytes);
            let size = IdleSize {
                resident_pages,
                anon_pages,
            };
            self.idle_sizes.insert(process, size);
            return Ok(None);
        }
        self.idle_sizes.remove(&process);
        Ok(Some(ActiveProcess {
            pid,
            started_ticks,
            name,
            always_active,
            cpu_ms,
            size: Size {
                rss_bytes: pages_to_bytes(statm.resident_pages, page_size_bytes),
                shared_bytes: pages_to_bytes(statm.shared_pages, page_size_bytes),
            },
        }))
    }

    fn row(
        &mut self,
        proc: &Tree,
        process: ActiveProcess,
        choice: Choice,
        missing_values: &mut MissingValues,
    ) -> Result<ProcessRow, AbsentValue> {
        let (memory_source, split) = match choice {
            Choice::Reuse(split) => ("pss_reused", split),
            Choice::Read => match self.read_split(proc, &process, missing_values) {
                Some(split) => ("pss", split),
                None => (
                    "rss_estimate",
                    self.estimate(proc, &process, missing_values)?,
                ),
            },
            Choice::Estimate => (
                "rss_estimate",
                self.estimate(proc, &process, missing_values)?,
            ),
        };
        let start_boottime_ms = ticks_to_ms(process.started_ticks, self.units.ticks_per_second);
        Ok(ProcessRow {
            pid: i64::from(process.pid),
            start_boottime_ms: stored(start_boottime_ms),
            name: process.name,
            always_active: process.always_active,
            cpu_ms: process.cpu_ms.map(stored),
            rss_bytes: stored(process.size.rss_bytes),
            memory_source: memory_source.to_owned(),
            anon_bytes: split.anon_bytes.map(stored),
            file_bytes: split.file_bytes.map(stored),
            shmem_bytes: split.shmem_bytes.map(stored),
            swap_bytes: split.swap_bytes.map(stored),
            private_bytes: split.private_bytes.map(stored),
            shared_bytes: split.shared_bytes.map(stored),
            cgroup_id: None, // set by `cgroups`
        })
    }

    /// Reads proportional sizes and keeps them for later walks.
    fn read_split(
        &mut self,
        proc: &Tree,
        process: &ActiveProcess,
        missing_values: &mut MissingValues,
    ) -> Option<Split> {
        match self.read(proc, process.pid, "smaps_rollup") {
            Ok(()) => {}
            // Either the process is ending and has no memory, or an old kernel lacks the file; `status` shows
            // which.
            Err(Errno::SRCH | Errno::NOENT) => return None,
            Err(e) => {
                missing_values.note("processes", AbsentValue::from_errno("smaps_rollup", e));
                return None;
            }
        }
        let split = Split::from_smaps_rollup(&self.text)?;
        let reading = Reading {
            walk: self.walks,
            size: process.size,
            split,
        };
        self.readings
            .insert((process.pid, process.started_ticks), reading);
        Some(split)
    }

    /// Estimates a process' memory from resident sizes, in which shared pages count in full.
    fn estimate(
        &mut self,
        proc: &Tree,
        process: &ActiveProcess,
        missing_values: &mut MissingValues,
    ) -> Result<Split, AbsentValue> {
        self.read(proc, process.pid, "status")
            .map_err(|e| AbsentValue::from_errno("status", e))?;
        if let Some(split) = Split::from_status(&self.text) {
            return Ok(split);
        }
        let Size {
            rss_bytes,
            shared_bytes,
        } = process.size;
        // A zombie, or a process that is ending, has no memory lines: it counts as vanished.
        let older = Split::from_older_status(&self.text, rss_bytes, shared_bytes)
            .ok_or_else(|| AbsentValue::new(Reason::Vanished, "status: no memory"))?;
        missing_values.note(
            "process_kinds",
            AbsentValue::new(Reason::Unsupported, OLDER),
        );
        Ok(older)
    }

    fn read(&mut self, proc: &Tree, pid: i32, file: &str) -> Result<(), Errno> {
        self.path.clear();
        let _ = write!(self.path, "{pid}/{file}"); // writing to a String cannot fail
        if file == "status" {
            proc.read(&self.path, &mut self.text) // lists groups, which may be thousands
        } else {
            proc.read_record(&self.path, &mut self.text)
        }
    }
}

fn pids(proc: &Tree) -> Result<Vec<i32>, Errno> {
    let mut pids = Vec::with_capacity(512);
    for entry in proc.list(".")? {
        pids.extend(crate::read::number::<i32>(entry?.file_name().to_bytes()));
    }
    pids.sort_unstable(); // captured trees list in any order
    Ok(pids)
}

fn malformed(file: &str) -> AbsentValue {
    AbsentValue::new(Reason::Malformed, file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn write(proc: &Path, cpu_ticks: u64, resident_pages: u64, statm: &str) {
        write_named(proc, 7, "sleepd", cpu_ticks, resident_pages, statm);
    }

    fn write_named(
        proc: &Path,
        pid: u32,
        name: &str,
        cpu_ticks: u64,
        resident_pages: u64,
        statm: &str,
    ) {
        let folder = proc.join(pid.to_string());
        std::fs::create_dir_all(&folder).unwrap();
        let stat = format!(
            "{pid} ({name}) S 1 7 7 0 -1 64 0 0 0 0 {cpu_ticks} 0 0 0 20 0 1 0 50 900 {resident_pages} 0\n"
        );
        std::fs::write(folder.join("stat"), stat).unwrap();
        std::fs::write(folder.join("statm"), statm).unwrap();
    }

    #[test]
    fn statm_of_an_idle_process_is_read_again_only_when_stat_changed() {
        let dir = tempfile::tempdir().unwrap();
        let units = Units {
            page_size_bytes: 4096,
            ticks_per_second: 1000,
        };
        let mut walk = ProcessWalk::new(units, Vec::new(), Vec::new());
        let mut times = CpuTimes::from([((7, 50), 30)]);
        // Each row: CPU ticks, resident pages, contents of statm; expected anonymous pages of idle processes.
        for (ticks, resident, statm, expected) in [
            (30, 100, "900 100 40 1 0 1 0", 60),
            (30, 100, "900 100 90 1 0 1 0", 60), // `stat` is the same: statm is not read
            (30, 101, "900 101 91 1 0 1 0", 10),
            (31, 101, "900 101 31 1 0 1 0", 0),  // active
            (31, 101, "900 101 21 1 0 1 0", 80), // statm is read: it may have changed while active
        ] {
            write(dir.path(), ticks, resident, statm);
            let proc = Tree::open(dir.path()).unwrap();
            let mut missing_values = MissingValues::default();
            let found = walk
                .walk(&proc, &times, &HashSet::new(), &mut missing_values)
                .unwrap();
            assert_eq!(found.idle_anon_bytes, expected * 4096, "{ticks} {statm}");
            times = found.cpu_times;
        }
    }

    #[test]
    fn guests_memory_counts_once_and_makes_no_server_active() {
        let dir = tempfile::tempdir().unwrap();
        let units = Units {
            page_size_bytes: 4096,
            ticks_per_second: 1000,
        };
        let guests = vec!["memcached".to_owned()];
        let mut walk = ProcessWalk::new(units, vec!["memcached".to_owned()], guests);
        let mut times = CpuTimes::new();
        // In the second walk nothing has changed, and the sizes of the first are reused.
        for (ticks, guest_cpu_ms) in [(30, 90), (30, 0), (90, 180)] {
            for (pid, name, anon) in [
                (1, "init", 5),
                (2, "gleaner-memoryd", 600),
                (3, "memcached", 70),
                (4, "gleaner-agent", 8),
            ] {
                let statm = format!("900 {} 40 1 0 1 0", anon + 40);
                write_named(dir.path(), pid, name, ticks, anon + 40, &statm);
                times
                    .entry((i32::try_from(pid).unwrap(), 50))
                    .or_insert(if name == "init" { ticks } else { 0 });
            }
            times.insert((1, 50), ticks);
            let proc = Tree::open(dir.path()).unwrap();
            let mut missing_values = MissingValues::default();
            let found = walk
                .walk(&proc, &times, &HashSet::from([3]), &mut missing_values)
                .unwrap();
            assert_eq!(found.active.len(), 0, "{ticks} {:?}", found.active);
            assert_eq!(found.guest_anon_bytes, 670 * 4096, "{ticks}");
            assert_eq!(found.idle_anon_bytes, 13 * 4096, "{ticks}");
            assert_eq!(found.guest_cpu_ms, guest_cpu_ms, "{ticks}");
            times = found.cpu_times;
        }
    }
}
