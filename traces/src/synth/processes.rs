//! Processes that stay, programs that come and go, and batch work.

use super::dice::Dice;
use super::step::Step;
use super::template::Kind::{self, Batch, Program, Session, System};
use super::template::TEMPLATES;
use super::{MIB, whole_pages};
use gleaner_policy::active::ALWAYS_ACTIVE;
use gleaner_schemas::rows::{CgroupRow, ProcessRow};

/// From this size on the agent takes resident sizes for proportional ones.
const LARGEST_READ_BYTES: i64 = 192 * MIB;
/// Samples for which the agent reuses a proportional size that stays about the same.
const MOST_REUSES: u8 = 4;
/// Share of memory beyond which no program is started: owners notice before their host does.
const MOST_ANON_SHARE: f64 = 0.55;
/// Programs that an owner opens in an hour at the keyboard.
const PROGRAMS_PER_HOUR: f64 = 4.0;
const HOUR_MS: f64 = 3_600_000.0;

/// Control groups: each template's own, but for the session's, which share one.
const SESSION_GROUP: usize = TEMPLATES.len();

#[derive(Clone, Debug)]
struct Process {
    pid: i64,
    started_ms: i64,
    template: usize,
    always_active: bool,
    /// What its anonymous memory moves towards.
    target_bytes: i64,
    anon_bytes: i64,
    file_bytes: i64,
    shmem_bytes: i64,
    swap_bytes: i64,
    /// When it ends, on the wall clock.
    ends_ms: i64,
    /// Whether the sample before had it.
    was_there: bool,
    /// Samples for which its proportional size was reused; none yet read.
    reuses: Option<u8>,
}

/// What processes hold together, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    pub(super) active_anon: i64,
    pub(super) active_shmem: i64,
    /// Proportional file memory of active processes whose sizes were read; the most of any.
    pub(super) active_file: i64,
    pub(super) largest_file: i64,
    pub(super) idle_anon: i64,
    pub(super) shmem: i64,
    pub(super) swap: i64,
    pub(super) count: i64,
    /// CPUs kept busy, on average.
    pub(super) load: f64,
}

impl Held {
    pub(super) fn anon(&self) -> i64 {
        self.active_anon + self.idle_anon
    }
}

/// One host's processes.
#[derive(Debug)]
pub(super) struct Processes {
    /// By pid.
    running: Vec<Process>,
    next_pid: i64,
    group_ids: Vec<i64>,
}

impl Processes {
    pub(super) fn new(dice: &mut Dice) -> Self {
        Self {
            running: Vec::new(),
            next_pid: 0,
            group_ids: (0..=SESSION_GROUP).map(|_| dice.number()).collect(),
        }
    }

    /// Starts what a boot starts, and forgets what ran before it.
    pub(super) fn boot(&mut self, dice: &mut Dice) {
        self.running.clear();
        self.next_pid = 1;
        for (at, template) in TEMPLATES.iter().enumerate() {
            if matches!(template.kind, System | Session) {
                for _ in 0..template.copies {
                    let started_ms = dice.between(500, 15_000);
                    self.start(dice, at, started_ms, i64::MAX);
                }
            }
        }
        for process in &mut self.running {
            process.was_there = true; // the agent looks once before its first sample
        }
    }

    /// Moves on by one step: the active ones' rows, their groups', and what all hold.
    pub(super) fn step(
        &mut self,
        dice: &mut Dice,
        step: &Step<'_>,
    ) -> (Vec<ProcessRow>, Vec<CgroupRow>, Held) {
        self.running.retain(|p| p.ends_ms > step.time_ms);
        self.begin(dice, step);
        let mut held = Held {
            count: self.running.len() as i64,
            ..Held::default()
        };
        let mut rows = Vec::new();
        for process in &mut self.running {
            let template = &TEMPLATES[process.template];
            let busy = if step.is_present {
                template.busy.0
            } else {
                template.busy.1
            };
            let used_cpu = dice.chance(busy);
            held.shmem += process.shmem_bytes;
            held.swap += process.swap_bytes;
            if used_cpu || process.always_active {
                let cpu_ms = if used_cpu {
                    cpu_ms(dice, template.kind, step.interval_ms)
                } else {
                    0
                };
                held.load += cpu_ms as f64 / step.interval_ms as f64;
                let has_moved = used_cpu && process.grow(dice);
                let row = process.row(has_moved, cpu_ms, self.group_ids[group(process.template)]);
                held.active_anon += process.anon_bytes;
                held.active_shmem += process.shmem_bytes;
                if row.memory_source != "rss_estimate" {
                    held.active_file += process.file_bytes;
                }
                held.largest_file = held.largest_file.max(process.file_bytes);
                rows.push(row);
            } else {
                held.idle_anon += process.anon_bytes;
            }
            process.was_there = true;
        }
        let groups = self.groups(&rows);
        (rows, groups, held)
    }

