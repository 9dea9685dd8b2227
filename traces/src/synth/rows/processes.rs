//! Running programs as rows of active processes and of their control groups.

use super::SampleMoment;
use crate::synth::dice::Dice;
use crate::synth::life::{Origin, Running};
use crate::synth::{MIB, whole_pages};
use gleaner_policy::active::ALWAYS_ACTIVE;
use gleaner_schemas::rows::{CgroupRow, ProcessRow};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Resident size above which the agent does not read a process's proportional size, but takes the resident size.
const LARGEST_READ_BYTES: i64 = 192 * MIB;
/// Maximum number of consecutive samples for which the agent reuses a proportional size that hardly changes.
const MOST_REUSES: u8 = 4;

/// A process that the agent knows, with the content of its rows.
#[derive(Clone, Debug)]
struct KnownProcess {
    number: u64,
    pid: i64,
    always_active: bool,
    group_id: i64,
    /// True if the agent has seen the process at an earlier sample; only then is its CPU time known.
    was_there: bool,
    /// Number of samples that have reused the proportional size; absent before its first reading.
    reuses: Option<u8>,
}

/// Memory of all processes, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessTotals {
    pub(crate) active_anon: i64,
    pub(crate) active_shmem: i64,
    /// File pages that active processes map.
    pub(crate) mapped: i64,
    /// Memory that the other processes would have if all of it were resident.
    pub(crate) idle: i64,
    /// Memory of active processes that is paged out.
    pub(crate) out: i64,
    pub(crate) count: i64,
}

/// Memory of one process, by kind, in bytes.
#[derive(Clone, Copy, Debug)]
struct Parts {
    anon: i64,
    file: i64,
    shmem: i64,
}

impl Parts {
    fn of(running: &Running) -> Self {
        let bytes = running.resident_bytes;
        let (file_share, shmem_share) = match running.origin {
            Origin::Daemon if running.number == 0 => (0.3, 0.1),
            Origin::Daemon => (0.4, 0.0),
            Origin::Program => (0.25, 0.02),
            Origin::Job => (0.06, 0.0),
        };
        let part = |share: f64| whole_pages((bytes as f64 * share) as i64);
        let (file, shmem) = (part(file_share), part(shmem_share));
        Self {
            anon: bytes - file - shmem,
            file,
            shmem,
        }
    }
}

/// A host's processes, with the content of their rows.
#[derive(Debug)]
pub(crate) struct ProcessRows {
    /// Processes, ordered by number and by pid alike.
    known: Vec<KnownProcess>,
    next_pid: i64,
    /// Ids of control groups, by name; `None` if the host has no groups.
    group_ids: Option<BTreeMap<Arc<str>, i64>>,
}

impl ProcessRows {
    pub(crate) fn new(has_groups: bool) -> Self {
        Self {
            known: Vec::new(),
            next_pid: 1,
            group_ids: has_groups.then(BTreeMap::new),
        }
    }

    /// Forgets the processes of the previous boot, and notes the running ones: the agent reads all processes
    /// once before its first sample.
    pub(crate) fn boot(&mut self, dice: &mut Dice, running: &[Running]) {
        self.known.clear();
        self.next_pid = 1;
        for one in running {
            self.learn(dice, one, true);
        }
    }

    fn learn(&mut self, dice: &mut Dice, running: &Running, was_there: bool) {
        let group_id = self.group_ids.as_mut().map_or(0, |ids| {
            let id = ids.entry(running.name.clone());
            *id.or_insert_with(|| dice.number())
        });
        self.known.push(KnownProcess {
            number: running.number,
            pid: self.next_pid,
            always_active: ALWAYS_ACTIVE.contains(&&*running.name),
            group_id,
            was_there,
            reuses: None,
        });
        self.next_pid += dice.between(1, 40);
    }

