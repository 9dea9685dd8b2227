//! One sample a time, from readings as rough as they come.

use serde::Serialize;
use std::cmp::Reverse;

/// What one row of a source says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Its time, ms since 1970-01-01 UTC.
    pub time_ms: i64,
    /// Memory that the machine has; 0 where it has none, as a machine that is off.
    pub capacity_bytes: i64,
    /// Memory that it uses.
    pub used_bytes: i64,
    /// CPUs; 0 where that is not said.
    pub cpus_count: i64,
}

impl Reading {
    /// What is not in use; none where more is said to be used than there is.
    fn available_bytes(&self) -> i64 {
        self.capacity_bytes.saturating_sub(self.used_bytes).max(0)
    }
}

/// What stands in the dataset for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Its time, ms since 1970-01-01 UTC.
    pub time_ms: i64,
    /// Since the one before; absent for the first and after a gap.
    pub interval_ms: Option<i64>,
    /// Memory that the machine has.
    pub physical_bytes: i64,
    /// What of it is not in use.
    pub available_bytes: i64,
    /// CPUs, as said last.
    pub cpus_count: Option<i64>,
}

/// What was found in a machine's rows, and what was done about it. Every row is a sample, or is counted once
/// among those that became none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Mended {
    /// Rows read, without the header and empty lines.
    pub rows_count: u64,
    /// Samples made of them.
    pub samples_count: u64,
    /// No sample: rows that could not be read.
    pub unreadable_count: u64,
    /// The first of those: its line and what is wrong with it.
    pub first_unreadable: Option<String>,
    /// No sample: rows that repeat another in everything that is imported.
    pub repeated_count: u64,
    /// No sample: rows of the time of another that say otherwise. The one that leaves least available is kept.
    pub contradicted_count: u64,
    /// No sample: rows without memory provisioned.
    pub without_memory_count: u64,
    /// Rows that stood before an earlier one, and were put in their place.
    pub out_of_order_count: u64,
    /// Samples that used more than there was: available is 0.
    pub overused_count: u64,
    /// Samples that are said to use no memory at all; taken as they are.
    pub unused_count: u64,
    /// Times of a sample or row that came in seconds, where the header says ms.
    pub in_seconds_count: u64,
    /// Changes of memory or CPUs on the way.
    pub changes_count: u64,
    /// Times of more than two intervals between samples.
    pub gaps_count: u64,
}

impl Mended {
    /// Whether rows were left out, moved or altered.
    #[must_use]
    pub fn is_mended(&self) -> bool {
        self.rows_count != self.samples_count || self.out_of_order_count + self.overused_count > 0
    }

    /// Adds what was found elsewhere.
    pub fn add(&mut self, other: &Self) {
        let Self {
            rows_count,
            samples_count,
            unreadable_count,
            first_unreadable: _, // of one machine
            repeated_count,
            contradicted_count,
            without_memory_count,
            out_of_order_count,
            overused_count,
            unused_count,
            in_seconds_count,
            changes_count,
            gaps_count,
        } = other;
        self.rows_count += rows_count;
        self.samples_count += samples_count;
        self.unreadable_count += unreadable_count;
        self.repeated_count += repeated_count;
        self.contradicted_count += contradicted_count;
        self.without_memory_count += without_memory_count;
        self.out_of_order_count += out_of_order_count;
        self.overused_count += overused_count;
        self.unused_count += unused_count;
        self.in_seconds_count += in_seconds_count;
        self.changes_count += changes_count;
        self.gaps_count += gaps_count;
    }
}

/// The samples of one machine, in order of time and one a time, from readings in the order of its rows. What
/// was done is counted in `mended`. The order of the rows makes no difference to the samples.
#[must_use]
pub fn mend(mut readings: Vec<Reading>, mended: &mut Mended) -> Vec<Observation> {
    let steps_back = readings.windows(2).filter(|w| w[1].time_ms < w[0].time_ms);
    mended.out_of_order_count += steps_back.count() as u64;
    // Of one time, the one to keep comes first: with memory, and with the least of it available.
    readings.sort_unstable_by_key(|r| {
        (
            r.time_ms,
            r.capacity_bytes == 0,
            r.available_bytes(),
            Reverse(r.used_bytes),
            r.capacity_bytes,
            Reverse(r.cpus_count),
        )
    });
    let read = readings.len();
    readings.dedup();
    let distinct = readings.len();
    readings.dedup_by_key(|r| r.time_ms);
    let kept = readings.len();
    readings.retain(|r| r.capacity_bytes > 0);
    mended.repeated_count += (read - distinct) as u64;
    mended.contradicted_count += (distinct - kept) as u64;
    mended.without_memory_count += (kept - readings.len()) as u64;
    mended.samples_count += readings.len() as u64;

    let longest_ms = typical_ms(&readings).map_or(0, |typical| typical.saturating_mul(2));
    let mut samples: Vec<Observation> = Vec::with_capacity(readings.len());
    for reading in &readings {
        let before = samples.last();
        let step_ms = before.map(|before| reading.time_ms - before.time_ms);
        let sample = Observation {
            time_ms: reading.time_ms,
            interval_ms: step_ms.filter(|step| *step <= longest_ms),
            physical_bytes: reading.capacity_bytes,
            available_bytes: reading.available_bytes(),
            cpus_count: Some(reading.cpus_count)
                .filter(|count| *count > 0)
                .or_else(|| before?.cpus_count),
        };
        mended.gaps_count += u64::from(step_ms.is_some_and(|step| step > longest_ms));
        mended.changes_count += u64::from(before.is_some_and(|before| sample.differs(before)));
        mended.overused_count += u64::from(reading.used_bytes > reading.capacity_bytes);
        mended.unused_count += u64::from(reading.used_bytes == 0);
        samples.push(sample);
    }
    samples
}

impl Observation {
    /// Whether the machine is another than at `other`.
    pub(super) fn differs(&self, other: &Self) -> bool {
        (self.physical_bytes, self.cpus_count) != (other.physical_bytes, other.cpus_count)
    }
}

/// The median step, as the analysis has it where no interval is recorded.
fn typical_ms(readings: &[Reading]) -> Option<i64> {
    let steps = readings.windows(2).map(|w| w[1].time_ms - w[0].time_ms);
    let mut steps: Vec<i64> = steps.collect();
    steps.sort_unstable();
    steps.get(steps.len() / 2).copied()
}
