//! Turns a machine's raw readings into samples, one per time.

use super::nominal;
use super::readings::{ExtraColumns, Row, Stop};
use super::{Facts, Reading, Readings, Repairs, Values};

/// Maximum distance of readings that are merged into one sample, in ms. If the machine is recorded that
/// often, nothing is merged.
const MOMENT_MS: i64 = 500;

/// Maximum difference between two boot times that mean the same boot. The kernel computes boot times from a
/// clock that is adjusted.
const SAME_BOOT_MS: i64 = 60_000;

/// A sample that was made from a reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation<'r> {
    /// Time of the sample, ms since 1970-01-01 UTC.
    pub time_ms: i64,
    /// Time since the previous sample, in ms; absent for the first and after a gap.
    pub interval_ms: Option<i64>,
    /// Cause of the gap before this sample, if the source names one.
    pub gap: Option<&'static str>,
    /// Physical memory of the machine, in bytes.
    pub physical_bytes: i64,
    /// Available memory of the machine, in bytes.
    pub available_bytes: i64,
    /// Number of CPUs as last reported.
    pub cpus_count: Option<i64>,
    /// Boot time of the machine, as reported by the first sample after the boot, ms since 1970-01-01 UTC.
    pub booted_ms: Option<i64>,
    /// Values of the source's extra columns.
    pub values: Values<'r>,
    /// Facts of the machine at this sample.
    pub facts: &'r Facts,
}

impl Readings<'_> {
    /// Samples of the machine in order of time, one per time, and the counts of repairs. The order of the
    /// rows does not affect the samples.
    #[must_use]
    pub fn repair(&mut self) -> (Vec<Observation<'_>>, Repairs) {
        self.repair_at(None)
    }

    /// Does the same as [`Self::repair`], with a given nominal interval. `None`: it is determined from the steps.
    #[must_use]
    pub fn repair_at(&mut self, interval_ms: Option<i64>) -> (Vec<Observation<'_>>, Repairs) {
        let (mut rows, mut stops, beside, mut repairs) = self.split();
        stops.sort_unstable();
        let time_ms = |row: &Row| row.reading.time_ms;
        let steps_back = rows.windows(2).filter(|w| time_ms(&w[1]) < time_ms(&w[0]));
        repairs.out_of_order_count += steps_back.count() as u64;
        rows.sort_unstable_by(|a, b| beside.order(a, b));
        let read = rows.len();
        rows.dedup_by(|a, b| beside.same(a, b));
        let distinct = rows.len();
        rows.dedup_by_key(|row| time_ms(row));
        let kept = rows.len();
        rows.retain(|row| row.reading.physical_bytes > 0);
        repairs.repeated_count += (read - distinct) as u64;
        repairs.contradicted_count += (distinct - kept) as u64;
        repairs.without_memory_count += (kept - rows.len()) as u64;
        repairs.merged_count += merge(&mut rows, beside, &stops);
        let beside: &ExtraColumns<'_> = beside;
        repairs.samples_count += rows.len() as u64;

        let times_ms: Vec<i64> = rows.iter().map(time_ms).collect();
        repairs.nominal_interval_ms = interval_ms.or_else(|| nominal::interval_ms(&times_ms));
        let nominal_ms = repairs.nominal_interval_ms;
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
            repairs.span_ms += step_ms;
            repairs.recorded_ms += if is_gap { 0 } else { step_ms };
            repairs.gaps_count += u64::from(is_gap);
            repairs.changes_count += u64::from(before.is_some_and(|before| sample.differs(before)));
            repairs.above_physical_count += u64::from(reading.available_bytes < 0);
            repairs.zero_use_count += u64::from(reading.available_bytes == reading.physical_bytes);
            samples.push(sample);
        }
        (samples, repairs)
    }
}

impl Observation<'_> {
    /// Returns true if the machine's memory, CPUs or facts differ from those in `other`.
    pub(super) fn differs(&self, other: &Self) -> bool {
        let machine = |o: &Self| (o.physical_bytes, o.cpus_count);
        machine(self) != machine(other) || self.facts != other.facts
    }
}

/// Cause of a stop between the samples at `from_ms` and `until_ms`; `stops` is in order of time. A stop at a
/// sample's own time may have been before or after the sample: then the times before and after it both count
/// as interrupted.
fn stop(stops: &[Stop], from_ms: i64, until_ms: i64) -> Option<&'static str> {
    let first = stops.partition_point(|(time_ms, _)| *time_ms < from_ms);
    let last = stops.partition_point(|(time_ms, _)| *time_ms <= until_ms);
    let between = stops.get(first..last)?;
    between.iter().map(|(_, cause)| *cause).min()
}

/// The value, or `None` for 0, which means unknown.
fn said(value: i64) -> Option<i64> {
    Some(value).filter(|value| *value > 0)
}

/// Boot time of the reading; if it is the same boot as `before`, then `before`. `None` if the reading has none.
fn booted_ms(reading: &Reading, before: Option<i64>) -> Option<i64> {
    let booted = said(reading.booted_ms)?;
    let is_same = |before: &i64| before.abs_diff(booted) <= SAME_BOOT_MS.unsigned_abs();
    Some(before.filter(is_same).unwrap_or(booted))
}

/// Merges readings of one moment into the first of them, which takes over the values that it lacks. `rows` is
/// in order of time. Returns the number of merged rows. If most readings are that close together, the machine
/// is recorded that often, and nothing is merged.
fn merge(rows: &mut Vec<Row>, beside: &mut ExtraColumns<'_>, stops: &[Stop]) -> u64 {
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
            beside.fill_missing(&rows[*first], other);
        }
    }
    *rows = firsts.into_iter().map(|first| rows[first]).collect();
    merged as u64
}
