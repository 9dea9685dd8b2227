//! Readings of one machine, in the order of its rows.

use super::Repairs;
use gleaner_schemas::column::{Kind, Row as _, Value};
use gleaner_schemas::rows::SampleRow;
use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;
use std::fmt::Display;

/// Valid times: 2000-01-01 to 2100-01-01. Rows with other times are malformed.
pub const TIMES_MS: std::ops::Range<i64> = 946_684_800_000..4_102_444_800_000;
/// Maximum plausible memory size: 1 PiB.
pub const MEMORY_BYTES: i64 = 1 << 50;

/// Values that every row of every source has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Time of the row, ms since 1970-01-01 UTC.
    pub time_ms: i64,
    /// Physical memory in bytes; 0 without memory, as in a machine that is off.
    pub physical_bytes: i64,
    /// Available memory in bytes; below 0 if the source reports more used than provisioned.
    pub available_bytes: i64,
    /// Number of CPUs; 0 if unknown.
    pub cpus_count: i64,
    /// Boot time of the machine, ms since 1970-01-01 UTC; 0 if unknown.
    pub booted_ms: i64,
}

/// Columns of `hosts` with their values, in addition to those that every source fills.
pub type Facts = Vec<(&'static str, Value)>;

/// Readings of one machine, with the values of the source's extra columns. A machine may have a million readings.
#[derive(Clone, Debug)]
pub struct Readings<'c> {
    /// Repairs so far. [`Readings::push`] and [`Readings::unreadable`] count the rows here.
    pub repairs: Repairs,
    rows: Vec<Row>,
    stops: Vec<Stop>,
    beside: ExtraColumns<'c>,
    facts_by_text: HashMap<String, usize>,
}

/// Time at which the recording stopped or restarted, and the cause, with the words of the column `gaps.cause`.
pub(super) type Stop = (i64, &'static str);

/// A reading and the offset of its row's extra columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) reading: Reading,
    at: usize,
    facts: usize,
}

/// Values of a machine's rows in the source's extra columns.
#[derive(Clone, Debug)]
pub(super) struct ExtraColumns<'c> {
    columns: &'c [&'static str],
    /// Kinds of the columns. An unknown column has [`Kind::Real`]; the dataset rejects it later.
    kinds: Vec<Kind>,
    /// Values of `columns`, row after row; NaN means absent.
    values: Vec<f64>,
    /// Distinct sets of facts; the first set is empty.
    facts: Vec<Facts>,
    facts_now: usize,
}

impl<'c> Readings<'c> {
    /// Creates empty readings. Their rows have values for `columns` of `samples`
    /// ([`super::Source::columns`]).
    #[must_use]
    pub fn new(columns: &'c [&'static str]) -> Self {
        Self {
            repairs: Repairs::default(),
            rows: Vec::new(),
            stops: Vec::new(),
            beside: ExtraColumns {
                columns,
                kinds: columns.iter().map(|name| kind(name)).collect(),
                values: Vec::new(),
                facts: vec![Facts::new()],
                facts_now: 0,
            },
            facts_by_text: HashMap::from([(format!("{:?}", Facts::new()), 0)]),
        }
    }

    /// Sets the machine's facts for the rows that follow.
    pub fn host_is(&mut self, facts: Facts) {
        let ExtraColumns {
            facts: known,
            facts_now: now,
            ..
        } = &mut self.beside;
        if known.get(*now) == Some(&facts) {
            return;
        }
        let at = self.facts_by_text.entry(format!("{facts:?}"));
        *now = *at.or_insert_with(|| {
            known.push(facts);
            known.len() - 1
        });
    }

    /// Adds a row: its reading, and a value for each column, in the order of the columns. A value that is not
    /// finite is absent. Whole numbers are exact up to 2⁵³.
    pub fn push(&mut self, reading: Reading, values: &[Option<f64>]) {
        let beside = &mut self.beside;
        debug_assert_eq!(
            values.len(),
            beside.columns.len(),
            "a value for each column"
        );
        self.repairs.rows_count += 1;
        self.rows.push(Row {
            reading,
            at: beside.values.len(),
            facts: beside.facts_now,
        });
        let all = values.iter().copied().chain(std::iter::repeat(None));
        let or_nan = |value: Option<f64>| value.filter(|v| v.is_finite()).unwrap_or(f64::NAN);
        let all = all.map(or_nan).take(beside.columns.len());
        beside.values.extend(all);
    }

    /// Notes that the recording stopped or restarted at `time_ms`. The samples before and after it are
    /// separated by a gap, however short, with this `cause` of [`gleaner_schemas::rows::GapRow`]. If there
    /// are several causes between two samples, the alphabetically first is used.
    pub fn note_stop(&mut self, time_ms: i64, cause: &'static str) {
        self.stops.push((time_ms, cause));
    }

    /// Counts a malformed row. `place` is the row's line or other place, `why` its fault.
    pub fn unreadable(&mut self, place: impl Display, why: impl Display) {
        self.repairs.rows_count += 1;
        self.repairs.unreadable_count += 1;
        let first = || format!("{place}: {why}");
        self.repairs.first_unreadable.get_or_insert_with(first);
    }

    /// Takes the rows, stops and repairs out; returns them and the extra columns as separate values.
    pub(super) fn split(&mut self) -> (Vec<Row>, Vec<Stop>, &mut ExtraColumns<'c>, Repairs) {
        let rows = std::mem::take(&mut self.rows);
        let stops = std::mem::take(&mut self.stops);
        let repairs = std::mem::take(&mut self.repairs);
        (rows, stops, &mut self.beside, repairs)
    }
}

