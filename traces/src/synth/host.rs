//! Generates one host's trace, one record after another.

use super::dice::Dice;
use super::fleet::{Class, Fleet, Habit};
use super::life::{Life, Moment};
use super::power::{Cause, Interruption, interruption};
use super::record::{Record, Rows, SampleRows};
use super::rows::{
    FileRows, HEADROOM_SHARE, Memory, ProcessRows, SampleMoment, Sources, numa_nodes,
};
use super::{MIB, PAGE_BYTES, Parameters};
use gleaner_schemas::rows::{EventRow, GapRow, HostRow, MissingValueRow, SampleRow};
use std::collections::VecDeque;
use std::sync::Arc;

const DAY_MS: i64 = 86_400_000;
/// Time from boot to the agent's first sample.
const BOOT_MS: i64 = 20_000;
/// Time from the host's waking to the first sample.
const WAKE_MS: i64 = 1500;
/// Minimum absence after which the owner's return gives an event: five minutes, as in the idle rule.
const LEAST_AWAY_MS: i64 = 300_000;

/// Generates a host's records one step at a time, in the order of their sequence numbers.
///
/// ```
/// use gleaner_traces::synth::{Cluster, Parameters, Preset};
///
/// let mut parameters = Parameters::of_preset(Preset::Modern, 7)?;
/// parameters.days = 1;
/// let mut host = Cluster::new(&parameters)?.host(0);
/// assert_eq!(host.host_id().len(), 32);
/// assert_eq!(host.next().map(|record| record.sequence), Some(1));
/// # Ok::<(), gleaner_traces::synth::SynthError>(())
/// ```
#[derive(Debug)]
pub struct SyntheticHost {
    index: usize,
    interval_ms: i64,
    end_ms: i64,
    fleet: Arc<Fleet>,
    class: usize,
    habit: Habit,
    dice: Dice,
    host_id: String,
    database_id: String,
    boot_id: String,
    /// Boot time of the host.
    booted_ms: i64,
    /// Start time of the agent; nothing is observed before it.
    agent_ms: i64,
    life: Life,
    processes: ProcessRows,
    files: FileRows,
    mapped_files_bytes: i64,
    memory: Memory,
    sources: Sources,
    last: Option<PreviousSample>,
    next_ms: i64,
    sequence: i64,
    ready: VecDeque<Record>,
}

/// State at the previous sample.
#[derive(Clone, Copy, Debug)]
struct PreviousSample {
    time_ms: i64,
}

impl SyntheticHost {
    pub(super) fn new(parameters: &Parameters, class: usize, index: usize) -> Self {
        let fleet = Arc::clone(&parameters.fleet);
        let of_class = &fleet.classes[class];
        let mut life = parameters.life(of_class, index);
        let mut dice = Dice::new(parameters.seed, Life::stream_of_rows(index));
        let start_ms = parameters.start_ms;
        let (host_id, database_id) = (dice.id(), dice.id());
        // The host boots within one interval after the start of the trace, so that hosts do not all sample at
        // the same moments.
        let longest_ms = parameters.interval_ms.min(DAY_MS - BOOT_MS);
        let booted_ms = start_ms + dice.between(0, longest_ms);
        life.boot(booted_ms);
        let daemons_bytes: i64 = life.running().iter().map(|r| r.bytes).sum();
        let mapped_files_bytes = daemons_bytes / 5;
        let logs = of_class.files.logs_count;
        Self {
            index,
            interval_ms: parameters.interval_ms,
            end_ms: start_ms + i64::from(parameters.days) * DAY_MS,
            habit: if parameters.always_on {
                Habit::On
            } else {
                of_class.habit
            },
            host_id,
            database_id,
            boot_id: String::new(),
            booted_ms,
            agent_ms: booted_ms,
            processes: ProcessRows::new(fleet.system.has_cgroups),
            files: FileRows::new(&mut dice, life.files(), logs, mapped_files_bytes),
            mapped_files_bytes,
            memory: Memory::new(
                &mut dice,
                of_class,
                fleet.system.lotsfree,
                life.static_bytes(),
            ),
            sources: Sources::new(&mut dice),
            life,
            last: None,
            next_ms: booted_ms + BOOT_MS,
            sequence: 0,
            ready: VecDeque::new(),
            dice,
            class,
            fleet,
        }
    }

    fn class(&self) -> &Class {
        &self.fleet.classes[self.class]
    }

    /// Id of the host: 32 hex digits.
    #[must_use]
    pub fn host_id(&self) -> &str {
        &self.host_id
    }

    /// Id of the host's only database: 32 hex digits.
    #[must_use]
    pub fn database_id(&self) -> &str {
        &self.database_id
    }

    /// Time of the next record; `None` at the end of the trace.
    pub fn peek_ms(&mut self) -> Option<i64> {
        self.fill();
        self.ready.front().map(|record| record.time_ms)
    }

