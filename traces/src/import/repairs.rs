//! Counts of the repairs in a machine's rows.

use serde::Serialize;

/// Faults in a machine's rows, and their repairs. Every row becomes a sample, or is counted once among the
/// rows without a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Repairs {
    /// Rows read, without the header and empty lines.
    pub rows_count: u64,
    /// Samples made from the rows.
    pub samples_count: u64,
    /// Rows without a sample because they could not be read.
    pub unreadable_count: u64,
    /// First unreadable row: its line and fault.
    pub first_unreadable: Option<String>,
    /// Rows without a sample because they repeat another row in all imported columns.
    pub repeated_count: u64,
    /// Rows without a sample because another row has the same time and other values. The row with the least
    /// available memory is kept.
    pub contradicted_count: u64,
    /// Rows merged into the sample of a row at most 500 ms earlier; the sample takes over the values that
    /// only they have.
    pub merged_count: u64,
    /// Rows without a sample because no memory was provisioned.
    pub without_memory_count: u64,
    /// Rows that came after a row with a later time; they were sorted by time.
    pub out_of_order_count: u64,
    /// Samples with more memory used than provisioned; their available memory is set to 0.
    pub above_physical_count: u64,
    /// Samples without any used memory; they are imported unchanged.
    pub zero_use_count: u64,
    /// Rows whose time is in seconds, although the header says ms.
    pub times_in_seconds_count: u64,
    /// Changes, within the trace, of the machine's memory, CPUs or other facts.
    pub changes_count: u64,
    /// Gaps: steps of more than two intervals, and stops of the recording that the source reports.
    pub gaps_count: u64,
    /// Time from the first sample to the last, in ms; for several machines, the sum.
    pub span_ms: u64,
    /// Recorded part of the span, in ms: the sum of the steps between samples that no gap separates.
    pub recorded_ms: u64,
    /// The machine's nominal interval, in ms: given, or determined from the steps between samples. Absent for
    /// several machines, and for a machine with one sample.
    pub nominal_interval_ms: Option<i64>,
}

impl Repairs {
    /// Returns true if rows were left out, moved or altered.
    #[must_use]
    pub fn has_any(&self) -> bool {
        self.rows_count != self.samples_count
            || self.out_of_order_count + self.above_physical_count > 0
    }

    /// Adds the repairs of other machines.
    pub fn add(&mut self, other: &Self) {
        let Self {
            rows_count,
            samples_count,
            unreadable_count,
            first_unreadable: _, // only of one machine
            repeated_count,
            contradicted_count,
            merged_count,
            without_memory_count,
            out_of_order_count,
            above_physical_count,
            zero_use_count,
            times_in_seconds_count,
            changes_count,
            gaps_count,
            span_ms,
            recorded_ms,
            nominal_interval_ms: _, // only of one machine
        } = other;
        self.rows_count += rows_count;
        self.samples_count += samples_count;
        self.unreadable_count += unreadable_count;
        self.repeated_count += repeated_count;
        self.contradicted_count += contradicted_count;
        self.merged_count += merged_count;
        self.without_memory_count += without_memory_count;
        self.out_of_order_count += out_of_order_count;
        self.above_physical_count += above_physical_count;
        self.zero_use_count += zero_use_count;
        self.times_in_seconds_count += times_in_seconds_count;
        self.changes_count += changes_count;
        self.gaps_count += gaps_count;
        self.span_ms += span_ms;
        self.recorded_ms += recorded_ms;
    }

    /// Share of the span that is recorded; 1 without a span.
    #[must_use]
    pub fn coverage(&self) -> f64 {
        if self.span_ms == 0 {
            return 1.0;
        }
        self.recorded_ms as f64 / self.span_ms as f64
    }
}
