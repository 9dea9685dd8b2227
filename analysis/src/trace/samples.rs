//! A host's samples, one vector per column, in the order of recording.

use crate::error::Result;
use crate::trace::frame::{DATABASE, Frame, SEQUENCE, TIME};
use crate::trace::reads::ReadSet;
use gleaner_hosts::derived::{mem_available_bytes, unsigned};
use gleaner_hosts::recorded::SampleTime;
use gleaner_policy::accounting::harvestable_bytes;
use gleaner_policy::guest_load::owner_load5;
use gleaner_policy::idle::Observation;
use gleaner_schemas::findings::Category;

/// Kernel counters that measure the cost of memory shortage; within a boot they only grow.
pub(crate) const COUNTERS: [&str; 6] = [
    "psi_memory_some_total_us",
    "psi_memory_full_total_us",
    "refault_file_total_pages",
    "refault_anon_total_pages",
    "swap_in_total_pages",
    "major_fault_total_count",
];

/// Columns of [`ReadSet::FEW`]; all other columns stay absent with that set.
const FEW: [&str; 8] = [
    "boot_id",
    "interval_ms",
    "physical_bytes",
    "available_bytes",
    "load5",
    "guest_load5",
    "owner_idle_ms",
    "is_complete_state",
];

/// A host's samples, one vector per column; `categories` has one per [`Category::ALL`], in that order.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    pub(crate) database: Vec<i64>,
    pub(crate) sequence: Vec<i64>,
    /// True if the host is known to have been booted since the sample before.
    pub(crate) is_new_boot: Vec<bool>,
    pub(crate) time_ms: Vec<i64>,
    /// Time since the sample before, if the host knows of no gap between them.
    pub(crate) interval_ms: Vec<Option<i64>>,
    pub(crate) physical_bytes: Vec<i64>,
    pub(crate) categories: Vec<Vec<Option<i64>>>,
    pub(crate) available_bytes: Vec<i64>,
    /// Absent in traces of other programs, like all values that only an agent knows.
    pub(crate) category_correction_bytes: Vec<Option<i64>>,
    pub(crate) residual_bytes: Vec<Option<i64>>,
    pub(crate) harvestable_bytes: Vec<Option<i64>>,
    pub(crate) mem_available_bytes: Vec<Option<i64>>,
    /// Owner's part of the 5-minute load average.
    pub(crate) load5: Vec<Option<f64>>,
    pub(crate) owner_idle_ms: Vec<Option<i64>>,
    pub(crate) is_complete_state: Vec<bool>,
    pub(crate) boottime_ms: Vec<Option<i64>>,
    /// Values of each counter, in the order of [`COUNTERS`].
    pub(crate) counters: Vec<Vec<Option<i64>>>,
    pub(crate) agent_cpu_us: Vec<Option<i64>>,
    pub(crate) agent_rss_bytes: Vec<Option<i64>>,
}