    fn fill(&mut self) {
        while self.ready.is_empty() && self.next_ms < self.end_ms {
            self.advance();
            // A time without samples may reach beyond the end of the trace; records after the end are dropped.
            let end = self.ready.iter().position(|r| r.time_ms >= self.end_ms);
            self.ready.truncate(end.unwrap_or(self.ready.len()));
        }
    }

    /// Generates the next sample, and all records that come before it.
    fn advance(&mut self) {
        let Some(last) = self.last else {
            self.boot(self.booted_ms);
            return self.sample(self.next_ms, None, Vec::new());
        };
        let due_ms = self.next_ms;
        let next = self.life.stretch(last.time_ms);
        let last_active_ms = self.life.last_active_ms();
        let span_ms = (last.time_ms, due_ms);
        let habit = self.habit;
        let system = &self.fleet.system;
        match interruption(
            &mut self.dice,
            system,
            habit,
            span_ms,
            &next,
            last_active_ms,
        ) {
            Some(interruption) => self.interrupt(interruption, last.time_ms, due_ms),
            None => self.sample(due_ms, None, Vec::new()),
        }
    }

    /// Generates the records of a time without samples, and the sample after it.
    fn interrupt(&mut self, interruption: Interruption, last_ms: i64, due_ms: i64) {
        let Interruption {
            cause,
            from_ms,
            to_ms,
        } = interruption;
        match cause {
            Cause::Sleep => {
                let now_ms = due_ms.max(to_ms + WAKE_MS);
                let duration_ms = Some(to_ms - from_ms);
                let events = vec![
                    (from_ms, event("sleep", duration_ms, None)),
                    (to_ms, event("wake", duration_ms, None)),
                ];
                // The agent has the same rule: more than two intervals without a sample are a gap.
                let is_gap = now_ms - last_ms > 2 * self.interval_ms;
                self.sample(now_ms, is_gap.then_some("sleep"), events);
            }
            Cause::Off => {
                self.write_event(from_ms, event("agent_stop", None, Some("SIGTERM")));
                self.boot(to_ms);
                self.sample(to_ms + BOOT_MS, Some("boot"), Vec::new());
            }
            Cause::Stopped => {
                self.write_event(from_ms, event("agent_stop", None, Some("SIGTERM")));
                self.start_agent(to_ms);
                self.sample(to_ms + 1, Some("stopped"), Vec::new());
            }
        }
    }

    fn boot(&mut self, booted_ms: i64) {
        self.booted_ms = booted_ms;
        self.boot_id = self.dice.id();
        self.life.boot(booted_ms);
        self.processes.boot(&mut self.dice, self.life.running());
        self.memory.boot();
        let boot_id = self.boot_id.clone();
        self.write_event(booted_ms, event("boot", None, Some(&boot_id)));
        self.start_agent(booted_ms + BOOT_MS - 1);
    }

    fn start_agent(&mut self, time_ms: i64) {
        self.agent_ms = time_ms;
        self.sources.begin(time_ms);
        let version = env!("CARGO_PKG_VERSION");
        self.write_event(time_ms, event("agent_start", None, Some(version)));
    }

    /// Writes the sample at `time_ms`. The gap before it and the events since the previous sample are written first.
    fn sample(&mut self, time_ms: i64, gap: Option<&str>, mut events: Vec<(i64, EventRow)>) {
        let before = self.last;
        let follows = before.filter(|_| gap.is_none());
        let is_whole = follows
            .is_none_or(|before| before.time_ms.div_euclid(DAY_MS) != time_ms.div_euclid(DAY_MS));
        let passed_ms = follows.map(|before| time_ms - before.time_ms);
        let interval_ms = passed_ms.unwrap_or(self.interval_ms);
        let stretch = self.life.stretch(time_ms);
        let left_ms = self.life.last_active_ms();
        let is_present = stretch.from_ms <= time_ms;
        let returned = before.filter(|before| is_present && stretch.from_ms > before.time_ms);
        if returned.is_some() && stretch.from_ms > self.agent_ms {
            let away_ms = stretch.from_ms - left_ms.unwrap_or(0).max(self.agent_ms);
            if away_ms >= LEAST_AWAY_MS {
                let returned = event("owner_returned", Some(away_ms), Some("input"));
                // The event is written at once; only after a sleep it waits, with the other events, for the sample.
                if events.is_empty() {
                    self.write_event(stretch.from_ms, returned);
                } else {
                    events.push((stretch.from_ms, returned));
                }
            }
        }
        let moment = self.life.step(time_ms, interval_ms);
        let at = SampleMoment {
            time_ms,
            boottime_ms: time_ms - self.booted_ms,
            interval_ms,
            is_present: moment.is_present,
            is_whole,
        };
        let rows = self.sample_rows(&at, passed_ms, &moment);
        if let (Some(cause), Some(before)) = (gap, before) {
            let gap = GapRow {
                from_time_ms: before.time_ms,
                to_time_ms: time_ms,
                cause: cause.to_owned(),
            };
            self.write(time_ms, Rows::Gap(gap));
        }
        if is_whole {
            let host = self.host_row(&rows.sample);
            self.write(time_ms, Rows::Host(Box::new(host)));
        }
        for (time_ms, event) in events {
            self.write_event(time_ms, event);
        }
        self.write(time_ms, Rows::Sample(Box::new(rows)));
        self.last = Some(PreviousSample { time_ms });
        // The agent's timer is up to 2 ms early or late each time.
        self.next_ms = time_ms + self.interval_ms + self.dice.between(-2, 3);
    }

