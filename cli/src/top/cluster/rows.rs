//! Hosts of the list, their order, and their sums.

use crate::top::args::Column;
use gleaner_collector::ask::{GroupTotals, HostStatus, State, Status};
use gleaner_schemas::commons::CommonsView;
use gleaner_schemas::live::HostState;
use serde::Serialize;
use std::cmp::{Ordering, Reverse};

/// A host of the fleet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Row {
    pub(super) host_id: String,
    pub(super) host_name: Option<String>,
    pub(super) state: State,
    /// True if the host does not report; its figures are old and count in no sum.
    pub(super) is_silent: bool,
    /// Last sample; null if there is none yet.
    pub(super) sample: Option<Sample>,
}

/// Memory and owner at the last sample.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Sample {
    /// Time on the host's clock, ms since 1970-01-01 UTC.
    pub(super) time_ms: i64,
    /// Age on the collector's clock, corrected by the host's clock error, in ms.
    pub(super) age_ms: i64,
    pub(super) physical_bytes: u64,
    /// Kernel memory: static, dynamic, the reserve, the balloon.
    pub(super) kernel_bytes: u64,
    pub(super) process_bytes: u64,
    pub(super) file_cache_bytes: u64,
    pub(super) guest_bytes: u64,
    pub(super) available_bytes: Option<u64>,
    pub(super) harvestable_bytes: Option<u64>,
    pub(super) quota_bytes: Option<u64>,
    pub(super) idle_quota_bytes: Option<u64>,
    pub(super) owner: Owner,
    /// Length of the idle period until the collector's answer, in ms; only in the state `idle`.
    pub(super) idle_ms: Option<i64>,
    pub(super) owner_idle_ms: Option<i64>,
    pub(super) load5: Option<f64>,
    pub(super) memory_pressure_share: Option<f64>,
}

/// State of the host by the idle rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Owner {
    Idle,
    InUse,
    Loaded,
    Unknown,
}

impl Owner {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::InUse => "in use",
            Self::Loaded => "loaded",
            Self::Unknown => "unknown",
        }
    }
}

impl Row {
    pub(super) fn of(host: HostStatus, now_ms: i64) -> Self {
        let skew_ms = host.known.skew_ms.unwrap_or(0);
        let sample = host.known.memory.map(|memory| {
            let host_now_ms = now_ms.saturating_add(skew_ms);
            let age_ms = host_now_ms.saturating_sub(memory.time_ms).max(0);
            let (owner, idle_ms) = match memory.state {
                HostState::Idle { since_time_ms } => (
                    Owner::Idle,
                    Some(host_now_ms.saturating_sub(since_time_ms).max(0)),
                ),
                HostState::InUse { .. } => (Owner::InUse, None),
                HostState::Loaded => (Owner::Loaded, None),
                HostState::Unknown => (Owner::Unknown, None),
            };
            let figures = memory.figures;
            Sample {
                time_ms: memory.time_ms,
                age_ms,
                physical_bytes: figures.physical_bytes,
                kernel_bytes: figures.kernel_bytes(),
                process_bytes: figures.process_bytes.unwrap_or(0),
                file_cache_bytes: figures.file_cache_bytes.unwrap_or(0),
                guest_bytes: figures.guest_bytes.unwrap_or(0),
                available_bytes: figures.available_bytes,
                harvestable_bytes: memory.harvestable_bytes,
                quota_bytes: memory.quota_bytes,
                idle_quota_bytes: memory.idle_quota_bytes,
                owner,
                idle_ms,
                owner_idle_ms: memory.owner_idle_ms,
                load5: memory.load5,
                memory_pressure_share: memory.memory_pressure_share,
            }
        });
        Self {
            host_id: host.host_id,
            host_name: host.known.host_name,
            state: host.state,
            is_silent: host.is_silent,
            sample,
        }
    }

    /// Name of the host, or its id.
    pub(super) fn name(&self) -> &str {
        self.host_name.as_deref().unwrap_or(&self.host_id)
    }

    /// Last sample of the host, if the host reports.
    pub(super) fn live(&self) -> Option<&Sample> {
        self.sample.as_ref().filter(|_| !self.is_silent)
    }

    fn has(&self, text: &str) -> bool {
        let owner = self.live().map_or("", |sample| sample.owner.word());
        let words = [self.name(), &self.host_id, self.state.word(), owner];
        words.iter().any(|word| word.to_lowercase().contains(text))
    }
}

/// Filter and order of the shown hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) column: Column,
    pub(super) is_reversed: bool,
    pub(super) filter: String,
}