impl Samples {
    /// Columns of the table `samples` that are read.
    pub(super) fn columns(reads: ReadSet) -> Vec<&'static str> {
        let mut columns: Vec<&str> = Category::ALL.iter().map(|c| c.column()).collect();
        columns.extend(COUNTERS);
        columns.extend([
            "boot_id",
            "boottime_ms",
            "interval_ms",
            "physical_bytes",
            "category_correction_bytes",
            "available_residual_bytes",
            "harvestable_bytes",
            "mem_available_bytes",
            "load5",
            "guest_load5",
            "owner_idle_ms",
            "is_complete_state",
            "agent_cpu_us",
            "agent_rss_bytes",
        ]);
        columns.retain(|column| reads.all_columns || FEW.contains(column));
        columns
    }

    /// Samples from rows of the table `samples`.
    pub(crate) fn of(frame: &Frame, reads: ReadSet, headroom_share: f64) -> Result<Self> {
        let columns = Self::columns(reads);
        let optional = |column| {
            Ok(if columns.contains(&column) {
                frame.integers(column)?.iter().collect()
            } else {
                vec![None; frame.rows_count()]
            })
        };
        let categories = Category::ALL
            .iter()
            .map(|c| optional(c.column()))
            .collect::<Result<Vec<_>>>()?;
        let counters = COUNTERS
            .iter()
            .map(|column| optional(column))
            .collect::<Result<Vec<_>>>()?;
        let physical_bytes = frame.present("physical_bytes")?.to_vec();
        Ok(Self {
            harvestable_bytes: harvestable(
                &optional("harvestable_bytes")?,
                &optional("mem_available_bytes")?,
                &physical_bytes,
                headroom_share,
            ),
            mem_available_bytes: optional("mem_available_bytes")?,
            database: frame.present(DATABASE)?.to_vec(),
            sequence: frame.present(SEQUENCE)?.to_vec(),
            time_ms: frame.present(TIME)?.to_vec(),
            is_new_boot: changes(frame.texts("boot_id")?.iter()),
            interval_ms: optional("interval_ms")?,
            categories,
            available_bytes: frame.present("available_bytes")?.to_vec(),
            category_correction_bytes: optional("category_correction_bytes")?,
            residual_bytes: optional("available_residual_bytes")?,
            load5: (frame.reals("load5")?.iter())
                .zip(frame.reals("guest_load5")?.iter())
                .map(|(load5, guest_load5)| owner_load5(load5, guest_load5))
                .collect(),
            owner_idle_ms: optional("owner_idle_ms")?,
            is_complete_state: frame
                .flags("is_complete_state")?
                .iter()
                .map(|f| f == Some(true))
                .collect(),
            boottime_ms: optional("boottime_ms")?,
            counters,
            agent_cpu_us: optional("agent_cpu_us")?,
            agent_rss_bytes: optional("agent_rss_bytes")?,
            physical_bytes,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.time_ms.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.time_ms.is_empty()
    }

    /// Position of each sample in the trace, in the form that the gap rules need.
    pub(crate) fn times(&self) -> Vec<SampleTime> {
        let places = self.database.iter().zip(&self.time_ms);
        let places = places.zip(&self.interval_ms);
        let time = |((&database, &time_ms), &interval_ms)| SampleTime {
            database,
            time_ms,
            interval_ms,
        };
        places.map(time).collect()
    }

    /// A category of one sample.
    pub(crate) fn category(&self, category: Category, sample: usize) -> Option<i64> {
        // Category::ALL is in the order of the declaration.
        *self.categories.get(category as usize)?.get(sample)?
    }

    /// Growth of each of [`COUNTERS`] between two samples; `None` if either value is absent, if the host was
    /// booted in between, or if the counter fell, which a kernel's counters never do.
    pub(crate) fn growth(&self, from: usize, to: usize) -> [Option<i64>; COUNTERS.len()] {
        let steps = self.is_new_boot.get(from.saturating_add(1)..=to);
        let same_boot = steps.is_some_and(|boots| !boots.contains(&true));
        std::array::from_fn(|counter| {
            let counts = self.counters.get(counter).filter(|_| same_boot)?;
            let grown = (*counts.get(to)?)?.checked_sub((*counts.get(from)?)?)?;
            (grown >= 0).then_some(grown)
        })
    }

    /// MemAvailable of one sample: recorded, or derived from harvestable memory.
    pub(crate) fn mem_available(&self, sample: usize, headroom_share: f64) -> Option<u64> {
        let of = |column: &[Option<i64>]| column.get(sample).copied().flatten();
        mem_available_bytes(
            of(&self.mem_available_bytes),
            of(&self.harvestable_bytes),
            self.physical_bytes[sample],
            headroom_share,
        )
    }

    /// Input of the idle rule at each sample.
    pub(crate) fn observations(&self) -> Vec<Observation> {
        let owner = self.time_ms.iter().zip(&self.owner_idle_ms);
        let seen = owner.zip(&self.load5);
        let observation = |((&time_ms, &owner_idle_ms), &load5)| Observation {
            time_ms,
            owner_idle_ms,
            load5,
        };
        seen.map(observation).collect()
    }

    /// The sample that each row of another table belongs to; `None` for a row without one.
    pub(crate) fn of_rows(&self, rows: &Frame) -> Result<Vec<Option<usize>>> {
        let keys = rows.present(DATABASE)?.iter().zip(rows.present(SEQUENCE)?);
        Ok(in_both(self.database.iter().zip(&self.sequence), keys))
    }
}

/// For each name, true if it differs from the last known name before it.
fn changes<'a>(names: impl Iterator<Item = Option<&'a str>>) -> Vec<bool> {
    let mut last = None;
    let is_new = |name: Option<&'a str>| {
        let is_new = last.is_some() && name.is_some() && name != last;
        last = name.or(last);
        is_new
    };
    names.map(is_new).collect()
}

/// Index into `samples` of each of `rows`; `None` if a row is not among them. Both are sorted by the first
/// part of their pairs; samples are distinct.
pub(crate) fn in_both<'a>(
    samples: impl Iterator<Item = (&'a i64, &'a i64)>,
    rows: impl Iterator<Item = (&'a i64, &'a i64)>,
) -> Vec<Option<usize>> {
    let mut samples = samples.enumerate().peekable();
    rows.map(|row| {
        // Both are sorted, so a single pass over both is enough.
        while samples.next_if(|(_, sample)| *sample < row).is_some() {}
        let (at, sample) = samples.peek()?;
        (*sample == row).then_some(*at)
    })
    .collect()
}

/// MemAvailable less `headroom_share`; without MemAvailable, the stored figure, which uses the agent's own
/// headroom.
fn harvestable(
    stored: &[Option<i64>],
    mem_available_bytes: &[Option<i64>],
    physical_bytes: &[i64],
    headroom_share: f64,
) -> Vec<Option<i64>> {
    let all = stored.iter().zip(mem_available_bytes).zip(physical_bytes);
    all.map(|((stored, available), &physical)| {
        let own = available.map(|a| {
            let bytes = harvestable_bytes(unsigned(a), unsigned(physical), headroom_share);
            gleaner_schemas::units::stored(bytes)
        });
        own.or(*stored)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_grow_within_a_boot_or_say_nothing() {
        let mut counters = vec![vec![None; 4]; COUNTERS.len()];
        counters[0] = [5, 9, 7, 100].map(Some).to_vec();
        counters[1] = vec![Some(5), None, Some(5), Some(6)];
        counters[2] = vec![Some(i64::MIN), Some(0), Some(i64::MAX), Some(0)];
        let samples = Samples {
            is_new_boot: vec![false, false, false, true],
            counters,
            ..Samples::default()
        };
        let first_three = |from, to| samples.growth(from, to)[..3].to_vec();
        assert_eq!(
            first_three(0, 1),
            [Some(4), None, None],
            "too far apart for i64"
        );
        assert_eq!(first_three(0, 2), [Some(2), Some(0), None]);
        assert_eq!(first_three(1, 2), [None, None, Some(i64::MAX)], "it fell");
        assert_eq!(first_three(2, 3), [None; 3], "another boot");
        assert_eq!(first_three(2, 9), [None; 3]);
    }
}
