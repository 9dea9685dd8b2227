//! A host over time, as a list of changes.

use gleaner_policy::accounting::Categories;
use gleaner_policy::idle::Verdict;
use gleaner_policy::lending::Event;
use gleaner_policy::memory_context::{Demand, memory_context_bytes};
use gleaner_schemas::lending::Mode;

/// State of a host as regards lending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Presence {
    /// Idle for at least the idle rule's time.
    Idle,
    /// In use, or idle for less than the idle rule's time.
    InUse,
    /// Off, asleep, without samples, or with an owner whose activity is unknown.
    #[default]
    Unseen,
}

/// Quotas of a host, by mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModeQuotas {
    /// Bytes in [`Mode::Paper`].
    pub paper_bytes: u64,
    /// Bytes in [`Mode::Gentle`].
    pub gentle_bytes: u64,
    /// Bytes in [`Mode::Spare`].
    pub spare_bytes: u64,
}

impl ModeQuotas {
    /// Bytes in one mode.
    #[must_use]
    pub const fn bytes(&self, mode: Mode) -> u64 {
        match mode {
            Mode::Paper => self.paper_bytes,
            Mode::Gentle => self.gentle_bytes,
            Mode::Spare => self.spare_bytes,
        }
    }
}

/// Values of a sample on which lending depends, as if nothing had been lent when the sample was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedSample {
    /// Physical memory; if 0, no headroom is kept.
    pub physical_bytes: u64,
    /// Available memory, in bytes.
    pub available_bytes: u64,
    /// MemAvailable, if the kernel reports it.
    pub mem_available_bytes: Option<u64>,
    /// Verdict of the idle rule; its times are ms since the simulation's begin.
    pub verdict: Verdict,
}

impl RecordedSample {
    /// Makes the event that the memory server's `Lender` receives.
    #[must_use]
    pub fn event(&self, headroom_share: f64) -> Event {
        Event::Sample {
            categories: Categories {
                physical_bytes: self.physical_bytes,
                available_bytes: self.available_bytes,
                ..Categories::default()
            },
            mem_available_bytes: self.mem_available_bytes,
            headroom_share,
            verdict: self.verdict,
        }
    }
}

/// Change of a host's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Time of the change, since the simulation's begin.
    pub at_ns: u64,
    /// State of the host from `at_ns` on.
    pub presence: Presence,
    /// Maximum bytes that may be lent; with a forecast, only those that are expected to stay.
    pub quotas: ModeQuotas,
    /// Sample at the change; absent if no sample could be taken, or if an owner came and went between two
    /// samples.
    pub seen: Option<RecordedSample>,
    /// Index in [`Timeline::returns`], if the change ends an idle period.
    pub returned: Option<u32>,
}

impl Change {
    /// Bytes that the host may lend from this change on. A host that is in use lends in the mode `spare` alone, and a
    /// host that nobody has seen lends nothing.
    #[must_use]
    pub fn lent_bytes(&self, mode: Mode) -> u64 {
        let is_lent = match self.presence {
            Presence::Idle => true,
            Presence::InUse => mode == Mode::Spare,
            Presence::Unseen => false,
        };
        if is_lent { self.quotas.bytes(mode) } else { 0 }
    }
}

/// Cause that ended an idle period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Keyboard or mouse activity.
    Owner,
    /// The load rose.
    Load,
}

/// Observed end of an idle period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Return {
    /// Time of the return, since the simulation's begin.
    pub at_ns: u64,
    /// Cause of the return.
    pub cause: Cause,
    /// Memory that the owner needed; absent if sizes are unknown.
    pub wanted: Option<ReturnMemory>,
}

/// Memory that the owner needs at a return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnMemory {
    /// Inputs A, K, M and lotsfree of the memory context, without guest memory.
    pub demand: Demand,
    /// Loose upper bound of the memory context's size.
    pub upper_bound_bytes: u64,
}

impl ReturnMemory {
    /// Memory context size if `guest_bytes` had been lent.
    #[must_use]
    pub const fn memory_context_bytes(&self, guest_bytes: u64) -> u64 {
        memory_context_bytes(&Demand {
            guest_bytes,
            ..self.demand
        })
    }
}

/// State of a host over the time of a simulation. Before its first change the host is unseen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Id in the dataset.
    pub host_id: String,
    /// Physical memory at the last sample.
    pub physical_bytes: u64,
    /// Changes in order of time; no two have the same time.
    pub changes: Vec<Change>,
    /// Observed ends of idle periods, in order of time.
    pub returns: Vec<Return>,
}

impl Timeline {
    /// Timeline of a host that is always idle and can lend `quota_bytes`.
    #[must_use]
    pub fn always_idle(host_id: &str, quota_bytes: u64) -> Self {
        Self {
            host_id: host_id.to_owned(),
            physical_bytes: quota_bytes,
            changes: vec![Change {
                at_ns: 0,
                presence: Presence::Idle,
                quotas: ModeQuotas {
                    paper_bytes: quota_bytes,
                    ..ModeQuotas::default()
                },
                seen: Some(RecordedSample {
                    physical_bytes: 0,
                    available_bytes: quota_bytes,
                    mem_available_bytes: None,
                    verdict: Verdict::Idle { since_ms: 0 },
                }),
                returned: None,
            }],
            returns: Vec::new(),
        }
    }

    /// Appends a change. A change without effect is skipped; of several at the same time the last
    /// counts.
    pub(super) fn push(&mut self, mut change: Change) {
        if let Some(last) = self.changes.pop_if(|last| last.at_ns == change.at_ns) {
            change.returned = change.returned.or(last.returned);
        }
        let before = self.changes.last();
        let (presence, quotas) = before.map_or_else(Default::default, |b| (b.presence, b.quotas));
        let is_same = (presence, quotas) == (change.presence, change.quotas);
        if !is_same || change.returned.is_some() {
            self.changes.push(change);
        }
    }

    /// Total time before `until_ns` in which the host may lend.
    #[must_use]
    pub fn idle_ns(&self, until_ns: u64) -> u64 {
        let ends = self.changes.iter().skip(1).map(|c| c.at_ns);
        let ends = ends.chain([until_ns]);
        let idle = self.changes.iter().zip(ends);
        idle.filter(|(change, _)| change.presence == Presence::Idle)
            .map(|(change, end)| end.min(until_ns).saturating_sub(change.at_ns))
            .sum()
    }
}