impl ExtraColumns<'_> {
    pub(super) fn values(&self, row: &Row) -> Values<'_> {
        let values = self.values.get(row.at..).unwrap_or_default();
        Values {
            columns: self.columns,
            kinds: &self.kinds,
            values: &values[..values.len().min(self.columns.len())],
        }
    }

    /// Copies the values that `row` lacks and `other` has into `row`.
    pub(super) fn fill_missing(&mut self, row: &Row, other: &Row) {
        for column in 0..self.columns.len() {
            let given = self.values.get(other.at + column).copied();
            if let (Some(own), Some(given)) = (self.values.get_mut(row.at + column), given)
                && own.is_nan()
            {
                *own = given;
            }
        }
    }

    pub(super) fn facts(&self, row: &Row) -> &Facts {
        &self.facts[row.facts]
    }

    /// Orders rows by time. Among rows of one time, the row to keep comes first: one with memory, with the
    /// least available memory, and with most extra values. The order of rows in the source makes no difference.
    pub(super) fn order(&self, a: &Row, b: &Row) -> Ordering {
        let key = |row: &Row| {
            let r = row.reading;
            (
                r.time_ms,
                r.physical_bytes == 0,
                r.available_bytes.max(0),
                Reverse(r.physical_bytes - r.available_bytes),
                r.physical_bytes,
                Reverse((r.cpus_count, r.booted_ms)),
            )
        };
        // As bits, NaN is greater than any number of at least 0: absent values come last.
        let values = || self.values(a).bits().cmp(self.values(b).bits());
        let facts = || format!("{:?}", self.facts(a)).cmp(&format!("{:?}", self.facts(b)));
        key(a).cmp(&key(b)).then_with(values).then_with(|| {
            if a.facts == b.facts {
                Ordering::Equal
            } else {
                facts()
            }
        })
    }

    /// Returns true if the rows have equal content.
    pub(super) fn same(&self, a: &Row, b: &Row) -> bool {
        (a.reading, a.facts) == (b.reading, b.facts) && self.values(a) == self.values(b)
    }
}

/// Values of a row in the source's extra columns.
#[derive(Clone, Copy, Debug)]
pub struct Values<'r> {
    columns: &'r [&'static str],
    kinds: &'r [Kind],
    values: &'r [f64],
}

impl<'r> Values<'r> {
    /// Values that are present, each with the name of its column in `samples`.
    pub fn known(self) -> impl Iterator<Item = (&'static str, Value)> + 'r {
        let columns = self.columns.iter().zip(self.kinds);
        let known = columns
            .zip(self.values)
            .filter(|(_, value)| !value.is_nan());
        known.map(|((&name, kind), &value)| (name, stored(*kind, value)))
    }

    fn bits(self) -> impl Iterator<Item = u64> + 'r {
        self.values.iter().map(|value| value.to_bits())
    }
}

/// Compares values bit by bit, so that a value absent in both rows counts as equal.
impl PartialEq for Values<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.columns == other.columns && self.bits().eq(other.bits())
    }
}

/// Kind of a column of `samples`.
pub(super) fn kind(column: &str) -> Kind {
    let mut columns = SampleRow::TABLE.columns.iter();
    let column = columns.find(|c| c.name == column);
    column.map_or(Kind::Real, |c| c.kind)
}

/// Converts `value` to the type of the column's kind.
pub(super) fn stored(kind: Kind, value: f64) -> Value {
    match kind {
        Kind::Integer => Value::Integer(value.round() as i64),
        _ => Value::Real(value),
    }
}