impl Choice {
    /// Indexes of the shown hosts in `rows`.
    pub(super) fn of(&self, rows: &[Row]) -> Vec<usize> {
        let text = self.filter.trim().to_lowercase();
        let mut chosen: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].has(&text)).collect();
        chosen.sort_by(|a, b| {
            let (a, b) = (&rows[*a], &rows[*b]);
            let order = self.compare(a, b);
            let order = if self.is_reversed {
                order.reverse()
            } else {
                order
            };
            order.then_with(|| by_name(a, b))
        });
        chosen
    }

    fn compare(&self, a: &Row, b: &Row) -> Ordering {
        let most = |value: fn(&Sample) -> Option<u64>| {
            // Hosts that do not report come last. They are ordered among themselves by the values in their
            // last sample.
            let of =
                |row: &Row| Reverse((row.live().is_some(), row.sample.as_ref().and_then(value)));
            of(a).cmp(&of(b))
        };
        match self.column {
            Column::Host => by_name(a, b),
            Column::State => a.state.cmp(&b.state),
            Column::Memory => most(|sample| Some(sample.physical_bytes)),
            Column::Available => most(|sample| sample.available_bytes),
            Column::Harvestable => most(|sample| sample.harvestable_bytes),
            Column::Quota => {
                let of = |row: &Row| Reverse(row.live().and_then(|sample| sample.quota_bytes));
                of(a).cmp(&of(b))
            }
            Column::Owner => {
                let of = |row: &Row| {
                    let sample = row.live();
                    Reverse(sample.map(|s| (s.idle_ms, s.owner_idle_ms)))
                };
                of(a).cmp(&of(b))
            }
            Column::Age => {
                let of = |row: &Row| Reverse(row.sample.as_ref().map(|sample| sample.age_ms));
                of(a).cmp(&of(b))
            }
        }
    }
}

fn by_name(a: &Row, b: &Row) -> Ordering {
    (a.name(), &a.host_id).cmp(&(b.name(), &b.host_id))
}

/// Sums over the reporting hosts that have sent a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Totals {
    pub(super) hosts_count: usize,
    pub(super) idle_count: usize,
    pub(super) physical_bytes: u64,
    pub(super) kernel_bytes: u64,
    pub(super) process_bytes: u64,
    pub(super) file_cache_bytes: u64,
    pub(super) guest_bytes: u64,
    pub(super) available_bytes: u64,
    pub(super) harvestable_bytes: u64,
    pub(super) quota_bytes: u64,
    pub(super) idle_quota_bytes: u64,
}

impl Totals {
    pub(super) fn of(rows: &[Row]) -> Self {
        let mut totals = Self::default();
        for sample in rows.iter().filter_map(Row::live) {
            totals.hosts_count += 1;
            totals.idle_count += usize::from(sample.owner == Owner::Idle);
            for (sum, bytes) in [
                (&mut totals.physical_bytes, Some(sample.physical_bytes)),
                (&mut totals.kernel_bytes, Some(sample.kernel_bytes)),
                (&mut totals.process_bytes, Some(sample.process_bytes)),
                (&mut totals.file_cache_bytes, Some(sample.file_cache_bytes)),
                (&mut totals.guest_bytes, Some(sample.guest_bytes)),
                (&mut totals.available_bytes, sample.available_bytes),
                (&mut totals.harvestable_bytes, sample.harvestable_bytes),
                (&mut totals.quota_bytes, sample.quota_bytes),
                (&mut totals.idle_quota_bytes, sample.idle_quota_bytes),
            ] {
                *sum = sum.saturating_add(bytes.unwrap_or(0));
            }
        }
        totals
    }
}

/// A collector's parsed answer.
#[derive(Clone, Debug)]
pub(super) struct Fleet {
    /// Time on the collector's clock when it answered.
    pub(super) time_ms: i64,
    pub(super) version: String,
    pub(super) is_well: bool,
    /// Severity and text of the problems, worst first.
    pub(super) problems: Vec<(&'static str, String)>,
    /// Number of hosts in each state, worst first.
    pub(super) states: Vec<(State, u64)>,
    pub(super) totals: Totals,
    /// Sums over all collectors of the dataset that answer; `None` if the collector has no peers.
    pub(super) group: Option<GroupTotals>,
    /// Commonses of the recruiter, or the reason why they are unknown; `None` if no recruiter was named.
    pub(super) commonses: Option<Result<Vec<CommonsView>, String>>,
    pub(super) rows: Vec<Row>,
}

impl Fleet {
    pub(super) fn of(status: Status) -> Self {
        let problems = status.problem_lines();
        let problems = problems.map(|(severity, text)| (severity, text.to_owned()));
        let problems = problems.collect();
        let states = State::ALL.map(|state| (state, status.in_state(state)));
        let now_ms = status.time_ms;
        let group = GroupTotals::of(&status.collectors);
        let rows: Vec<Row> = status
            .hosts
            .into_iter()
            .map(|host| Row::of(host, now_ms))
            .collect();
        Self {
            time_ms: now_ms,
            version: status.version,
            is_well: status.is_well,
            problems,
            states: states.into_iter().filter(|(_, count)| *count > 0).collect(),
            totals: Totals::of(&rows),
            group: Some(group).filter(|group| group.collectors_count > 1),
            commonses: None,
            rows,
        }
    }
}