    /// Pushes up to `bytes` of anonymous memory out, some of each process.
    pub(super) fn swap_out(&mut self, mut bytes: i64) {
        for process in &mut self.running {
            let out = whole_pages((process.anon_bytes / 8).min(bytes));
            process.anon_bytes -= out;
            process.target_bytes -= out;
            process.swap_bytes += out;
            bytes -= out;
        }
    }

    /// Programs that the owner opens, and batch work.
    fn begin(&mut self, dice: &mut Dice, step: &Step<'_>) {
        let hours = step.interval_ms as f64 / HOUR_MS;
        let (present, away) = step.class.batches_per_hour;
        let batches = if step.is_present { present } else { away };
        if dice.chance((batches * hours).min(1.0)) {
            self.open(dice, step, Batch, 0.12);
        }
        let is_first = !self
            .running
            .iter()
            .any(|p| TEMPLATES[p.template].kind == Program);
        let opened = dice.chance((PROGRAMS_PER_HOUR * hours).min(1.0));
        if step.is_present && (is_first || opened) {
            self.open(dice, step, Program, 4.0);
        }
    }

    /// Starts some processes of a template of `kind`, which end after some `hours`.
    fn open(&mut self, dice: &mut Dice, step: &Step<'_>, kind: Kind, hours: f64) {
        let of_kind = || TEMPLATES.iter().enumerate().filter(|(_, t)| t.kind == kind);
        let chosen = dice.between(0, of_kind().count() as i64);
        let Some((at, template)) = of_kind().nth(usize::try_from(chosen).unwrap_or(0)) else {
            return;
        };
        let most_bytes = (step.class.memory_gib * 1024 * MIB) as f64 * MOST_ANON_SHARE;
        let copies = dice.between(1, template.copies + 1);
        for _ in 0..copies {
            let there = self.running.iter().filter(|p| p.template == at).count();
            let held: i64 = self.running.iter().map(|p| p.target_bytes).sum();
            let is_room = (held as f64) + 2.0 * template.anon_mib * (MIB as f64) < most_bytes;
            if there as i64 >= template.copies || !is_room {
                return;
            }
            let age_ms = dice.between(0, step.interval_ms.min(step.boottime_ms));
            let ends_ms = step.time_ms + dice.wait(hours * HOUR_MS) as i64 + 1;
            self.start(dice, at, step.boottime_ms - age_ms, ends_ms);
        }
    }

    fn start(&mut self, dice: &mut Dice, at: usize, started_ms: i64, ends_ms: i64) {
        let template = &TEMPLATES[at];
        let bytes = |mib: f64| whole_pages((mib * MIB as f64) as i64);
        let target_bytes = bytes(
            dice.around(template.anon_mib, 0.5)
                .min(4.0 * template.anon_mib),
        );
        let file_bytes = bytes(template.file_mib * (0.7 + 0.6 * dice.share()));
        self.next_pid += dice.between(1, 40);
        self.running.push(Process {
            pid: self.next_pid,
            started_ms,
            template: at,
            always_active: ALWAYS_ACTIVE.contains(&template.name),
            target_bytes,
            anon_bytes: whole_pages(target_bytes / 2),
            file_bytes,
            shmem_bytes: bytes(template.shmem_mib * dice.share()),
            swap_bytes: 0,
            ends_ms,
            was_there: false,
            reuses: None,
        });
    }