    fn sample_rows(
        &mut self,
        at: &SampleMoment,
        passed_ms: Option<i64>,
        moment: &Moment,
    ) -> SampleRows {
        let dice = &mut self.dice;
        let (processes, cgroups, held) = self.processes.step(dice, at, self.life.running());
        let files = self.files.step(dice, at, self.life.files());
        let figures = self
            .memory
            .step(dice, at, moment, &held, self.mapped_files_bytes);
        let (activity, owner_idle_ms) = self.sources.step(dice, at, moment.active_ms);
        let cpu_us = dice.around(5200.0 + 12.0 * held.count as f64, 0.2) as i64;
        let sample = SampleRow {
            boot_id: Some(self.boot_id.clone()),
            interval_ms: passed_ms,
            owner_idle_ms,
            active_processes_count: processes.len() as i64,
            agent_cpu_us: cpu_us,
            agent_wall_us: cpu_us + dice.between(200, 4000),
            agent_rss_bytes: 9 * MIB + PAGE_BYTES * dice.between(0, 200),
            ..figures
        };
        let missing_values = self.missing_values(at);
        SampleRows {
            numa_nodes: if self.class().nodes > 1 {
                numa_nodes(&sample)
            } else {
                Vec::new()
            },
            sample,
            processes,
            files,
            activity,
            missing_values,
            cgroups,
        }
    }

    /// Rows of table `missing_values`. In a complete state they include the values that this host never has.
    /// From time to time, a row counts processes that ended while the agent read them.
    fn missing_values(&mut self, at: &SampleMoment) -> Vec<MissingValueRow> {
        let row = |item: &str, reason: &str, detail: &str, missing_count| MissingValueRow {
            item: item.to_owned(),
            reason: reason.to_owned(),
            detail: detail.to_owned(),
            missing_count,
        };
        let mut rows = Vec::new();
        let missing = self.sources.missing_count();
        if at.is_whole && missing > 0 {
            rows.push(row("activity", "unsupported", "no such source", missing));
        }
        if at.is_whole && !self.memory.has_zswap {
            for item in ["zswap_bytes", "zswapped_bytes"] {
                rows.push(row(item, "unsupported", "the kernel does not give it", 1));
            }
        }
        if self.dice.chance(if at.is_present { 0.15 } else { 0.02 }) {
            let count = self.dice.between(1, 4);
            let detail = "stat: No such process (os error 3)";
            rows.push(row("processes", "vanished", detail, count));
        }
        rows
    }

    fn host_row(&self, sample: &SampleRow) -> HostRow {
        let class = self.class();
        HostRow {
            host_name: format!("synthetic-{:05}", self.index),
            kernel_release: self.fleet.system.kernel_release.clone(),
            architecture: self.fleet.system.architecture.clone(),
            cpus_count: class.cpus,
            physical_bytes: sample.physical_bytes,
            page_size_bytes: PAGE_BYTES,
            sample_interval_ms: self.interval_ms,
            headroom_share: HEADROOM_SHARE,
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
            privacy: "hashed".to_owned(),
            os_name: Some("synthetic".to_owned()),
            cpu_model: Some("synthetic".to_owned()),
            cores_count: Some((class.cpus / 2).max(1)),
            machine_model: Some(format!("synthetic {}", class.name)),
            numa_nodes_count: Some(class.nodes),
            source: Some(format!("{}{}", HostRow::SYNTHETIC, self.fleet.name)),
        }
    }

    fn write_event(&mut self, time_ms: i64, event: EventRow) {
        self.write(time_ms, Rows::Event(event));
    }

    fn write(&mut self, time_ms: i64, rows: Rows) {
        self.sequence += 1;
        self.ready.push_back(Record {
            sequence: self.sequence,
            time_ms,
            rows,
        });
    }
}

impl Iterator for SyntheticHost {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        self.fill();
        self.ready.pop_front()
    }
}

fn event(kind: &str, duration_ms: Option<i64>, detail: Option<&str>) -> EventRow {
    EventRow {
        kind: kind.to_owned(),
        duration_ms,
        detail: detail.map(str::to_owned),
    }
}
