//! One sample a time, from readings as rough as they come.

use super::nominal;
use super::readings::{Beside, Row, Stop};
use super::{Facts, Reading, Readings, Values};
use serde::Serialize;

/// Readings of a machine that are no further apart are one sample, unless the machine is recorded that often.
const MOMENT_MS: i64 = 500;

/// Starts of a machine that are no further apart are one: the kernel computes it from a clock that is being set.
const SAME_BOOT_MS: i64 = 60_000;

/// What stands in the dataset for a reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation<'r> {
    /// Its time, ms since 1970-01-01 UTC.
    pub time_ms: i64,
    /// Since the one before; absent for the first and after a gap.
    pub interval_ms: Option<i64>,
    /// Cause of the gap before it, where the source says that there is one.
    pub gap: Option<&'static str>,
    /// Memory that the machine has.
    pub physical_bytes: i64,
    /// What of it is available.
    pub available_bytes: i64,
    /// CPUs, as said last.
    pub cpus_count: Option<i64>,
    /// When the machine was started, as the first sample since then says, ms since 1970-01-01 UTC.
    pub booted_ms: Option<i64>,
    /// What else the source says.
    pub values: Values<'r>,
    /// What it says of the machine.
    pub facts: &'r Facts,
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
    /// No sample: rows within 500 ms of an earlier one, whose sample has what they alone give.
    pub merged_count: u64,
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
    /// Changes of memory, CPUs or what else is said of the machine, on the way.
    pub changes_count: u64,
    /// Gaps: more than two intervals between samples, or the source says that the recording stopped.
    pub gaps_count: u64,
    /// From the first sample to the last, ms; of several machines their sum.
    pub span_ms: u64,
    /// Of that, time between samples without a gap between them.
    pub recorded_ms: u64,
    /// The machine's nominal interval, ms: stated, or found in the steps between its samples; absent of several
    /// machines, or of one sample.
    pub nominal_interval_ms: Option<i64>,
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
            merged_count,
            without_memory_count,
            out_of_order_count,
            overused_count,
            unused_count,
            in_seconds_count,
            changes_count,
            gaps_count,
            span_ms,
            recorded_ms,
            nominal_interval_ms: _, // of one machine
        } = other;
        self.rows_count += rows_count;
        self.samples_count += samples_count;
        self.unreadable_count += unreadable_count;
        self.repeated_count += repeated_count;
        self.contradicted_count += contradicted_count;
        self.merged_count += merged_count;
        self.without_memory_count += without_memory_count;
        self.out_of_order_count += out_of_order_count;
        self.overused_count += overused_count;
        self.unused_count += unused_count;
        self.in_seconds_count += in_seconds_count;
        self.changes_count += changes_count;
        self.gaps_count += gaps_count;
        self.span_ms += span_ms;
        self.recorded_ms += recorded_ms;
    }

    /// Share of the span that lies between samples without a gap; 1 where there is no span.
    #[must_use]
    pub fn coverage(&self) -> f64 {
        if self.span_ms == 0 {
            return 1.0;
        }
        self.recorded_ms as f64 / self.span_ms as f64
    }
}