    /// Groups that have an active process.
    fn groups(&self, rows: &[ProcessRow]) -> Vec<CgroupRow> {
        let mut groups: Vec<CgroupRow> = Vec::new();
        for id in rows.iter().filter_map(|row| row.cgroup_id) {
            match groups.iter_mut().find(|group| group.cgroup_id == id) {
                Some(group) => group.active_processes_count += 1,
                None => groups.push(CgroupRow {
                    cgroup_id: id,
                    active_processes_count: 1,
                    ..CgroupRow::default()
                }),
            }
        }
        for group in &mut groups {
            let (mut anon, mut file, mut shmem, mut swap) = (0, 0, 0, 0);
            let of_group =
                |p: &&Process| self.group_ids[self::group(p.template)] == group.cgroup_id;
            for process in self.running.iter().filter(of_group) {
                anon += process.anon_bytes;
                file += process.file_bytes + process.shmem_bytes;
                shmem += process.shmem_bytes;
                swap += process.swap_bytes;
            }
            let kernel = whole_pages(MIB / 4 + anon / 100);
            group.anon_bytes = Some(anon);
            group.file_bytes = Some(file);
            group.shmem_bytes = Some(shmem);
            group.kernel_bytes = Some(kernel);
            group.swap_bytes = Some(swap);
            group.memory_bytes = Some(anon + file + kernel);
        }
        groups.sort_unstable_by_key(|group| group.cgroup_id);
        groups
    }
}

impl Process {
    /// Moves its memory on; whether that changed anything to speak of.
    fn grow(&mut self, dice: &mut Dice) -> bool {
        if dice.chance(0.4) {
            return false;
        }
        let towards = (self.target_bytes - self.anon_bytes) / 4;
        let noise = (self.target_bytes as f64 * 0.05 * (dice.share() - 0.45)) as i64;
        self.anon_bytes = whole_pages((self.anon_bytes + towards + noise).max(MIB / 4));
        true
    }

    fn row(&mut self, has_moved: bool, cpu_ms: i64, group_id: i64) -> ProcessRow {
        let resident_bytes = self.anon_bytes + self.file_bytes + self.shmem_bytes;
        let memory_source = if resident_bytes > LARGEST_READ_BYTES {
            self.reuses = None;
            "rss_estimate"
        } else {
            match &mut self.reuses {
                Some(reuses) if !has_moved && *reuses < MOST_REUSES => {
                    *reuses += 1;
                    "pss_reused"
                }
                reuses => {
                    *reuses = Some(0);
                    "pss"
                }
            }
        };
        // Of what files and shared memory a process has, others have half as well.
        let others_bytes = whole_pages((self.file_bytes + self.shmem_bytes) / 2);
        let rss_bytes = resident_bytes + others_bytes;
        let is_read = self.reuses.is_some();
        let shared_bytes = is_read.then_some(2 * others_bytes);
        ProcessRow {
            pid: self.pid,
            started_ms: self.started_ms,
            name: TEMPLATES[self.template].name.to_owned(),
            always_active: self.always_active,
            cpu_ms: self.was_there.then_some(cpu_ms),
            rss_bytes,
            memory_source: memory_source.to_owned(),
            anon_bytes: Some(self.anon_bytes),
            file_bytes: Some(self.file_bytes),
            shmem_bytes: Some(self.shmem_bytes),
            swap_bytes: Some(self.swap_bytes),
            private_bytes: shared_bytes.map(|shared| rss_bytes - shared),
            shared_bytes,
            cgroup_id: Some(group_id),
        }
    }
}

fn group(template: usize) -> usize {
    if TEMPLATES[template].kind == Session {
        SESSION_GROUP
    } else {
        template
    }
}

/// CPU time of one that used some, in ticks of 10 ms.
fn cpu_ms(dice: &mut Dice, kind: Kind, interval_ms: i64) -> i64 {
    let interval_ms = interval_ms as f64;
    let cpu_ms = match kind {
        System => dice.around(0.0004 * interval_ms, 1.0),
        Session => dice.around(0.002 * interval_ms, 1.2),
        Program => dice.around(0.006 * interval_ms, 1.3),
        Batch => interval_ms * (0.5 + dice.share()),
    };
    let ticks = (cpu_ms.min(2.0 * interval_ms) / 10.0) as i64;
    ticks.max(1) * 10
}