    /// Rows of the active processes and of their groups, and the memory of all processes.
    pub(crate) fn step(
        &mut self,
        dice: &mut Dice,
        at: &SampleMoment,
        running: &[Running],
    ) -> (Vec<ProcessRow>, Vec<CgroupRow>, ProcessTotals) {
        let mut still = running.iter().map(|r| r.number).peekable();
        self.known.retain(|known| {
            while still.next_if(|number| *number < known.number).is_some() {}
            still.peek() == Some(&known.number)
        });
        let new = running.get(self.known.len()..).unwrap_or_default();
        for one in new {
            self.learn(dice, one, false);
        }
        let booted_ms = at.time_ms - at.boottime_ms;
        let mut held = ProcessTotals {
            count: running.len() as i64,
            ..ProcessTotals::default()
        };
        let mut rows = Vec::with_capacity(running.len());
        for (known, one) in self.known.iter_mut().zip(running) {
            if one.is_active {
                let parts = Parts::of(one);
                held.active_anon += parts.anon;
                held.active_shmem += parts.shmem;
                held.mapped += parts.file;
                held.out += one.bytes - one.resident_bytes;
                let cpu_ms = cpu_ms(dice, one, at);
                let mut row = known.row(one, parts, cpu_ms);
                row.start_boottime_ms = (one.started_ms - booted_ms).clamp(0, at.boottime_ms);
                row.cgroup_id = self.group_ids.is_some().then_some(known.group_id);
                rows.push(row);
            } else {
                held.idle += one.bytes;
            }
            known.was_there = true;
        }
        let groups = match &self.group_ids {
            Some(_) => self.groups(&rows, running),
            None => Vec::new(),
        };
        (rows, groups, held)
    }

    /// Rows of the control groups that have an active process.
    fn groups(&self, rows: &[ProcessRow], running: &[Running]) -> Vec<CgroupRow> {
        let mut groups: BTreeMap<i64, CgroupRow> = BTreeMap::new();
        for id in rows.iter().filter_map(|row| row.cgroup_id) {
            let group = groups.entry(id).or_insert_with(|| CgroupRow {
                cgroup_id: id,
                anon_bytes: Some(0),
                file_bytes: Some(0),
                shmem_bytes: Some(0),
                swap_bytes: Some(0),
                ..CgroupRow::default()
            });
            group.active_processes_count += 1;
        }
        for (known, one) in self.known.iter().zip(running) {
            let Some(group) = groups.get_mut(&known.group_id) else {
                continue;
            };
            let parts = Parts::of(one);
            let add = |sum: &mut Option<i64>, bytes| *sum = sum.map(|sum| sum + bytes);
            add(&mut group.anon_bytes, parts.anon);
            add(&mut group.file_bytes, parts.file + parts.shmem);
            add(&mut group.shmem_bytes, parts.shmem);
            add(&mut group.swap_bytes, one.bytes - one.resident_bytes);
        }
        for group in groups.values_mut() {
            let anon = group.anon_bytes.unwrap_or(0);
            let kernel = whole_pages(MIB / 4 + anon / 100);
            group.kernel_bytes = Some(kernel);
            group.memory_bytes = group.file_bytes.map(|file| anon + file + kernel);
        }
        groups.into_values().collect()
    }
}

impl KnownProcess {
    fn row(&mut self, running: &Running, parts: Parts, cpu_ms: i64) -> ProcessRow {
        let memory_source = if running.resident_bytes > LARGEST_READ_BYTES {
            self.reuses = None;
            "rss_estimate"
        } else {
            match &mut self.reuses {
                Some(reuses) if *reuses < MOST_REUSES => {
                    *reuses += 1;
                    "pss_reused"
                }
                reuses => {
                    *reuses = Some(0);
                    "pss"
                }
            }
        };
        // Half of a process's file and shared memory is mapped by other processes, too.
        let others_bytes = whole_pages((parts.file + parts.shmem) / 2);
        let rss_bytes = running.resident_bytes + others_bytes;
        let shared_bytes = self.reuses.is_some().then_some(2 * others_bytes);
        ProcessRow {
            pid: self.pid,
            start_boottime_ms: 0,
            name: running.name.to_string(),
            always_active: self.always_active,
            cpu_ms: self.was_there.then_some(cpu_ms),
            rss_bytes,
            memory_source: memory_source.to_owned(),
            anon_bytes: Some(parts.anon),
            file_bytes: Some(parts.file),
            shmem_bytes: Some(parts.shmem),
            swap_bytes: Some(running.bytes - running.resident_bytes),
            private_bytes: shared_bytes.map(|shared| rss_bytes - shared),
            shared_bytes,
            cgroup_id: None,
        }
    }
}

/// CPU time since the previous sample, in ms: a whole number of ticks of 10 ms, at least one.
fn cpu_ms(dice: &mut Dice, running: &Running, at: &SampleMoment) -> i64 {
    let interval_ms = at.interval_ms as f64;
    let cpu_ms = match running.origin {
        Origin::Daemon => dice.around(0.0004 * interval_ms, 1.0),
        Origin::Program if at.is_present => dice.around(0.004 * interval_ms, 1.3),
        Origin::Program => dice.around(0.0005 * interval_ms, 1.0),
        Origin::Job => running.load * interval_ms * (0.9 + 0.1 * dice.share()),
    };
    let ticks = (cpu_ms.min(4.0 * interval_ms) / 10.0) as i64;
    ticks.max(1) * 10
}