impl Readings<'_> {
    /// The samples of the machine, in order of time and one a time; and what was done. The order of the rows makes
    /// no difference to the samples.
    #[must_use]
    pub fn mend(&mut self) -> (Vec<Observation<'_>>, Mended) {
        self.mend_at(None)
    }

    /// The same, with the nominal interval where that is stated and not to be found in the steps.
    #[must_use]
    pub fn mend_at(&mut self, interval_ms: Option<i64>) -> (Vec<Observation<'_>>, Mended) {
        let (mut rows, mut stops, beside, mut mended) = self.split();
        stops.sort_unstable();
        let time_ms = |row: &Row| row.reading.time_ms;
        let steps_back = rows.windows(2).filter(|w| time_ms(&w[1]) < time_ms(&w[0]));
        mended.out_of_order_count += steps_back.count() as u64;
        rows.sort_unstable_by(|a, b| beside.order(a, b));
        let read = rows.len();
        rows.dedup_by(|a, b| beside.same(a, b));
        let distinct = rows.len();
        rows.dedup_by_key(|row| time_ms(row));
        let kept = rows.len();
        rows.retain(|row| row.reading.physical_bytes > 0);
        mended.repeated_count += (read - distinct) as u64;
        mended.contradicted_count += (distinct - kept) as u64;
        mended.without_memory_count += (kept - rows.len()) as u64;
        mended.merged_count += merge(&mut rows, beside, &stops);
        let beside: &Beside<'_> = beside;
        mended.samples_count += rows.len() as u64;

        let times_ms: Vec<i64> = rows.iter().map(time_ms).collect();
        mended.nominal_interval_ms = interval_ms.or_else(|| nominal::interval_ms(&times_ms));
        let nominal_ms = mended.nominal_interval_ms;
        let longest_ms = nominal_ms.map_or(0, |nominal| nominal.saturating_mul(2));
        let mut samples: Vec<Observation<'_>> = Vec::with_capacity(rows.len());
        for row in &rows {
            let reading = row.reading;
            let before = samples.last();
            let step_ms = before.map(|before| reading.time_ms - before.time_ms);
            let gap = before.and_then(|before| stop(&stops, before.time_ms, reading.time_ms));
            let is_gap = gap.is_some() || step_ms.is_some_and(|step| step > longest_ms);
            let sample = Observation {
                time_ms: reading.time_ms,
                interval_ms: step_ms.filter(|_| !is_gap),
                gap,
                physical_bytes: reading.physical_bytes,
                available_bytes: reading.available_bytes.max(0),
                cpus_count: said(reading.cpus_count).or_else(|| before?.cpus_count),
                booted_ms: booted_ms(&reading, before.and_then(|before| before.booted_ms)),
                values: beside.values(row),
                facts: beside.facts(row),
            };
            let step_ms = step_ms.map_or(0, i64::unsigned_abs);
            mended.span_ms += step_ms;
            mended.recorded_ms += if is_gap { 0 } else { step_ms };
            mended.gaps_count += u64::from(is_gap);
            mended.changes_count += u64::from(before.is_some_and(|before| sample.differs(before)));
            mended.overused_count += u64::from(reading.available_bytes < 0);
            mended.unused_count += u64::from(reading.available_bytes == reading.physical_bytes);
            samples.push(sample);
        }
        (samples, mended)
    }
}

impl Observation<'_> {
    /// Whether the machine is another than at `other`.
    pub(super) fn differs(&self, other: &Self) -> bool {
        let machine = |o: &Self| (o.physical_bytes, o.cpus_count);
        machine(self) != machine(other) || self.facts != other.facts
    }
}

/// The cause of a stop from `from_ms` to `until_ms`, of stops in order. At the time of a sample it may have been before
/// or after it: then nothing is assumed across either side.
fn stop(stops: &[Stop], from_ms: i64, until_ms: i64) -> Option<&'static str> {
    let first = stops.partition_point(|(time_ms, _)| *time_ms < from_ms);
    let last = stops.partition_point(|(time_ms, _)| *time_ms <= until_ms);
    let between = stops.get(first..last)?;
    between.iter().map(|(_, cause)| *cause).min()
}

/// What is 0 where it is not said.
fn said(value: i64) -> Option<i64> {
    Some(value).filter(|value| *value > 0)
}

/// The boot before it where it is the same; none where this row does not say.
fn booted_ms(reading: &Reading, before: Option<i64>) -> Option<i64> {
    let booted = said(reading.booted_ms)?;
    let is_same = |before: &i64| before.abs_diff(booted) <= SAME_BOOT_MS.unsigned_abs();
    Some(before.filter(is_same).unwrap_or(booted))
}

/// Merges readings of one moment, in order of time, into the first of them, which takes over the values that it lacks;
/// how many were merged. Where most readings are that close the machine is recorded that often, and all stay.
fn merge(rows: &mut Vec<Row>, beside: &mut Beside<'_>, stops: &[Stop]) -> u64 {
    let time_ms = |row: &Row| row.reading.time_ms;
    let mut firsts: Vec<usize> = Vec::with_capacity(rows.len());
    let mut close = 0_usize;
    for (at, row) in rows.iter().enumerate() {
        let first_ms = firsts.last().map(|first| time_ms(&rows[*first]));
        let is_one = first_ms.is_some_and(|first_ms| {
            time_ms(row) - first_ms <= MOMENT_MS && stop(stops, first_ms, time_ms(row)).is_none()
        });
        if !is_one {
            let before = at.checked_sub(1).map(|before| time_ms(&rows[before]));
            close += usize::from(before.is_some_and(|before| time_ms(row) - before <= MOMENT_MS));
            firsts.push(at);
        }
    }
    let merged = rows.len() - firsts.len();
    if merged == 0 || 2 * close >= firsts.len() {
        return 0;
    }
    let mut ends = firsts.iter().skip(1).copied().chain([rows.len()]);
    for first in &firsts {
        let end = ends.next().unwrap_or(rows.len());
        for other in &rows[first + 1..end] {
            beside.take_over(&rows[*first], other);
        }
    }
    *rows = firsts.into_iter().map(|first| rows[first]).collect();
    merged as u64
}
