//! Tables. Every cell with a number also has the value itself, so that units are shown and sorting compares
//! magnitudes.

use crate::wording;
use std::borrow::Cow;

/// Default maximum number of a table's rows on the page; the CSV and JSON files have all rows.
pub(crate) const ROWS_SHOWN: usize = 100;

/// Maximum number of rows of a table that is not folded.
const ROWS_OPEN: usize = 15;

/// A table with a caption; its first column names the row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    pub id: String,
    pub caption: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
    /// Note below the table.
    pub note: Option<String>,
    /// Maximum number of rows on the page; the CSV and JSON files have all rows.
    pub rows_shown: usize,
    /// True if the table is never folded; other long tables are folded at first.
    pub stays_open: bool,
    /// True if the table's order is fixed: readers cannot sort it.
    pub in_order: bool,
}

/// A column's heading and the alignment of its cells.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub label: Cow<'static, str>,
    pub is_number: bool,
}

/// Unit of a cell's value; the column's name for programs ends with the unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Text,
    /// A number without unit.
    Number,
    Bytes,
    /// Share from 0 to 1; for changes, the difference of two shares.
    Share,
    Seconds,
    Milliseconds,
    /// Milliseconds since 1970-01-01 UTC.
    Moment,
}

impl Kind {
    /// Suffix of the column's name, such as `_bytes`.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::Text | Self::Number => "",
            Self::Bytes => "_bytes",
            Self::Share => "_share",
            Self::Seconds => "_s",
            Self::Milliseconds => "_ms",
            Self::Moment => "_time_ms",
        }
    }
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cell {
    /// Text of the cell, separate from the unit so that numbers align.
    pub text: String,
    pub unit: String,
    /// Value by which the column is sorted; text is sorted as text.
    pub value: Option<f64>,
    /// Unit of `value`.
    pub kind: Kind,
    /// Name of the colour used for the row in its figure.
    pub swatch: Option<&'static str>,
    /// Length of a bar before the number, in percent.
    pub bar: Option<f64>,
    /// Address to which the cell links: a host's page.
    pub link: Option<String>,
    /// True if the value is unknown: shown as a dash, which screen readers read as "not known".
    pub absent: bool,
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    pub(crate) fn of(kind: Kind, text: impl Into<String>, unit: &str, value: f64) -> Self {
        Self {
            text: text.into(),
            unit: unit.into(),
            value: Some(value),
            kind,
            ..Self::default()
        }
    }

    /// A cell for an unknown value: a dash, never 0.
    pub(crate) fn absent() -> Self {
        Self {
            text: "–".into(),
            absent: true,
            ..Self::default()
        }
    }

    pub(crate) fn count(number: i64) -> Self {
        Self::of(Kind::Number, wording::thousands(number), "", number as f64)
    }

    pub(crate) fn bytes(bytes: f64) -> Self {
        let printed = wording::bytes(bytes);
        let (number, unit) = printed.rsplit_once('\u{a0}').unwrap_or((&printed, ""));
        Self::of(Kind::Bytes, number, unit, bytes)
    }

    /// A cell for a chosen size: `4 GiB`.
    pub(crate) fn size(stored: i64) -> Self {
        let printed = wording::size(stored);
        let (number, unit) = printed.rsplit_once('\u{a0}').unwrap_or((&printed, ""));
        Self::of(Kind::Bytes, number, unit, stored as f64)
    }

    pub(crate) fn share(share: f64) -> Self {
        let printed = wording::share(share);
        let number = printed.trim_end_matches(['%', '\u{a0}']);
        Self::of(Kind::Share, number, "%", share)
    }

    pub(crate) fn seconds(seconds: f64) -> Self {
        Self::of(Kind::Seconds, wording::seconds(seconds), "", seconds)
    }

    pub(crate) fn ms(ms: f64) -> Self {
        Self::of(Kind::Milliseconds, format!("{ms:.1}"), "ms", ms)
    }

    /// A cell for a moment: it shows `text`, and is sorted by time.
    pub(crate) fn moment(text: String, time_ms: i64) -> Self {
        Self::of(Kind::Moment, text, "", time_ms as f64)
    }

    /// A cell for a difference of sizes, with its sign.
    pub(crate) fn bytes_change(bytes: f64) -> Self {
        let cell = Self::bytes(bytes.abs());
        cell.signed(bytes)
    }

    /// A cell for a difference of shares, in percentage points.
    pub(crate) fn share_change(share: f64) -> Self {
        let points = (share * 1000.0).round() / 10.0;
        let cell = Self::of(Kind::Share, format!("{:.1}", points.abs()), "points", share);
        cell.signed(points)
    }

    fn signed(mut self, value: f64) -> Self {
        if value > 0.0 {
            self.text.insert(0, '+');
        } else if value < 0.0 {
            self.text.insert(0, '−');
        }
        if self.kind == Kind::Bytes {
            self.value = Some(value);
        }
        self
    }

    pub(crate) fn or_absent<T>(value: Option<T>, cell: impl Fn(T) -> Self) -> Self {
        value.map_or_else(Self::absent, cell)
    }

    /// Returns the cell with a link to this address: `#` and an element's id, or a path.
    pub(crate) fn link(mut self, address: &str) -> Self {
        self.link = Some(address.to_owned());
        self
    }

    pub(crate) fn swatch(mut self, colour: &'static str) -> Self {
        self.swatch = Some(colour);
        self
    }

    /// Returns the cell with a bar before the number; `length` is from 0 to 1.
    pub(crate) fn bar(mut self, length: f64) -> Self {
        self.bar = Some((length.clamp(0.0, 1.0) * 1000.0).round() / 10.0);
        self
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

/// Returns a column of words.
pub(crate) fn words(label: impl Into<Cow<'static, str>>) -> Column {
    Column {
        label: label.into(),
        is_number: false,
    }
}

/// Returns a column of numbers.
pub(crate) fn numbers(label: impl Into<Cow<'static, str>>) -> Column {
    Column {
        label: label.into(),
        is_number: true,
    }
}

impl Table {
    pub(crate) fn new(id: String, caption: impl Into<String>, columns: Vec<Column>) -> Self {
        Self {
            id,
            caption: caption.into(),
            columns,
            rows_shown: ROWS_SHOWN,
            ..Self::default()
        }
    }

    /// Returns the table with these rows; absent if there are none.
    pub(crate) fn with_rows(mut self, rows: Vec<Vec<Cell>>) -> Option<Self> {
        self.rows = rows;
        (!self.rows.is_empty()).then_some(self)
    }

    /// Returns the table with a note below it.
    pub(crate) fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// Returns true if the table is long enough to be worth searching.
    pub(crate) fn has_filter(&self) -> bool {
        const ROWS: usize = 15;
        self.shown().len() > ROWS
    }

    /// Returns the rows that the page shows.
    pub(crate) fn shown(&self) -> &[Vec<Cell>] {
        &self.rows[..self.rows.len().min(self.rows_shown)]
    }

    /// Returns true if the table is folded at first.
    pub(crate) fn is_folded(&self) -> bool {
        !self.stays_open && self.shown().len() > ROWS_OPEN
    }

    /// Note on the number of rows that the page omits; absent if it shows all.
    pub(crate) fn omitted_rows_note(&self) -> Option<String> {
        (self.rows.len() > self.rows_shown).then(|| {
            format!(
                "The first {} of {} rows; the CSV and JSON files of this report have all rows.",
                self.rows_shown,
                wording::thousands(self.rows.len() as i64)
            )
        })
    }

    /// Names of the columns for programs: the label and the unit, such as `mean_share`.
    pub(crate) fn keys(&self) -> Vec<String> {
        let key = |(at, column): (usize, &Column)| {
            let label = column.label.to_lowercase().replace('’', "");
            let label = label.replace('%', "percent");
            let words = label.split(|c: char| !c.is_ascii_alphanumeric());
            let stem = words
                .filter(|w| !w.is_empty())
                .collect::<Vec<_>>()
                .join("_");
            let kinds = self.rows.iter().filter_map(|row| row.get(at));
            let kind = kinds.map(|cell| cell.kind).find(|kind| *kind != Kind::Text);
            match (stem.as_str(), kind.unwrap_or_default()) {
                ("time", Kind::Moment) => "time_ms".to_owned(),
                (stem, kind) => format!("{stem}{}", kind.suffix()),
            }
        };
        let mut keys: Vec<String> = Vec::with_capacity(self.columns.len());
        for key in self.columns.iter().enumerate().map(key) {
            // Within a JSON object, keys must be unique.
            let mut unique = key.clone();
            let mut number = 1;
            while keys.contains(&unique) {
                number += 1;
                unique = format!("{key}_{number}");
            }
            keys.push(unique);
        }
        keys
    }
}

/// Adds a column for the host if several hosts share the table (`many`).
pub(crate) fn host_column(many: bool, rest: Vec<Column>) -> Vec<Column> {
    let mut columns = Vec::from_iter(many.then_some(words("host")));
    columns.extend(rest);
    columns
}

/// Adds a cell for the host if several hosts share the table (`many`).
pub(crate) fn host_cell(many: bool, host: impl Into<Cell>, rest: Vec<Cell>) -> Vec<Cell> {
    let mut cells = Vec::from_iter(many.then(|| host.into()));
    cells.extend(rest);
    cells
}

/// Sorts items by a number, the largest first.
pub(crate) fn largest_first<T>(items: &[T], number: impl Fn(&T) -> f64) -> Vec<&T> {
    let mut sorted: Vec<&T> = items.iter().collect();
    sorted.sort_by(|a, b| number(b).total_cmp(&number(a)));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_named_by_their_units_for_programs() {
        let columns = vec![
            words("host’s name"),
            numbers("mean, of memory"),
            numbers("95 % of the time"),
            numbers("time"),
            numbers("first"),
        ];
        let row = vec![
            Cell::text("otter"),
            Cell::share(0.5),
            Cell::bytes(1.0),
            Cell::moment("now".into(), 7),
            Cell::moment("then".into(), 3),
        ];
        let table = Table::new("t".into(), "T", columns).with_rows(vec![row]);
        assert_eq!(
            table.unwrap().keys(),
            [
                "hosts_name",
                "mean_of_memory_share",
                "95_percent_of_the_time_bytes",
                "time_ms",
                "first_time_ms"
            ]
        );
    }

    #[test]
    fn no_two_columns_have_one_key() {
        let columns = vec![numbers("n"), numbers("N"), numbers("n!")];
        let table = Table::new("t".into(), "T", columns);
        assert_eq!(table.keys(), ["n", "n_2", "n_3"]);
    }

    #[test]
    fn a_table_too_long_to_read_says_so() {
        let rows = vec![vec![Cell::count(1)]; 1250];
        let table = Table::new("t".into(), "T", vec![numbers("n")]).with_rows(rows);
        let table = table.unwrap();
        assert_eq!(table.shown().len(), ROWS_SHOWN);
        let note = table.omitted_rows_note().unwrap();
        assert!(note.starts_with("The first 100 of 1,250 rows"), "{note}");
    }

    #[test]
    fn changes_have_signs() {
        let said = |cell: Cell| format!("{} {}", cell.text, cell.unit);
        assert_eq!(said(Cell::bytes_change(-2_147_483_648.0)), "−2.0 GiB");
        assert_eq!(said(Cell::bytes_change(0.0)), "0 B");
        assert_eq!(said(Cell::share_change(0.0312)), "+3.1 points");
        assert_eq!(Cell::bytes_change(-5.0).value, Some(-5.0));
    }
}
