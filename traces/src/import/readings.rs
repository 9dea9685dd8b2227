//! What the rows of one machine say, in the order in which they came.

use super::Mended;
use gleaner_schemas::column::{Kind, Row as _, Value};
use gleaner_schemas::rows::SampleRow;
use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;
use std::fmt::Display;

/// From 2000-01-01 to 2100-01-01: a row of another time was not recorded by a machine.
pub const TIMES_MS: std::ops::Range<i64> = 946_684_800_000..4_102_444_800_000;
/// A machine with more is a mistake: 1 PiB.
pub const MEMORY_BYTES: i64 = 1 << 50;

/// What every row of every source says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Its time, ms since 1970-01-01 UTC.
    pub time_ms: i64,
    /// Memory that the machine has; 0 where it has none, as a machine that is off.
    pub physical_bytes: i64,
    /// What of it is available; below 0 where more is said to be used than there is.
    pub available_bytes: i64,
    /// CPUs; 0 where that is not said.
    pub cpus_count: i64,
    /// When the machine was started, ms since 1970-01-01 UTC; 0 where that is not said.
    pub booted_ms: i64,
}

/// Columns of `hosts` beside those that every source fills, by name.
pub type Facts = Vec<(&'static str, Value)>;

/// The readings of one machine, with what its rows say beside: a source has a million of them.
#[derive(Clone, Debug)]
pub struct Readings<'c> {
    /// What was found so far; rows are counted by [`Readings::push`] and [`Readings::unreadable`].
    pub mended: Mended,
    rows: Vec<Row>,
    stops: Vec<Stop>,
    beside: Beside<'c>,
    facts_by_text: HashMap<String, usize>,
}

/// When the recording stopped or was begun anew, and the cause as in `gaps`.
pub(super) type Stop = (i64, &'static str);

/// A reading, and where that stands which its row says beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) reading: Reading,
    at: usize,
    facts: usize,
}

/// What rows say beside their readings.
#[derive(Clone, Debug)]
pub(super) struct Beside<'c> {
    columns: &'c [&'static str],
    /// Of the columns; [`Kind::Real`] of one that there is not, which the dataset refuses.
    kinds: Vec<Kind>,
    /// Of each row those of `columns`, one row after the other; NaN is absent.
    values: Vec<f64>,
    /// Different ones, the first of nothing.
    facts: Vec<Facts>,
    facts_now: usize,
}

impl<'c> Readings<'c> {
    /// For rows that give values of `columns` of `samples` ([`super::Source::columns`]).
    #[must_use]
    pub fn new(columns: &'c [&'static str]) -> Self {
        Self {
            mended: Mended::default(),
            rows: Vec::new(),
            stops: Vec::new(),
            beside: Beside {
                columns,
                kinds: columns.iter().map(|name| kind(name)).collect(),
                values: Vec::new(),
                facts: vec![Facts::new()],
                facts_now: 0,
            },
            facts_by_text: HashMap::from([(format!("{:?}", Facts::new()), 0)]),
        }
    }

    /// From here on the rows are of a machine of these facts.
    pub fn host_is(&mut self, facts: Facts) {
        let Beside {
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

    /// Adds a row: its reading, and a value for each of the columns, in their order; what is not finite is absent.
    /// Whole numbers are held as they are up to 2⁵³.
    pub fn push(&mut self, reading: Reading, values: &[Option<f64>]) {
        let beside = &mut self.beside;
        debug_assert_eq!(
            values.len(),
            beside.columns.len(),
            "a value for each column"
        );
        self.mended.rows_count += 1;
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

    /// The recording stopped at `time_ms`, or was begun anew: a gap between the samples on either side, however short,
    /// of a `cause` of [`gleaner_schemas::rows::GapRow`]. Of several between two samples, the first cause by name.
    pub fn stopped_at(&mut self, time_ms: i64, cause: &'static str) {
        self.stops.push((time_ms, cause));
    }

    /// Counts a row that is none: `place` is its line or the like, `why` what is wrong with it.
    pub fn unreadable(&mut self, place: impl Display, why: impl Display) {
        self.mended.rows_count += 1;
        self.mended.unreadable_count += 1;
        let first = || format!("{place}: {why}");
        self.mended.first_unreadable.get_or_insert_with(first);
    }

    /// The rows, and what they refer to.
    pub(super) fn split(&mut self) -> (Vec<Row>, Vec<Stop>, &mut Beside<'c>, Mended) {
        let rows = std::mem::take(&mut self.rows);
        let stops = std::mem::take(&mut self.stops);
        let mended = std::mem::take(&mut self.mended);
        (rows, stops, &mut self.beside, mended)
    }
}

impl Beside<'_> {
    pub(super) fn values(&self, row: &Row) -> Values<'_> {
        let values = self.values.get(row.at..).unwrap_or_default();
        Values {
            columns: self.columns,
            kinds: &self.kinds,
            values: &values[..values.len().min(self.columns.len())],
        }
    }

    /// Fills in values that `row` lacks and `other` gives.
    pub(super) fn take_over(&mut self, row: &Row, other: &Row) {
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

    /// Rows in order of time; of one time, the one to keep comes first: with memory, with the least of it available,
    /// and with most said beside. Where they stood makes no difference.
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
        // NaN's bits are above those of any number that is not below 0: what is absent comes last.
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

    /// Whether the rows say the same.
    pub(super) fn same(&self, a: &Row, b: &Row) -> bool {
        (a.reading, a.facts) == (b.reading, b.facts) && self.values(a) == self.values(b)
    }
}

/// What a row gives of its source's columns.
#[derive(Clone, Copy, Debug)]
pub struct Values<'r> {
    columns: &'r [&'static str],
    kinds: &'r [Kind],
    values: &'r [f64],
}

impl<'r> Values<'r> {
    /// Those that are not absent, by the names of their columns in `samples`.
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

/// By their bits: what is absent in both is the same.
impl PartialEq for Values<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.columns == other.columns && self.bits().eq(other.bits())
    }
}

/// Of a column of `samples`.
pub(super) fn kind(column: &str) -> Kind {
    let mut columns = SampleRow::TABLE.columns.iter();
    let column = columns.find(|c| c.name == column);
    column.map_or(Kind::Real, |c| c.kind)
}

/// As a column of that kind holds it.
pub(super) fn stored(kind: Kind, value: f64) -> Value {
    match kind {
        Kind::Integer => Value::Integer(value.round() as i64),
        _ => Value::Real(value),
    }
}
